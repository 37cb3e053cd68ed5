"""A catalog in which only some rows are, for callers who may see no others (docs/decisions/0014).

For each snapshot that is asked there is a DuckDB of its own. In it the whole catalog is attached
under another name, STORED, and LAKE is an empty database in which views of the catalog's own names
give the rows that may be seen. So it is names that are limited and not statements: subqueries,
names in WITH, ``lake.main.files`` and views all end in these views, and a statement that says
STORED is refused.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import duckdb
from typing_extensions import override

from catalog.errors import CatalogDamaged, CollectionFails, SqlError, StorageError
from catalog.lake import views as discover_views
from catalog.lake.connection import (
    DISCOVER,
    LAKE,
    STORE_FAILS,
    Lake,
    close,
    translated,
)
from catalog.lake.layouts import JOINED, ROW, LimitedWide
from catalog.lake.schema import FILES
from catalog.lake.snapshot import FactsOfSnapshots, Snapshot
from catalog.lake.sql_guard import SelectOnly, nodes
from catalog.storage.lru import Lru
from catalog.store import CatalogStore

STORED = "stored"
"""Name of the whole catalog where LAKE is a part of it."""

_SNAPSHOTS = 2
"""Snapshots kept open: opening one takes 0.2 s."""

_BARRIER = "LIMIT 9223372036854775807"
"""A limit that limits nothing: DuckDB takes no condition of a statement below it, where it would be
tried on rows that may not be seen, and its error would tell of them."""

_FUNCTIONS = frozenset(
    ("unnest", "range", "generate_series", "repeat", "duckdb_columns", "current_snapshot")
)
"""Functions in FROM: of the tables' names, which hold for everybody, and of no table at all."""


_REFERENCES = frozenset(
    ("BASE_TABLE", "SUBQUERY", "JOIN", "TABLE_FUNCTION", "EMPTY", "EMPTY_FROM", "EXPRESSION_LIST")
)
"""Table references that FROM may contain. SHOW, DESCRIBE and SUMMARIZE are SELECTs of another kind
there."""

_RULE_FAILS = (
    duckdb.BinderException,
    duckdb.ConversionException,
    duckdb.NotImplementedException,
    duckdb.OutOfRangeException,
    duckdb.ParserException,
)
"""Errors that DuckDB raises when the condition has no plan, not when the catalog fails."""

_SCHEMAS = (LAKE, "main", DISCOVER)


class _LimitedSettings:
    """SnapshotSettings of a limited catalog."""

    def __init__(self, store: CatalogStore, collection: str) -> None:
        self.timeout_s, self.class_names = store.timeout_s, store.class_names
        self.collection_column: Callable[[], str] = lambda: collection


class LimitedStore:
    """The rows of a catalog for which a condition holds: a Catalog, which cannot be written.

    Attributes:
        condition: Which rows, in DuckDB's SQL over the columns of ROW.
    """

    def __init__(
        self, store: CatalogStore, condition: str, limits: dict[str, str], collection: str = ""
    ) -> None:
        """Open nothing yet.

        Args:
            condition: In DuckDB's SQL, over the columns of ROW; never a user's own text. It fails
                for no row (query.question.collection_rule): its errors would tell of them.
            collection: Value of the column of that name, of those collections that its user may
                know; see layouts.TableLayout.
        """
        self._settings = _LimitedSettings(store, collection)
        self._facts, self._facts_in_memory = FactsOfSnapshots(), FactsOfSnapshots(capacity=1)
        self._store, self.condition, self._limits = store, condition, limits
        self._opened: Lru[int, Lake] = Lru(_SNAPSHOTS)
        self._opening = threading.Lock()

    def reading(self, at: int | None = None) -> AbstractContextManager[Snapshot]:
        """See Catalog: with the rows that may be seen."""
        return self.reading_files(at)

    @contextmanager
    def reading_frames(self, at: int | None = None) -> Iterator[Snapshot]:
        """See Catalog: from memory where it holds the whole catalog's snapshot."""
        with self._store.memory.pinned(at) as pinned:
            if pinned is not None:
                cursor, in_memory = pinned
                layout, facts = LimitedWide(self.condition), self._facts_in_memory.of
                yield LimitedFrames(cursor, layout, facts, self._settings, in_memory.number)
                return
        with self.reading_files(at) as snapshot:
            yield snapshot

    @contextmanager
    def reading_files(self, at: int | None = None) -> Iterator[Snapshot]:
        """See Catalog: memory holds no limited snapshot."""
        number = self._store.snapshot() if at is None else at
        try:
            with self._cursor_at(number, newest=at is None) as cursor:
                with translated(self._store.location):
                    cursor.execute(f"USE {LAKE}.{DISCOVER}")
                    cursor.execute("BEGIN TRANSACTION READ ONLY")
                with (
                    translated(self._store.location, STORE_FAILS),
                    self._store.compaction_noticed(),
                ):
                    limited = SelectLimited(cursor)
                    yield Snapshot(limited, JOINED, self._facts.of, self._settings, number)
        except (StorageError, CatalogDamaged):
            with self._opening:
                self._opened.pop(number)
            self._store.engines.forget((self.condition, number))
            raise

    def snapshot(self) -> int:
        """See Catalog: limited catalogs have the whole one's snapshots."""
        return self._store.snapshot()

    def quiesced(self, activity: str) -> AbstractContextManager[Callable[[], None]]:
        """See Catalog: the block writes nothing."""
        return self._store.quiesced(activity)

    def close(self) -> None:
        """Close the connections; the store can be used again and opens them again."""
        self._facts.forget()
        self._facts_in_memory.forget()
        with self._opening:
            for lake in self._opened.clear():
                lake.close()

    @contextmanager
    def _cursor_at(self, number: int, *, newest: bool) -> Iterator[duckdb.DuckDBPyConnection]:
        with self._opening:
            stays = newest or number in self._opened
        if not stays:
            key = (self.condition, number)
            with self._store.engines.cursor(key, partial(self._limited, number)) as cursor:
                yield cursor
            return
        cursor = self._kept_cursor(number)
        try:
            yield cursor
        finally:
            close(cursor)

    def _kept_cursor(self, number: int) -> duckdb.DuckDBPyConnection:
        with self._opening:
            lake = self._opened.get(number)
            if lake is None:
                lake = self._limited(number, self._limits)
                # The one given up is not closed, which would end its cursors that are in use: it
                # goes with the last of them.
                self._opened.put(number, lake)
            lake.sign_in()
            return lake.connection.cursor()

    def _limited(self, number: int, limits: dict[str, str]) -> Lake:
        location = self._store.location
        with translated(location), self._store.snapshot_known(number):
            lake = Lake(location, limits, read_only=True, at=number, attached_as=STORED)
            try:
                _create_views(lake.connection, number, self.condition)
            except BaseException:
                lake.close()
                raise
            return lake


