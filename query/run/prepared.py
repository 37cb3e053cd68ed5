"""Statements that were seen before are not parsed, checked and rewritten again."""

import threading
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import duckdb

from catalog.lake.sql_guard import is_wide
from catalog.lake.views import tag_columns
from catalog.memory.lru import Lru
from catalog.store import DISCOVER, LAKE, CatalogStore, snapshot_of
from query.db2.semantics import to_duckdb
from query.run import read_only
from query.run.join_elimination import Tables
from query.run.open_tags import join_open_tags, open_tags
from query.run.read_only import Schema
from query.run.templates import Templates

STATEMENTS = 256
"""Shapes of statements kept for each snapshot, those not asked for longest go first."""

SNAPSHOTS = 4
"""Snapshots of a catalog whose statements are kept."""


@dataclass
class _Snapshot:
    """What is known of one snapshot: its views, and what statements that ask them became."""

    schema: Schema
    tables: Tables
    open_tags: frozenset[str] = frozenset()
    templates: Templates = field(default_factory=lambda: Templates(STATEMENTS))

    def rewritten(self, text: str) -> str:
        """A Db2 statement as DuckDB's."""
        query = read_only.parse(text, self.schema)
        read_only.check(query, self.schema)
        join_open_tags(query, self.schema, self.open_tags)
        return to_duckdb(query, self.schema, self.tables)


_known: "WeakKeyDictionary[CatalogStore, Lru[tuple[int, bool], _Snapshot]]" = WeakKeyDictionary()
_lock = threading.Lock()


def prepare(store: CatalogStore, cursor: duckdb.DuckDBPyConnection, text: str) -> tuple[str, int]:
    """A Db2 statement as DuckDB's, and the number of the snapshot that the cursor reads.

    Raises:
        SqlError: The statement is refused or wrong.
    """
    number = snapshot_of(cursor)
    snapshot = _snapshot(store, cursor, number)
    return snapshot.templates.rewritten(text, snapshot.rewritten), number


def _snapshot(store: CatalogStore, cursor: duckdb.DuckDBPyConnection, number: int) -> _Snapshot:
    # The same snapshot may be asked of the catalog, and then of memory, where it lies otherwise.
    key = number, is_wide(cursor)
    with _lock:
        of_store = _known.setdefault(store, Lru(SNAPSHOTS))
    found = of_store.get(key)
    if found is not None:
        return found
    tags = {column.tag.lower(): column for column in tag_columns(cursor)}
    made = _Snapshot(discover_schema(cursor), Tables(tags, is_wide(cursor)), open_tags(cursor))
    of_store.put(key, made)
    return made


def discover_schema(cursor: duckdb.DuckDBPyConnection) -> Schema:
    """Columns and types of every view a statement may name, as the cursor's snapshot has them."""
    rows = cursor.execute(
        "SELECT table_name, column_name, data_type FROM duckdb_columns() "
        "WHERE database_name = ? AND schema_name = ? ORDER BY table_oid, column_index",
        [LAKE, DISCOVER],
    ).fetchall()
    schema: dict[str, dict[str, str]] = {}
    for table, column, kind in rows:
        schema.setdefault(table.lower(), {})[column.lower()] = kind
    return schema
