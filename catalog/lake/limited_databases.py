"""Databases beside a catalog's own in which only some of its rows are, under the same names.

The catalog is attached as LAKE. A limited database has views of LAKE's names, and a cursor that
uses it finds its views where others find tables: so it is names that are limited and not
statements. Subqueries, names in WITH, ``main.files`` and views all end in these views, and
`SelectLimited` refuses a statement that names another database (docs/decisions/0014).
"""

import itertools
import json
import re
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import duckdb
from typing_extensions import override

from catalog.errors import CollectionFails, SqlError
from catalog.lake import views as discover_views
from catalog.lake.connection import DISCOVER, LAKE
from catalog.lake.group_tags import ClassGroups, groups_among, view_of
from catalog.lake.layouts import ROW
from catalog.lake.schema import FILES
from catalog.lake.sql_guard import SelectOnly, nodes
from catalog.lake.statement_shape import LONGEST, Shape, shape_of
from catalog.storage.lru import Lru
from catalog.values import TagColumn

BARRIER = "LIMIT 9223372036854775807"
"""A limit that limits nothing: DuckDB takes no condition of a statement below it, where it would be
tried on rows that may not be seen, and its error would tell of them."""

RULE_FAILS = (
    duckdb.BinderException,
    duckdb.ConversionException,
    duckdb.NotImplementedException,
    duckdb.OutOfRangeException,
    duckdb.ParserException,
)
"""Errors that DuckDB raises when the condition has no plan, not when the catalog fails."""

_FUNCTIONS = frozenset(("unnest", "range", "generate_series", "repeat", "duckdb_columns"))
"""Functions in FROM: of the tables' names, which hold for everybody, and of no table at all."""

_REFERENCES = frozenset(
    ("BASE_TABLE", "SUBQUERY", "JOIN", "TABLE_FUNCTION", "EMPTY", "EMPTY_FROM", "EXPRESSION_LIST")
)
"""Table references that FROM may contain. SHOW, DESCRIBE and SUMMARIZE are SELECTs of another kind
there."""

_SCHEMAS = ("", "main", DISCOVER)

_numbers = itertools.count(1)


class LimitedDatabases:
    """The limited databases of one connection, those asked last.

    Safe to use from several threads.
    """

    def __init__(
        self,
        make: Callable[[str, str], None],
        drop: Callable[[str], None],
        most: Callable[[], int],
        changing: "threading.Lock | None" = None,
    ) -> None:
        """Make nothing yet.

        Args:
            make: Makes the database of a name, of the rows for which a condition holds.
            drop: Drops it.
            most: How many are kept without use.
            changing: Held while one is made or dropped.
        """
        self._make, self._drop, self._most = make, drop, most
        self._changing = threading.Lock() if changing is None else changing
        self._looking = threading.Lock()
        self._names: OrderedDict[str, str] = (
            OrderedDict()
        )  # by condition, least recently used first
        self._users: Counter[str] = Counter()

    @contextmanager
    def using(self, condition: str) -> Iterator[str]:
        """The name of the database of these rows, which stays for the block.

        Args:
            condition: In DuckDB's SQL over the columns of ROW; see LimitedStore.

        Raises:
            CollectionFails: The condition cannot be evaluated.
        """
        name = self._taken(condition)
        if name is None:
            with self._changing:
                name = self._taken(condition)
                if name is None:
                    self._dismiss()
                    made = f"seen_{next(_numbers)}"
                    self._make(made, condition)
                    with self._looking:
                        self._names[condition] = made
                    name = self._taken(condition) or made
        try:
            yield name
        finally:
            with self._looking:
                self._users[name] -= 1

    def _taken(self, condition: str) -> str | None:
        with self._looking:
            name = self._names.get(condition)
            if name is not None:
                self._names.move_to_end(condition)
                self._users[name] += 1
            return name

    def _dismiss(self) -> None:
        """Drop those used longest ago, so that there is room for one."""
        with self._looking:
            idle = [each for each, name in self._names.items() if not self._users[name]]
            room = max(1, self._most()) - 1
            dropped = [self._names.pop(each) for each in idle[: max(0, len(self._names) - room)]]
            for name in dropped:
                del self._users[name]
        for name in dropped:
            self._drop(name)