def _create_views(connection: duckdb.DuckDBPyConnection, number: int, condition: str) -> None:
    """Make LAKE of STORED: its tables, as far as they may be seen, and Discover's views on them."""
    connection.execute(f"ATTACH ':memory:' AS {LAKE}")
    connection.execute(f"CREATE SCHEMA {LAKE}.{DISCOVER}")
    connection.execute(
        f"CREATE MACRO {LAKE}.main.current_snapshot() AS TABLE SELECT {number} AS id"
    )
    allowed = f"{STORED}.main.{FILES} AS {ROW} WHERE ({condition})"
    try:
        connection.execute(f"EXPLAIN SELECT {ROW}.fkey FROM {allowed}")
    except _RULE_FAILS as error:
        raise CollectionFails from error
    for table, has_fkey in _tables(connection):
        if table == FILES:
            rows = f"SELECT * FROM {allowed} {_BARRIER}"
        elif has_fkey:
            rows = (
                f'SELECT t.* FROM {STORED}.main."{table}" AS t SEMI JOIN '
                f"(SELECT {ROW}.fkey FROM {allowed}) AS allowed ON allowed.fkey = t.fkey {_BARRIER}"
            )
        else:  # of the catalog itself: its format, the kinds of its tags
            rows = f'SELECT * FROM {STORED}.main."{table}"'
        connection.execute(f'CREATE VIEW {LAKE}.main."{table}" AS {rows}')
    discover_views.create(connection, anew=True)


def _tables(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, bool]]:
    """The catalog's tables, in their order, and whether their rows belong to files."""
    return connection.execute(
        "SELECT t.table_name, count(*) FILTER (c.column_name = 'fkey') > 0 "
        "FROM duckdb_tables() AS t JOIN duckdb_columns() AS c USING (table_oid, database_oid) "
        "WHERE t.database_name = ? AND t.schema_name = 'main' "
        "GROUP BY t.table_name, t.table_oid ORDER BY t.table_oid",
        [STORED],
    ).fetchall()


class LimitedFrames(Snapshot):
    """A snapshot in memory whose tables show a statement only the user's frames."""

    @property
    @override
    def schema(self) -> Mapping[str, Mapping[str, str]]:
        """No views: in memory they have every row."""
        return {}


class SelectLimited(SelectOnly):
    """SelectOnly, for a connection on which there is more than may be seen."""

    def execute(self, query: str, parameters: Any = None) -> "SelectOnly":
        """Run one SELECT on LAKE."""
        self._refuse_others(query)
        self._cursor.execute(query, parameters)
        return self

    @override
    def plan(self, query: str) -> None:
        """None: a plan tells of rows that may not be seen."""

    @override
    def _refuse_others(self, query: str) -> None:
        # Never by what was accepted before: that was for those who may see everything.
        self._check(query)
        row = self._cursor.execute("SELECT json_serialize_sql(?)", [query]).fetchone()
        for node in nodes(json.loads(row[0] if row else "{}")):
            _check_node(node)


def _check_node(node: dict[str, Any]) -> None:
    kind = node.get("type")
    if "alias" in node and "sample" in node and kind not in _REFERENCES:  # stands in FROM
        raise SqlError(-551, "42501", f"{kind} may not stand in FROM here.")
    if "function_name" in node and not _is_here(node.get("catalog"), node.get("schema")):
        raise SqlError(-551, "42501", "Only the functions of this catalog may be executed here.")
    if kind == "TABLE_FUNCTION":
        name = str((node.get("function") or {}).get("function_name", ""))
        if name.lower() not in _FUNCTIONS:
            raise SqlError(-551, "42501", f"The function {name} may not be executed here.")
    if kind == "BASE_TABLE":
        qualifiers = node.get("catalog_name"), node.get("schema_name")
        if not _is_here(*qualifiers):
            name = ".".join(str(word) for word in (*qualifiers, node.get("table_name")))
            raise SqlError(-551, "42501", f"The table {name} may not be read here.")


def _is_here(database: object, schema: object) -> bool:
    """Return whether a qualified name is of LAKE; one part may be a schema's or a database's."""
    return str(database or LAKE).lower() == LAKE and str(schema or LAKE).lower() in _SCHEMAS
