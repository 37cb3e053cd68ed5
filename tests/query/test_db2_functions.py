"""The table of Db2's functions, walked: every example runs, docs/sql.md lists every row.

`python -m tests.query.test_db2_functions` writes the list into the page.
"""

import re
from pathlib import Path

import pytest

from catalog.errors import SqlError
from catalog.store import CatalogStore
from query.db2.calls import Db2Aggregate, Db2Cast, Db2Function
from query.db2.functions import BY_NODE, FUNCTIONS, GROUPS, Function
from query.db2.types import Db2Type
from query.run.result_format import encoded
from query.run.run_sql import run_sql

PAGE = Path(__file__).parents[2] / "docs" / "sql.md"
BEGIN, END = "<!-- functions: begin -->\n", "<!-- functions: end -->"
ROWS = [function for rows in GROUPS.values() for function in rows]
THREE = " union all ".join(f"select {x} as x from sysibm.sysdummy1" for x in (1, 2, 4))


def listed() -> str:
    """The list of functions as docs/sql.md has it."""
    lines: list[str] = []
    for group, rows in GROUPS.items():
        lines += [f"**{group}**", "", "| | gives | | example |", "|---|---|---|---|"]
        for row in rows:
            names = ", ".join(f"`{name}`" for name in (row.call, *row.also))
            gives = row.gives
            if isinstance(gives, Db2Type):
                gives = {"TEXT": "VARCHAR"}.get(gives.kind, gives.kind)
            lines.append(
                f"| {names} | {gives} | {row.words} | `{row.example[0]}` → `{row.example[1]}` |"
            )
        lines.append("")
    return "\n".join(lines).replace("||", "\\|\\|")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_example_gives_what_it_says(store: CatalogStore, row: Function) -> None:
    """Over three rows where x is 1, 2 and 4, by every name of the function."""
    expression, expected = row.example
    for name in row.names:
        called = re.sub(rf"\b({'|'.join(row.names)})\b", name, expression)
        rows = run_sql(store, f"select {called} as found from ({THREE}) t").rows
        text = b"".join(encoded("csv", rows.schema, rows.to_batches())).decode()
        values = {line.partition(",")[2].strip('"').lower(): None for line in text.splitlines()}
        assert ", ".join(sorted(values)) == expected.lower(), called


@pytest.mark.parametrize(
    "call", ["max(1, 2)", "count()", "length('a', 1)", "floor(1.5, 1)", "mod(7, 2, 3)", "round()",
             "left('abc', 1, 2)", "ltrim('a', 'b', 'c')", "rank(1) over ()", "sha('a')"],
)  # fmt: skip
def test_other_numbers_of_arguments_are_refused(store: CatalogStore, call: str) -> None:
    """None is left out, none goes to DuckDB, whose max(x, 2) is a list; the name is told."""
    with pytest.raises(SqlError) as error:
        run_sql(store, f"select {call} from t_car")
    name = call.partition("(")[0].upper()
    assert (error.value.sqlcode, f'"{name}"' in error.value.text) == (-440, True), error.value


def test_rows_of_one_node_agree() -> None:
    """Types are looked up by node: functions of one node give one type and read text alike."""
    for row in ROWS:
        if row.node not in (Db2Aggregate, Db2Cast, Db2Function):
            other = BY_NODE[row.node]
            assert (row.gives, row.reads) == (other.gives, other.reads), row.name
    assert sum(len(row.names) for row in ROWS) == len(FUNCTIONS)


def test_the_page_lists_every_function() -> None:
    """docs/sql.md has the table as it is."""
    between = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    assert between == listed(), "run: python -m tests.query.test_db2_functions"


if __name__ == "__main__":
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(before + BEGIN + listed() + END + rest.partition(END)[2], encoding="utf-8")