@dataclass(frozen=True)
class LakeNames:
    """Names of LAKE's tables and tags, which are asked once for all databases beside it.

    DuckDB looks for them in every view of every database: at forty sets of collections that took
    most of the second that the next one took.
    """

    tables: tuple[tuple[str, bool], ...]
    """In their order, and whether their rows belong to files."""
    tags: tuple[TagColumn, ...]
    cells: bool
    """There is a table of confusion cells."""

    @property
    def groups(self) -> ClassGroups:
        """The class groups among the tags."""
        return groups_among(self.tags)

    @staticmethod
    def of(connection: duckdb.DuckDBPyConnection) -> "LakeNames":
        """Those of the snapshot that a connection reads."""
        return LakeNames(
            tuple(_tables(connection)),
            tuple(discover_views.tag_columns(connection, f"{LAKE}.main")),
            discover_views.has_cells(connection),
        )


def of_files(connection: duckdb.DuckDBPyConnection) -> LimitedDatabases:
    """The limited databases beside LAKE, where that is a snapshot of a catalog's own files."""
    names: list[LakeNames] = []

    def make(name: str, condition: str) -> None:
        with connection.cursor() as cursor:
            if not names:
                names.append(LakeNames.of(cursor))
            _create(cursor, names[0], name, condition)

    def drop(name: str) -> None:
        with connection.cursor() as cursor:
            detach(cursor, name)

    return LimitedDatabases(make, drop, lambda: _MOST)


_MOST = 64
"""Limited databases of an engine."""


def attach(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Make an empty database of a name."""
    connection.execute(f"ATTACH ':memory:' AS {name}")
    connection.execute(f"CREATE SCHEMA {name}.{DISCOVER}")


def detach(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Drop the database of a name."""
    connection.execute(f"DETACH {name}")


def _create(
    connection: duckdb.DuckDBPyConnection, names: LakeNames, name: str, condition: str
) -> None:
    """Make a limited database: LAKE's tables, as far as they may be seen, and Discover's views."""
    allowed = f"{LAKE}.main.{FILES} AS {ROW} WHERE ({condition})"
    try:
        connection.execute(f"EXPLAIN SELECT {ROW}.fkey FROM {allowed}")
    except RULE_FAILS as error:
        raise CollectionFails from error
    views = []
    for table, has_fkey in names.tables:
        if table == FILES:
            rows = f"SELECT * FROM {allowed} {BARRIER}"
        elif has_fkey:
            rows = of_visible(table, f"SELECT {ROW}.fkey FROM {allowed}")
        else:  # of the catalog itself: its format, the kinds of its tags
            rows = f'SELECT * FROM {LAKE}.main."{table}"'
        views.append(f'CREATE VIEW {name}.main."{table}" AS {rows}')
    attach(connection, name)
    try:
        make_views(connection, names, name, views)
    except BaseException:
        detach(connection, name)
        raise


def make_views(
    connection: duckdb.DuckDBPyConnection, names: LakeNames, database: str, views: Sequence[str]
) -> None:
    """Make the views of a limited database, and Discover's on top of them.

    All at once: between two statements other threads of Python get the processor first, 5 ms each.

    Args:
        views: Statements that make those of LAKE's tables.
    """
    on_top = discover_views.definitions(names.tags, cells=names.cells, database=database).values()
    groups = [view_of(names.groups, database)] if names.groups else []
    try:
        connection.execute("; ".join(["BEGIN TRANSACTION", *views, *groups, *on_top, "COMMIT"]))
    except BaseException:
        with suppress(duckdb.Error):
            connection.execute("ROLLBACK")
        raise


def of_visible(table: str, fkeys: str) -> str:
    """A statement that gives a table's rows of the files that may be seen.

    Args:
        fkeys: Gives the fkeys of those.
    """
    return (
        f'SELECT t.* FROM {LAKE}.main."{table}" AS t SEMI JOIN ({fkeys}) AS allowed '
        f"ON allowed.fkey = t.fkey {BARRIER}"
    )


def _tables(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, bool]]:
    """LAKE's tables, in their order, and whether their rows belong to files."""
    return connection.execute(
        "SELECT t.table_name, count(*) FILTER (c.column_name = 'fkey') > 0 "
        "FROM duckdb_tables() AS t JOIN duckdb_columns() AS c USING (table_oid, database_oid) "
        "WHERE t.database_name = ? AND t.schema_name = 'main' "
        "GROUP BY t.table_name, t.table_oid ORDER BY t.table_oid",
        [LAKE],
    ).fetchall()


