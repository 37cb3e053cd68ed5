"""A question to a selection: the frames that fulfil its conditions, sampled, in its order."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from catalog.errors import UnknownName
from catalog.lake.catalog import Catalog
from catalog.lake.frames_relation import FramesRelation
from catalog.lake.schema import FILES
from catalog.lake.snapshot import Snapshot
from catalog.lake.wide_names import FKEY_HASH, LABEL_SIZE
from query.frames.selection import SelectedRows, Selection
from query.question.conditions import question_where, relation_for, vocabulary_of
from query.question.of_model import asking
from query.question.question import Question
from query.question.question_sql import OrderItem, order_items
from query.run.kept_rows import KeptRows
from query.run.run_sql import execute, execute_kept

if TYPE_CHECKING:  # with NumPy, which a question without a sample does without
    from query.frames.sampling import Hashes

_COLUMNS = (
    "fkey", "platform", "cluster", "datasource", "path", "filename", "scene", "camera",
    "frame_number", "image_width", "image_height", "image_file", "label_file", "image_size",
    "label_size",
)  # fmt: skip


def select_frames(
    store: Catalog,
    question: Question,
    at: int | None = None,
    columns: Sequence[str] = (),
) -> Selection:
    """`select_rows`, all in memory."""
    return select_rows(store, question, at, columns).selection


def select_rows(
    store: Catalog,
    question: Question,
    at: int | None = None,
    columns: Sequence[str] = (),
    *,
    only: bool = False,
) -> SelectedRows:
    """The frames that answer a question, in its order, then by fkey.

    Args:
        columns: Tags and columns of the file that a selection does not have by itself.
        only: The frames have ``columns`` and no other column.
    """
    with asking(store, question, at) as (snapshot, plain):
        relation = relation_for(snapshot, plain)
        classes = tuple(snapshot.classes)
        more = _more(columns, relation, classes)
        with chosen_rows(snapshot, relation, plain) as chosen:
            asked_of, condition, values = chosen
            items = order_items(plain, vocabulary_of(snapshot))
            order = [_order(item) for item in items]
            listed = [*dict.fromkeys(name.strip().lower() for name in columns)] if only else []
            fetch = _Fetch(snapshot, asked_of, listed or (*_COLUMNS, *classes, *more))
            rows = fetch.rows(condition, values, order, question.limit)
        resolved = question.model_copy(update={"snapshot": snapshot.number})
        return SelectedRows(resolved, snapshot.number, rows, classes)


def frames_of(snapshot: Snapshot, hashes: "Hashes") -> tuple[pa.Table, tuple[str, ...]]:
    """The frames of those fkey_hash, by fkey, in Selection's columns; and the class tags."""
    from query.frames.candidates import only

    relation = snapshot.every_frame
    classes = tuple(snapshot.classes)
    with only(snapshot, relation, hashes) as few:
        return _Fetch(snapshot, few, (*_COLUMNS, *classes)).rows("true", []).table(), classes


def further_columns(
    relation: FramesRelation,
    columns: Sequence[str],
    own: Collection[str],
    optional: Collection[str] = (),
) -> tuple[str, ...]:
    """Those of some columns that are not among a selection's own.

    Args:
        optional: Columns that are left out where frames have none.

    Raises:
        UnknownName: Frames have no such column.
    """
    further = dict.fromkeys(name for name in columns if name not in own)
    for name in further:
        if name not in relation.columns and name not in (*_COLUMNS, *optional):
            raise UnknownName("column", name, relation.columns)
    return tuple(name for name in further if name in relation.columns)


def _more(
    columns: Sequence[str], relation: FramesRelation, classes: tuple[str, ...]
) -> tuple[str, ...]:
    """The columns that are asked for beside those of every selection."""
    known = [name for name in relation.columns if name != FKEY_HASH]
    names = dict.fromkeys(name.strip().lower() for name in columns if name.strip())
    for name in names:
        if name not in known and name not in _COLUMNS:
            raise UnknownName("column", name[:80], [*_COLUMNS, *known])
    return tuple(name for name in names if name not in _COLUMNS and name not in classes)


@contextmanager
def chosen_rows(
    snapshot: Snapshot,
    relation: FramesRelation,
    question: Question,
) -> Iterator[tuple[FramesRelation, str, list[object]]]:
    """Frames, the condition of what is wanted of them, and its values; sampled where asked for."""
    if question.sample is None:
        yield relation, *question_where(question, relation, snapshot)
        return
    from query.frames.candidates import drawn, only

    with only(snapshot, relation, drawn(snapshot, relation, question, question.sample)) as few:
        yield few, "true", []


@dataclass(frozen=True)
class _Fetch:
    """Rows of frames."""

    snapshot: Snapshot
    relation: FramesRelation
    columns: Sequence[str]

    def rows(
        self,
        condition: str,
        values: Sequence[object],
        order: Sequence[str] = (),
        limit: int | None = None,
    ) -> KeptRows:
        """The frames for which the condition holds."""
        by = ", ".join([*order, "fkey"])
        columns = ", ".join(map(_quoted, self.columns))
        if LABEL_SIZE in self.relation.columns:
            condition = f"({condition}) AND {self.relation.has_label}"
            # As a part of fkey, which is read anyway: it lies uncompressed, and filename does not.
            columns = columns.replace('"filename"', 'image_file AS "filename"')
            statement = self._of_frames(columns, condition, by, limit)
            return KeptRows.of(execute(self.snapshot, statement, values))
        first = self.relation.listed() if limit is not None and limit <= _FEW else None
        if first is not None:
            statement = self._of_frames("fkey", condition, by, limit)
            fkeys = execute(self.snapshot, statement, values)["fkey"].to_pylist()
            values = [fkeys, min(fkeys, default=""), max(fkeys, default="")]
            frames = f"SELECT * FROM ({first})"
        else:
            frames = self._of_frames("*", condition, by, limit, f"{columns}, {by}, {_OF_LABEL}")
        # A label is a file of its own; no column's name has a blank.
        statement = (
            f"WITH chosen AS ({frames}), "
            f'labels AS (SELECT fkey AS "label fkey", size AS {LABEL_SIZE} FROM main.{FILES}) '
            f"SELECT {columns} FROM chosen LEFT JOIN labels "
            "ON \"label fkey\" = cluster || ':' || datasource || ':' || label_file "
            f'WHERE label_file IS NULL OR "label fkey" IS NOT NULL ORDER BY {by}'
        )
        return execute_kept(self.snapshot, statement, values)

    def _of_frames(
        self, columns: str, condition: str, by: str, limit: int | None, named: str = ""
    ) -> str:
        """A statement that gives columns of the frames, in order where it matters by itself.

        Args:
            named: Names the columns that are wanted; ``columns`` does when empty.
        """
        frames = self.relation.sql_for(condition, by, named or columns)
        first = f" LIMIT {limit}" if limit is not None else ""
        ordered = f" ORDER BY {by}{first}" if first or not named else ""
        return f"WITH frames AS ({frames}) SELECT {columns} FROM frames WHERE {condition}{ordered}"


_OF_LABEL = "cluster, datasource, label_file"
"""Columns that name a frame's label."""

_FEW = 10_000
"""Of so many first frames at most, names are found before the other columns are read."""


def _quoted(name: str) -> str:
    return f'"{name}"'


def _order(item: OrderItem) -> str:
    return f'"{item.column.name}" {"DESC" if item.falling else "ASC"} NULLS LAST'
