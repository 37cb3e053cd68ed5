"""A snapshot of a catalog that is being read, and what is known of it."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from catalog.lake.connection import snapshot_of
from catalog.lake.cursor import CursorRows
from catalog.lake.frames_relation import FramesRelation
from catalog.lake.group_tags import ClassGroups, groups_among
from catalog.lake.layouts import TableLayout, Tags
from catalog.lake.schema import CLASS_PIXELS, POSITION_TAGS
from catalog.lake.sql_guard import SelectOnly
from catalog.lake.statement_watch import Cancellation, StatementWatch, allowed_s, current
from catalog.lake.views import tag_columns, view_columns
from catalog.storage.lru import Lru

if TYPE_CHECKING:
    import pyarrow as pa

Found = TypeVar("Found")


class Facts:
    """Facts about a snapshot, which never changes: all of its readers share them."""

    def __init__(self) -> None:
        self._found: dict[str, Any] = {}

    def __contains__(self, name: str) -> bool:
        """Return whether a reader has found it."""
        return name in self._found

    def once(self, name: str, find: Callable[[], Found]) -> Found:
        """The value that ``find`` gave the first reader; always the same object."""
        if name not in self._found:
            self._found.setdefault(name, find())
        fact: Found = self._found[name]
        return fact


_KEPT = 4
"""Snapshots of a catalog of which is kept what is known."""


class FactsOfSnapshots:
    """Facts about a catalog's latest snapshots, by their numbers."""

    def __init__(self, capacity: int = _KEPT) -> None:
        """Know nothing yet."""
        self._kept: Lru[int, Facts] = Lru(capacity)
        self._lock = threading.Lock()

    def of(self, number: int) -> Facts:
        """Facts about one snapshot."""
        with self._lock:
            facts = self._kept.get(number)
            if facts is None:
                facts = Facts()
                self._kept.put(number, facts)
            return facts

    def forget(self) -> None:
        """Know nothing: another catalog may lie there when it is opened again."""
        self._kept.clear()


class SnapshotSettings(Protocol):
    """Settings that snapshots take from their catalog (CatalogStore)."""

    timeout_s: float
    """How long a statement of a question may take [s]."""
    class_names: Callable[[], Mapping[str, str]]
    """Gives the class name of each class tag, in class order. They are the records', and may change
    while snapshots do not.
    """
    collection_column: Callable[[], str]
    """Gives the value of the column `collection`, as layouts.TableLayout has it; it is the
    records', too.
    """