class SelectLimited(SelectOnly):
    """SelectOnly, for a cursor that uses a limited database, beside which all rows are."""

    most_plans = 16
    """Each of many databases has cursors of its own."""

    def __init__(
        self,
        cursor: duckdb.DuckDBPyConnection,
        *,
        plans: bool = False,
        databases: tuple[str, str] | None = None,
    ) -> None:
        """Wrap a cursor of a locked-down connection.

        Args:
            databases: The one that it uses, and the same rows in views without BARRIER, for
                statements that fail for no row.
        """
        super().__init__(cursor, plans=plans)
        self._databases = databases
        self._used = "" if databases is None else databases[0]

    @override
    def execute(self, query: str, parameters: Any = None) -> "SelectOnly":
        shape = shape_of(query)
        self._refuse_others(query, shape)
        if self._databases is not None:
            database = self._databases[self._fails_for_none(query, shape, parameters)]
            if database != self._used:
                self._cursor.execute(f"USE {database}.{DISCOVER}")
                self._used = database
        return self._run(query, parameters)

    def _fails_for_none(self, query: str, shape: Shape, parameters: Any) -> bool:
        """Return whether a statement surely fails for no row, whatever the rows hold."""
        texts = [*(parameters or ())]
        can_fail = _ACCEPTED.get(shape.parts)
        if can_fail is not False or not all(isinstance(each, str) for each in texts):
            return False
        key = (self._databases, shape.parts)
        known = _CONVERTS.get(key)
        if known is None:
            known = _converts(self._cursor, query)
            _CONVERTS.put(key, known)
        return not known

    @override
    def plan(self, query: str) -> None:
        """None: a plan tells of rows that may not be seen."""

    @override
    def _refuse_others(self, query: str, shape: Shape) -> None:
        # Never by what was accepted of those who may see everything.
        if _ACCEPTED.get(shape.parts) is not None:
            return
        self._check(query)
        row = self._cursor.execute("SELECT json_serialize_sql(?)", [query]).fetchone()
        tree = json.loads(row[0] if row else "{}")
        for node in nodes(tree):
            _check_node(node)
        if sum(map(len, shape.parts)) <= LONGEST:
            _ACCEPTED.put(shape.parts, _can_fail(tree))


_ACCEPTED: Lru[tuple[str, ...], bool] = Lru(1024)
"""Shapes of statements that passed, and whether they can fail for a row: what they may name is the
same in every limited database, and numbers decide neither."""

_CONVERTS: Lru[tuple[object, tuple[str, ...]], bool] = Lru(1024)
"""Whether statements of a shape convert values, of those that are not in doubt otherwise, by the
databases that they ask: the types of columns decide it."""

_NEVER_FAIL = frozenset(
    (
        "BETWEEN", "CASE", "COLUMN_REF", "COMPARISON", "CONJUNCTION", "CONSTANT", "OPERATOR",
        "PARAMETER", "STAR",
    )
)  # fmt: skip
"""Kinds of expressions that fail for no row, where their operands do not."""

_OPERATORS = frozenset(
    (
        "COMPARE_IN", "COMPARE_NOT_IN", "OPERATOR_COALESCE", "OPERATOR_IS_NOT_NULL",
        "OPERATOR_IS_NULL", "OPERATOR_NOT",
    )
)  # fmt: skip

_AGGREGATES = frozenset(("avg", "count", "count_star", "max", "min", "sum"))

_FUNCTIONS_THAT_NEVER_FAIL = _AGGREGATES | frozenset(
    (
        "!~~", "hash", "length", "lower", "ltrim", "md5_number_lower", "rtrim", "substr", "suffix",
        "trim", "upper", "||", "~~",
    )
)  # fmt: skip
"""None that computes with numbers: a sum that is too large fails, a cast, a division."""


