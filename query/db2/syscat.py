"""SYSCAT.TABLES and SYSCAT.COLUMNS: the tables that the caller may name, and their columns.

Both are made of the views of the caller's snapshot, which a statement is checked against: there is
nothing else that they could show.
"""

from collections.abc import Iterable, Mapping

from sqlglot import exp

from query.db2 import types as db2_types

SCHEMA = "syscat"
TABLES, COLUMNS = "syscat.tables", "syscat.columns"

VIEWS: Mapping[str, Mapping[str, str]] = {
    TABLES: {
        "tabschema": "VARCHAR", "tabname": "VARCHAR", "owner": "VARCHAR", "type": "VARCHAR",
        "status": "VARCHAR", "colcount": "INTEGER", "card": "BIGINT", "remarks": "VARCHAR",
    },
    COLUMNS: {
        "tabschema": "VARCHAR", "tabname": "VARCHAR", "colname": "VARCHAR", "colno": "INTEGER",
        "typeschema": "VARCHAR", "typename": "VARCHAR", "length": "INTEGER", "scale": "INTEGER",
        "nulls": "VARCHAR", "remarks": "VARCHAR",
    },
}  # fmt: skip
"""Columns of both in DuckDB's types."""

_OWN = "BLUADMIN"
_LENGTHS = {"fkey": 2_048, "path": 4_096, "value": 4_096, "filename": 1_024, "datasource": 1_024,
            "fileset": 1_024}  # fmt: skip
_TEXT_LENGTH = 256
_SIZES = {"SMALLINT": 2, "INTEGER": 4, "BIGINT": 8, "DOUBLE": 8, "DATE": 4, "TIME": 3,
          "TIMESTAMP": 10}  # fmt: skip

_Values = tuple[str | int | None, ...]


def named(query: exp.Expr) -> None:
    """Give the tables of the schema SYSCAT the names of VIEWS, in place."""
    is_asked = False
    for table in query.find_all(exp.Table):
        name = f"{SCHEMA}.{table.name.lower()}"
        if table.db.lower() == SCHEMA and not table.catalog and name in VIEWS:
            if not table.alias:
                table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name)))
            table.set("this", exp.to_identifier(name, quoted=True))
            table.set("db", None)
            is_asked = True
    for column in query.find_all(exp.Column) if is_asked else ():
        if column.text("db").lower() == SCHEMA:
            column.set("db", None)


def filled(query: exp.Expr, schema: Mapping[str, Mapping[str, str]]) -> None:
    """Put the rows in the place of both tables, in place.

    Args:
        query: In DuckDB's terms.
    """
    for table in list(query.find_all(exp.Table)):
        name = table.name.lower()
        if name in VIEWS and not table.db:
            rows = _tables(schema) if name == TABLES else _columns(schema)
            lists = [
                exp.alias_(
                    exp.Explode(this=exp.Array(expressions=[_literal(value) for value in values])),
                    column,
                    quoted=True,
                )
                for column, values in zip(VIEWS[name], zip(*rows, strict=True), strict=True)
            ]
            alias = table.args["alias"].copy()
            table.replace(exp.Subquery(this=exp.Select(expressions=lists), alias=alias))


def _views(schema: Mapping[str, Mapping[str, str]]) -> Iterable[tuple[str, Mapping[str, str]]]:
    """The views of files: no frames of a question, and not these two."""
    return (
        (name, columns)
        for name, columns in sorted(schema.items())
        if name not in VIEWS and name != "frames"
    )


def _tables(schema: Mapping[str, Mapping[str, str]]) -> list[_Values]:
    return [
        (_OWN, name.upper(), _OWN, "V" if name.endswith("_view") else "T", "N", len(columns), -1,
         None)
        for name, columns in _views(schema)
    ]  # fmt: skip


def _columns(schema: Mapping[str, Mapping[str, str]]) -> list[_Values]:
    return [
        (_OWN, name.upper(), column.upper(), number, "SYSIBM", *_type(column, kind),
         "N" if column == "fkey" else "Y", None)
        for name, columns in _views(schema)
        for number, (column, kind) in enumerate(columns.items())
    ]  # fmt: skip


def _type(column: str, engine_type: str) -> tuple[str, int, int]:
    """Db2's name, length and scale of a type."""
    kind = db2_types.of_engine(engine_type)
    if kind.kind == "DECIMAL":
        return "DECIMAL", kind.precision, kind.scale
    if kind.kind in _SIZES:
        return kind.kind, _SIZES[kind.kind], 6 if kind.kind == "TIMESTAMP" else 0
    if engine_type == "BOOLEAN":
        return "BOOLEAN", 1, 0
    return "VARCHAR", _LENGTHS.get(column, _TEXT_LENGTH), 0


def _literal(value: str | int | None) -> exp.Expr:
    if value is None:
        return exp.Cast(this=exp.Null(), to=exp.DataType.build("varchar"))
    return exp.convert(value)