class Snapshot(CursorRows):
    """One committed snapshot, read inside one transaction by one thread.

    Statements see the catalog's tables and views and nothing else, and only read; see
    catalog.lake.sql_guard.

    Attributes:
        layout: How its frames lie in tables.
    """

    _cursor: SelectOnly

    def __init__(
        self,
        cursor: SelectOnly,
        layout: TableLayout,
        facts: Callable[[int], Facts],
        catalog: SnapshotSettings,
        number: int | None = None,
        names: Callable[[int], Facts] | None = None,
    ) -> None:
        """Ask nothing yet.

        Args:
            number: Its number; the cursor knows it when None.
            names: Facts that are found of names alone; `facts` when None.
        """
        self.layout = layout
        self._cursor, self._facts, self._number = cursor, facts, number
        self._names = names or facts
        self._catalog = catalog

    @property
    def number(self) -> int:
        """Its number."""
        if self._number is None:
            self._number = snapshot_of(self._cursor)
        return self._number

    def once(self, name: str, find: Callable[[], Found]) -> Found:
        """The value that ``find`` finds out of this snapshot, once for all of its readers.

        Names of tables and columns take 4 ms to ask for, more than most questions of a snapshot in
        memory.

        Args:
            find: Finds it; what it gives is not changed by anybody.
        """
        return self._facts(self.number).once(name, find)

    def once_of_names(self, name: str, find: Callable[[], Found]) -> Found:
        """`once`, of names of tables and columns and of no row.

        Readers share it who see other rows: fifty of them would keep the same fifty times.
        """
        return self._names(self.number).once(name, find)

    @property
    def tags(self) -> Tags:
        """The column behind every tag, families in order of creation."""
        return self.once_of_names(
            "tags", lambda: {column.tag: column for column in tag_columns(self)}
        )

    @cached_property
    def classes(self) -> Mapping[str, str]:
        """Class name of each class tag that it has, in class order; asked once by each reader."""
        names, tags = self._catalog.class_names(), self.tags
        return {
            tag: name
            for tag, name in names.items()
            if tag in tags and tags[tag].table == CLASS_PIXELS
        }

    @property
    def groups(self) -> ClassGroups:
        """The class tags of each class group, by the group's tag."""
        return self.once_of_names("class groups", lambda: groups_among(self.tags.values()))

    @property
    def classes_and_groups(self) -> Mapping[str, str]:
        """`classes`, and behind them each class group, which is called as its tag is.

        For what counts a class by itself: pixels of a group are pixels of its classes, too.
        """
        return {**self.classes, **{tag: tag for tag in self.groups}}

    @cached_property
    def collection(self) -> str:
        """Value of the column of that name; see layouts.TableLayout. Asked once by each reader."""
        return self._catalog.collection_column()

    @property
    def pixel_tags(self) -> tuple[str, ...]:
        """Tags that are numbers of pixels: those of classes, and unknown_pixels."""
        return tuple(
            tag
            for tag, column in self.tags.items()
            if column.table == CLASS_PIXELS and tag not in POSITION_TAGS
        )

    @property
    def schema(self) -> Mapping[str, Mapping[str, str]]:
        """Type of each column of the views that statements may name; names in lower case."""
        return self.once_of_names("schema", lambda: view_columns(self))

    @property
    def relation(self) -> FramesRelation:
        """The labelled frames as one relation."""
        return self._relation(every=False)

    @property
    def every_frame(self) -> FramesRelation:
        """`relation` with the frames without a label."""
        return self._relation(every=True)

    def _relation(self, *, every: bool) -> FramesRelation:
        layout = self.layout.naming(self.collection)
        return self.once_of_names(
            f"frames {every} {self.collection}",
            lambda: FramesRelation.of(self.tags, layout, every=every),
        )

    @property
    def timeout_s(self) -> float:
        """The time that a statement of a question may take [s]."""
        return allowed_s(self._catalog.timeout_s)

    def execute(self, query: str, parameters: Any = None, /) -> "Snapshot":
        """Run one SELECT; its rows are fetched from this."""
        self._cursor.execute(query, parameters)
        return self

    def has_few_rows(self, query: str) -> None:
        """Plan a statement of no parameters, whose few rows were read, when it comes again."""
        self._cursor.has_few_rows(query)

    def table(self, query: str, parameters: Sequence[object] = ()) -> "pa.Table":
        """The rows of a question's statement."""
        with self.watched() as watch, watch.errors():
            self._cursor.execute(query, [*parameters] or None)
            return self._cursor.to_arrow_table()

    def plan(self, query: str) -> dict[str, Any] | None:
        """DuckDB's plan for one SELECT; None where only some rows may be seen.

        A plan tells of the other rows, too.
        """
        with self.watched() as watch, watch.errors():
            text = self._cursor.plan(query)
        if text is None:
            return None
        (root,) = json.loads(text)
        return dict(root)

    def watched(
        self,
        timeout_s: float | None = None,
        cancellation: Cancellation | None = None,
        began: float | None = None,
    ) -> StatementWatch:
        """Ends what a block executes, when its time is over or somebody cancels it.

        Args:
            timeout_s: How long it may take; as the snapshot says when None.
            cancellation: Ends it earlier; statement_watch.current() when None.
            began: From when the time counts [s of time.monotonic]; from the block's beginning when
                None.
        """
        allowed = self.timeout_s if timeout_s is None else timeout_s
        return StatementWatch(self._cursor, allowed, cancellation or current(), began)

    @contextmanager
    def with_table(self, name: str, rows: "pa.Table") -> Iterator[None]:
        """Let statements of the block read ``rows`` as a table of that name, beside the catalog."""
        self._cursor.register(name, rows)
        try:
            yield
        finally:
            self._cursor.unregister(name)