def _can_fail(tree: Any) -> bool:
    """Return whether a statement may fail for a row, by DuckDB's parse tree; what is unknown may.

    What is made of aggregates alone may not: DuckDB computes them of rows that are seen.
    """
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, list):
            pending += node
        elif isinstance(node, dict):
            if not _fails(node):
                pending += node.values()
                continue
            aggregates = _aggregates(node)
            if not aggregates:
                return True
            pending += (aggregate["children"] for aggregate in aggregates)
    return False


def _fails(node: dict[str, Any]) -> bool:
    """Return whether a node may fail, whatever its operands do."""
    kind = node.get("class")
    if kind is None:
        return bool(node.get("sample")) or node.get("type") == "TABLE_FUNCTION"
    if kind == "CAST":
        text = (node.get("cast_type") or {}).get("id") == "VARCHAR"
        return not (text or node.get("try_cast"))
    if kind == "FUNCTION":
        function = str(node.get("function_name")).lower()
        return function not in _FUNCTIONS_THAT_NEVER_FAIL or (
            function == "substr" and not all(map(_is_short, node["children"][1:]))
        )
    if kind == "SUBQUERY":  # one that is a value fails where it has two rows
        return node.get("subquery_type") not in ("ANY", "EXISTS", "NOT_EXISTS")
    if kind == "OPERATOR":
        return node.get("type") not in _OPERATORS
    return kind not in _NEVER_FAIL


_OF_ONE_ROW = frozenset(
    (
        "CASE", "CAST", "COMPARISON", "CONJUNCTION", "CONSTANT", "FUNCTION", "LAMBDA", "OPERATOR",
        None,
    )
)  # fmt: skip
"""Kinds of expressions that compute with the values of aggregates, in the row that these have."""

