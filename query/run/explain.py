"""An explanation of a Db2 statement: DuckDB's SQL, the tables that it reads, and an estimate."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlglot import exp, parse_one

from catalog.lake.catalog import Catalog
from catalog.lake.connection import LAKE
from catalog.lake.schema import FILES
from catalog.lake.snapshot import Snapshot
from catalog.lake.statement_watch import current
from query.db2.errors import in_db2s_words
from query.run.preparation import preparing
from query.run.prepared import prepare
from query.run.run_sql import execute


@dataclass(frozen=True)
class TableRead:
    """A table that a statement reads."""

    name: str
    """files, class_pixels or tags_<family>."""
    columns: tuple[str, ...]
    """What is read of it, in order of the table."""
    rows: int
    estimated_rows: int | None
    """Rows that the engine expects to read, after the filters on this table; None where only some
    rows may be seen, for the engine expects by all of them.
    """


@dataclass(frozen=True)
class Explanation:
    """Plan by which a statement would be answered: its SQL, and the tables that it reads."""

    sql: str
    """What DuckDB executes."""
    tables: tuple[TableRead, ...]
    """What it reads, each table as often as it is read."""
    families: tuple[str, ...]
    """Families of tags among the tables."""
    estimated_rows: int | None
    """Rows that the engine expects the answer to have; None as in TableRead."""
    snapshot: int


def explain(store: Catalog, text: str, at: int | None = None) -> Explanation:
    """Explain how a statement would be answered; it is not run.

    Always of the catalog's tables, also where a server holds them in memory.
    """
    with store.reading_files(at) as snapshot:
        statement = _prepared(snapshot, text)
        with in_db2s_words():
            plan = snapshot.plan(statement)
        tables = _named(snapshot, statement) if plan is None else _scanned(snapshot, plan)
        return Explanation(
            sql=_pretty(statement),
            tables=tables,
            families=_families(tables),
            estimated_rows=None if plan is None else _estimate(plan),
            snapshot=snapshot.number,
        )


def _prepared(snapshot: Snapshot, text: str) -> str:
    with preparing(snapshot.timeout_s, lambda: current().cancelled):
        return prepare(snapshot, text)


def _scanned(snapshot: Snapshot, plan: dict[str, Any]) -> tuple[TableRead, ...]:
    """The tables that a plan scans."""
    scans = [node for node in _nodes(plan) if "Table" in node.get("extra_info", {})]
    names = {_table(scan) for scan in scans}
    columns = {name: _columns(snapshot, name) for name in names}
    counts = {name: _count(snapshot, name) for name in names}
    return tuple(
        TableRead(
            name=_table(scan),
            columns=_read(scan, columns[_table(scan)]),
            rows=counts[_table(scan)],
            estimated_rows=_cardinality(scan) or 0,
        )
        for scan in scans
    )


def _named(snapshot: Snapshot, statement: str) -> tuple[TableRead, ...]:
    """The tables that a statement names, where no plan may be shown."""
    parsed = parse_one(statement, dialect="duckdb")
    named = {column.name for column in parsed.find_all(exp.Column)}
    return tuple(
        TableRead(
            name=table.name,
            columns=tuple(name for name in _columns(snapshot, table.name) if name in named),
            rows=_count(snapshot, table.name),
            estimated_rows=None,
        )
        for table in parsed.find_all(exp.Table)
        if table.db == "main"  # no name of the statement's own, and no view
    )


def _count(snapshot: Snapshot, table: str) -> int:
    counted = execute(snapshot, f'SELECT count(*) AS n FROM main."{table}"')
    return int(counted["n"][0].as_py())


def _pretty(statement: str) -> str:
    return parse_one(statement, dialect="duckdb").sql(dialect="duckdb", pretty=True)


def _families(tables: Iterable[TableRead]) -> tuple[str, ...]:
    names = (table.name.removeprefix("tags_") for table in tables if table.name != FILES)
    return tuple(dict.fromkeys(names))


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every operator of a plan, the outermost first."""
    pending = [plan]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(node.get("children", [])))


def _table(scan: dict[str, Any]) -> str:
    return str(scan["extra_info"]["Table"]).rpartition(".")[2]


def _columns(snapshot: Snapshot, table: str) -> list[str]:
    columns = execute(
        snapshot,
        "SELECT column_name FROM duckdb_columns() WHERE database_name = ? AND schema_name = 'main' "
        "AND table_name = ? ORDER BY column_index",
        [LAKE, table],
    )
    return [str(name) for name in columns["column_name"].to_pylist()]


def _read(scan: dict[str, Any], columns: list[str]) -> tuple[str, ...]:
    """The columns that the scan hands on, and those that only the table's filters use."""
    extra = scan["extra_info"]
    projected, filters = _listed(extra.get("Projections")), _listed(extra.get("Filters"))
    filtered = {name for text in filters for name in _NAME.findall(_CONSTANT.sub("", text))}
    return tuple(name for name in columns if name in projected or name in filtered)


def _listed(info: Any) -> list[str]:
    """DuckDB gives one text where there is one."""
    return [info] if isinstance(info, str) else list(info or [])


_CONSTANT = re.compile(r"'[^']*'")
_NAME = re.compile(r"[a-z][a-z0-9_-]*")


def _cardinality(node: dict[str, Any]) -> int | None:
    if node["name"] == "UNGROUPED_AGGREGATE":
        return 1
    cardinality = node.get("extra_info", {}).get("Estimated Cardinality")
    return None if cardinality is None else int(cardinality)


def _estimate(plan: dict[str, Any]) -> int:
    """The outermost operator's that has one: a sort gives what it gets."""
    estimates = (_cardinality(node) for node in _nodes(plan))
    return next((rows for rows in estimates if rows is not None), 0)
