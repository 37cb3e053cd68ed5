"""Open and Restricted tags as columns of metaocean, as in Spectrum Discover.

There they are columns of that table, while Characteristics are tables of their own. Published
clients ask accordingly: `select path, recallme from metaocean`. Here every tag is a table, so that
metaocean is joined with those that a statement names; without any it stays as it is.
"""

from collections.abc import Collection

from sqlglot import exp

from catalog.lake.connection import LAKE
from catalog.lake.cursor import Cursor
from catalog.tags.tag_kinds import TABLE
from query.db2.read_only import Schema

_FILES = "metaocean"


def open_tags(snapshot: Cursor) -> frozenset[str]:
    """Tags that are columns of metaocean, as a snapshot has them."""
    known = snapshot.execute(
        "SELECT count(*) FROM duckdb_columns() WHERE database_name = ? AND table_name = ?",
        [LAKE, TABLE],
    ).fetchone()
    if not known or not known[0]:
        return frozenset()
    rows = snapshot.execute(
        f"SELECT tag FROM main.{TABLE} WHERE kind <> 'Characteristics'"
    ).fetchall()
    return frozenset(str(tag).lower() for (tag,) in rows)


def join_open_tags(query: exp.Query, schema: Schema, tags: Collection[str]) -> None:
    """Give metaocean the columns of tags that a query takes from it, in place.

    Args:
        query: What read_only.check has let through.
        tags: What open_tags gave.
    """
    if not tags:
        return
    names_in_with = {cte.alias_or_name.lower() for cte in query.find_all(exp.CTE)}
    for select in list(query.find_all(exp.Select)):
        sources = _sources(select)
        files = [source for source in sources if _is_files(source, names_in_with)]
        if not files:
            continue
        other_sources = [source for source in sources if source not in files]
        for table in files:
            named = _named_tags(select, table, other_sources, schema, tags)
            if named:
                table.replace(_joined(table, named, schema))


def _sources(select: exp.Select) -> list[exp.Expr]:
    """The tables and queries in FROM."""
    clauses = [select.args.get("from_"), *select.args.get("joins", ())]
    return [item.this for item in clauses if item is not None]


def _is_files(source: exp.Expr, names_in_with: set[str]) -> bool:
    if not isinstance(source, exp.Table) or source.name.lower() != _FILES:
        return False
    return bool(source.db) or _FILES not in names_in_with


def _named_tags(
    select: exp.Select,
    table: exp.Expr,
    other_sources: list[exp.Expr],
    schema: Schema,
    tags: Collection[str],
) -> list[str]:
    """The tags that are taken from the table: by its name, or where nothing else has them."""
    name = table.alias_or_name.lower()
    named: dict[str, None] = {}
    for column in select.find_all(exp.Column):
        tag = column.name.lower()
        if tag not in tags or f"t_{tag}" not in schema or tag in schema[_FILES]:
            continue
        if column.table:
            if column.table.lower() == name:
                named[tag] = None
        elif column.find_ancestor(exp.Select) is select and not any(
            _has(other, tag, schema) for other in other_sources
        ):
            named[tag] = None
    return list(named)


def _has(source: exp.Expr, column: str, schema: Schema) -> bool:
    """Return whether a column may be this source's; a query's in parentheses always may."""
    return not isinstance(source, exp.Table) or column in schema.get(source.name.lower(), {column})


def _joined(table: exp.Expr, tags: list[str], schema: Schema) -> exp.Subquery:
    """The table with its tags, under the name that the query gives it."""
    select = exp.Select(
        expressions=[
            *(exp.column(name, _FILES, quoted=True) for name in schema[_FILES]),
            *(
                exp.alias_(exp.column("value", f"t_{tag}", quoted=True), tag, quoted=True)
                for tag in tags
            ),
        ]
    ).from_(exp.to_table(_FILES))
    for tag in tags:
        name = f"t_{tag}"
        on = exp.EQ(
            this=exp.column("fkey", name, quoted=True),
            expression=exp.column("fkey", _FILES, quoted=True),
        )
        select = select.join(
            exp.Table(this=exp.to_identifier(name, quoted=True)), on=on, join_type="left"
        )
    return exp.Subquery(
        this=select, alias=exp.TableAlias(this=exp.to_identifier(table.alias_or_name))
    )
