"""The column `collection` of statements: a name that rules give, where the tables hold none.

Whichever tables a statement reads, those of whose files it names the column are read as

    (SELECT * REPLACE (CASE WHEN ... THEN 'munich' ... END AS collection) FROM ... AS metaocean)

so that it costs nothing where it is not named, and a change of collections holds at once, for old
snapshots too.
"""

from collections.abc import Collection

from sqlglot import exp

from catalog.lake.layouts import with_collection

COLLECTION = "collection"

FILE_VIEWS = ("metaocean", "metaocean_view")


def may_name_it(text: str) -> bool:
    """Return whether a statement may name the column; a star names every column."""
    return "*" in text or COLLECTION in text.lower()


def fill(query: exp.Expr, value: str, stored: Collection[str] = ()) -> exp.Expr:
    """The query, changed in place, whose files have their collection.

    Args:
        query: In DuckDB's terms, every column with its table before it.
        value: The column's value; empty where there are no collections.
        stored: Names of the tables in `main` that hold files.
    """
    if not value:
        return query
    tables = {column.table for column in query.find_all(exp.Column) if column.name == COLLECTION}
    for table in [*query.find_all(exp.Table)] if tables else ():
        if table.alias_or_name not in tables:
            continue
        if table.db:
            is_of_files = table.name in stored
        else:
            is_of_files = table.name in FILE_VIEWS and not _is_in_with(table)
        if is_of_files:
            name = exp.table_(table.name, table.db or None, table.catalog or None, quoted=True)
            rows = with_collection(name.sql(dialect="duckdb"), value).removeprefix("(")
            alias = exp.TableAlias(this=exp.to_identifier(table.alias_or_name, quoted=True))
            modifiers = {key: table.args.get(key) for key in ("joins", "sample")}
            body = exp.Var(this=rows.removesuffix(")"))
            table.replace(exp.Subquery(this=body, alias=alias, **modifiers))
    return query


def _is_in_with(table: exp.Table) -> bool:
    """Return whether a name is that of a common table expression, which hides a view's."""
    around: list[exp.Expr] = []
    node = table.parent
    while node is not None:
        around.append(node)
        node = node.parent
    named = (
        cte
        for outer in around
        for cte in getattr(outer.args.get("with_"), "expressions", ())
        if cte.alias_or_name == table.name
    )
    return any(all(cte is not outer for outer in around) for cte in named)