_PARAMETER = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|(\?|\$[0-9]+)""")

_SHORT = ("BOOLEAN", "UTINYINT", "TINYINT", "USMALLINT", "SMALLINT")
_WIDER = {
    **dict.fromkeys(_SHORT, frozenset(("BOOLEAN", "INTEGER", "BIGINT", "HUGEINT", "DOUBLE"))),
    **dict.fromkeys(("UINTEGER", "INTEGER"), frozenset(("BOOLEAN", "BIGINT", "HUGEINT", "DOUBLE"))),
    **dict.fromkeys(("BIGINT", "UBIGINT"), frozenset(("BOOLEAN", "HUGEINT", "DOUBLE"))),
    **dict.fromkeys(("HUGEINT", "FLOAT"), frozenset(("DOUBLE",))),
}
"""Types to which every value of a type can be converted."""

_DIGITS = {
    "BOOLEAN": 1, "UTINYINT": 3, "TINYINT": 3, "USMALLINT": 5, "SMALLINT": 5, "UINTEGER": 10,
    "INTEGER": 10, "BIGINT": 19, "UBIGINT": 20,
}  # fmt: skip
"""Digits of the largest value of a whole type: a DECIMAL with so many before its point holds all.
A number of rows is such a one."""


def _converts(cursor: duckdb.DuckDBPyConnection, query: str) -> bool:
    """Return whether a statement converts values that cannot all be, by DuckDB's bound plan.

    A comparison of a text with a number converts the text, and a statement's own tree does not show
    it. What has no plan that can be shown may do anything.
    """
    planned = _PARAMETER.sub(lambda match: "'x'" if match[1] else match[0], query)
    row = cursor.execute("SELECT json_serialize_plan(?)", [planned]).fetchone()
    plan = json.loads(row[0] if row else '{"error": true}')
    return bool(plan.get("error")) or any(map(_may_not_convert, nodes(_of_rows(plan["plans"]))))


def _of_rows(plans: list[dict[str, Any]]) -> list[Any]:
    """What a plan's operators compute of rows, without what they do with the one row of aggregates.

    DuckDB moves no condition below an aggregate without groups, so that its row is of rows that
    are seen.
    """
    computed: list[Any] = []
    pending = list(plans)
    while pending:
        operator = pending.pop()
        children = operator.get("children", [])
        pending += children
        of_one_row = bool(children) and all(map(_is_one_row, children))
        if not of_one_row or any(
            each.get("expression_class") == "BOUND_SUBQUERY" for each in nodes(operator)
        ):
            computed.append({key: operator[key] for key in operator if key != "children"})
    return computed


def _is_one_row(operator: dict[str, Any]) -> bool:
    """Return whether an operator gives the row of an aggregate without groups, or of its values."""
    if operator.get("type") == "LOGICAL_AGGREGATE_AND_GROUP_BY":
        return not operator.get("groups")
    children = operator.get("children", [])
    return operator.get("type") == "LOGICAL_PROJECTION" and all(map(_is_one_row, children))


def _may_not_convert(node: dict[str, Any]) -> bool:
    if node.get("expression_class") != "BOUND_CAST" or node.get("try_cast"):
        return False
    child, kind = node.get("child") or {}, (node.get("return_type") or {}).get("id")
    before = (child.get("return_type") or {}).get("id")
    if child.get("expression_class") == "BOUND_CONSTANT" or kind in ("VARCHAR", before):
        return False
    if _is_md5_of_constant(child):
        return False
    if kind == "DECIMAL" and before in _DIGITS:
        decimal = node["return_type"]["type_info"]
        return bool(decimal["width"] - decimal["scale"] < _DIGITS[before])
    return before != "SQLNULL" and kind not in _WIDER.get(str(before), ())


def _is_md5_of_constant(node: dict[str, Any]) -> bool:
    """Return whether a value is a step of md5_number_lower('...'), which is a macro of casts."""
    within = [each for each in nodes(node) if "expression_class" in each]
    names = {each["name"] for each in within if each["expression_class"] == "BOUND_FUNCTION"}
    kinds = {each["expression_class"] for each in within}
    return "md5_number" in names <= {"md5_number", "array_slice"} and kinds <= {
        "BOUND_CAST", "BOUND_CONSTANT", "BOUND_FUNCTION",
    }  # fmt: skip


def _is_short(node: dict[str, Any]) -> bool:
    """Return whether a number of characters is one that a text may have."""
    return node.get("class") == "CONSTANT" or str(node.get("function_name")).lower() == "length"


def _aggregates(tree: dict[str, Any]) -> list[dict[str, Any]]:
    """The aggregates that an expression is made of; none where it is made of columns, too.

    What a lambda calls its parameter is no column.
    """
    aggregates: list[dict[str, Any]] = []
    pending: list[tuple[Any, frozenset[str]]] = [(tree, frozenset())]
    while pending:
        node, parameters = pending.pop()
        if isinstance(node, list):
            pending += ((each, parameters) for each in node)
        elif isinstance(node, dict):
            kind = node.get("class")
            if kind == "FUNCTION" and str(node.get("function_name")).lower() in _AGGREGATES:
                if node.get("filter") or (node.get("order_bys") or {}).get("orders"):
                    return []
                aggregates.append(node)
            elif kind == "COLUMN_REF":
                if not parameters.issuperset(node["column_names"]):
                    return []
            elif kind in _OF_ONE_ROW:
                if kind == "LAMBDA":
                    parameters |= frozenset(node["lhs"].get("column_names", ()))
                pending += ((each, parameters) for each in node.values())
            else:
                return []
    return aggregates


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
        table = str(node.get("table_name", ""))
        qualifiers = node.get("catalog_name"), node.get("schema_name")
        if not _is_here(*qualifiers) or table.lower() in _views_of_duckdb():
            name = ".".join(str(word) for word in (*qualifiers, table))
            raise SqlError(-551, "42501", f"The table {name} may not be read here.")


@cache
def _views_of_duckdb() -> frozenset[str]:
    """The names of DuckDB's own views that need no schema: they tell of every database."""
    with duckdb.connect(":memory:") as connection:
        rows = connection.execute(
            "SELECT view_name FROM duckdb_views() "
            "WHERE internal AND schema_name IN ('main', 'pg_catalog')"
        ).fetchall()
    return frozenset(str(name).lower() for (name,) in rows)


def _is_here(database: object, schema: object) -> bool:
    """Return whether a name is one of the database in use: it names a schema at most."""
    return not database and str(schema or "").lower() in _SCHEMAS
