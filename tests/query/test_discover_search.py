"""Searches of any content: refused in Db2's words or answered, and never read as other SQL."""

import operator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.errors import FramesiftError
from catalog.store import CatalogStore
from query.discover.buckets import BUCKETS
from query.discover.search import FACETS, Filter, Search, to_sql
from query.run.run_sql import run_sql, stream_on
from tests.query.catalogs import rows as rows_of
from tests.query.oracle import check_refusal

_HOLDS: dict[str, Any] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
ONE = "(select {value} as {name} from metaocean fetch first 1 rows only) x"
NAMES = st.one_of(
    st.sampled_from(
        ["owner", "SIZE", "mtime", "car", "group", "FileGroup", "count", "sum", "nope"]
    ),
    st.text(max_size=8),
)
VALUES = st.one_of(
    st.text(max_size=12),
    st.text(alphabet="'\"\\-/*;%_ \n()?:@x", max_size=12),
    st.integers(-(10**40), 10**40),
    st.floats(),
    st.booleans(),
    st.sampled_from(["NOW() - 30 DAYS", "now()", "current timestamp + 999999 years", "2020-02-30"]),
)
FILTERS = st.builds(
    Filter,
    key=NAMES,
    operator=st.sampled_from(["=", ">", "<>", "<=", "in", "LIKE", "is", "~", ""]),
    value=st.one_of(st.none(), VALUES, st.lists(VALUES, max_size=3)),
)
SEARCHES = st.builds(
    Search,
    query=st.one_of(st.just(""), st.sampled_from(["car > 10", "1=1 --"]), st.text(max_size=20)),
    filters=st.lists(FILTERS, max_size=2),
    group_by=st.lists(NAMES, max_size=2),
    sort_by=st.lists(
        st.dictionaries(NAMES, st.sampled_from(["asc", "desc"]), max_size=2), max_size=2
    ),
    limit=st.one_of(st.none(), st.integers(0, 2**63 - 1)),
)


GOOD = st.builds(
    Search,
    filters=st.lists(
        st.builds(
            Filter,
            key=st.just("size"),
            operator=st.sampled_from([*_HOLDS]),
            value=st.sampled_from([-1, 0, 97, 1_000, 20_000, 10**9]) | st.integers(0, 60_000),
        ),
        max_size=2,
    ),
    group_by=st.lists(st.sampled_from(["owner", "sizerange", "platform", "filetype"]), max_size=2),
    sort_by=st.just([]),
    limit=st.none() | st.integers(0, 90),
)
"""Searches that are answered."""


def answer(store: CatalogStore, search: Search) -> dict[str, pa.Table]:
    """The rows of each of a search's statements.

    Raises:
        FramesiftError: One of them is refused.
    """
    tables = {}
    with store.reading() as cursor:
        search_sql = to_sql(search, cursor.schema)
        for name in ("rows", "facets", "counting"):
            statement = getattr(search_sql, name)
            if statement is not None:
                with stream_on(cursor, statement, timeout_s=120) as stream:
                    tables[name] = pa.Table.from_batches(stream.batches, stream.schema)
    return tables


@given(SEARCHES)
@settings(max_examples=150, deadline=None)
def test_every_search_is_answered_or_refused(store: CatalogStore, search: Search) -> None:
    """Nothing but the documented errors, in all of its statements."""
    try:
        tables = answer(store, search)
    except FramesiftError as error:
        check_refusal(error, repr(search))
        return
    if not search.group_by:
        matching = int(str(tables["counting"].column(0)[0]))
        limit = matching if search.limit is None else search.limit
        assert len(tables["rows"]) == min(matching, limit)


@pytest.mark.wide
@given(GOOD)
@settings(max_examples=60, deadline=None)
def test_a_search_that_makes_sense_is_answered(store: CatalogStore, search: Search) -> None:
    """With as many files in all of its statements as Python finds, and no more rows than asked."""
    tables = answer(store, search)
    sizes = [int(str(row[0])) for row in rows_of(store, "select size from metaocean")]
    matching = sum(
        all(_HOLDS[of.operator](size, of.value) for of in search.filters) for size in sizes
    )
    limit = 10**9 if search.limit is None else search.limit
    assert int(str(tables["counting"].column(0)[0])) == matching
    if not search.group_by:
        assert len(tables["rows"]) == min(matching, limit)
        return
    assert pc.sum(tables["facets"]["count"].cast("int64")).as_py() == (matching or None)
    in_groups = sum(int(str(count)) for count in tables["rows"]["count"])
    assert len(tables["rows"]) <= limit
    assert in_groups == matching or (in_groups < matching and len(tables["rows"]) == limit)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30))
@settings(max_examples=100, deadline=None)
def test_a_text_is_only_a_text(store: CatalogStore, text: str) -> None:
    """A filter compares with exactly what was given, whatever signs are in it."""
    search = Search(filters=[Filter(key="filename", operator="=", value=text)])
    with store.reading() as cursor:
        statement = to_sql(search, cursor.schema).counting
    literal = "'" + text.replace("'", "''") + "'"
    assert statement.endswith(f'"filename" = {literal}')
    assert run_sql(store, statement).rows.column(0)[0].as_py() == 0
    echoed = run_sql(store, f"select {literal} as x from metaocean fetch first 1 rows only")
    assert echoed.rows["x"][0].as_py() == text


@pytest.mark.parametrize("value", [0, -1, 10**18, 1.5, 1e-7, 1e22, -0.0])
def test_a_number_is_that_number(store: CatalogStore, value: float) -> None:
    """Also where Python writes an exponent."""
    search = Search(filters=[Filter(key="size", operator=">", value=value)])
    with store.reading() as cursor:
        statement = to_sql(search, cursor.schema).counting
    sizes = [int(str(row[0])) for row in rows_of(store, "select size from metaocean")]
    expected = sum(size > value for size in sizes)
    assert run_sql(store, statement).rows.column(0)[0].as_py() == expected


def test_facets_are_columns_or_buckets(store: CatalogStore) -> None:
    """Each can be grouped by alone, and counts every file once."""
    with store.reading() as cursor:
        schema = cursor.schema
    assert set(FACETS) <= {*schema["metaocean_view"], *BUCKETS}
    for field in FACETS:
        search_sql = to_sql(Search(group_by=[field.upper()]), schema)
        result = run_sql(store, search_sql.rows).rows
        assert sum(int(n) for n in result["count"].to_pylist()) == 75
        assert result.column_names == [field, "count", "sum", "sumconsumed"]


@pytest.mark.parametrize(
    ("size", "name"),
    [(0, "extra small"), (4095, "extra small"), (4096, "small"), (1048575, "small"),
     (1048576, "medium"), (1073741824, "large"), (1099511627776, "extra large")],
)  # fmt: skip
def test_a_range_begins_at_its_lower_end(store: CatalogStore, size: int, name: str) -> None:
    """As the product's own definition says."""
    statement = f"select {BUCKETS['sizerange'].sql} as x from {ONE.format(name='size', value=size)}"
    assert run_sql(store, statement).rows["x"][0].as_py() == name


@pytest.mark.parametrize(
    ("filetype", "name"),
    [("'PNG'", "images"), ("'npz'", "point clouds"), ("'x1'", "other"), ("''", "other")],
)  # fmt: skip
def test_file_types_in_any_case(store: CatalogStore, filetype: str, name: str) -> None:
    """What no group names is in the last one."""
    source = ONE.format(name="filetype", value=filetype)
    statement = f"select {BUCKETS['filegroup'].sql} as x from {source}"
    assert run_sql(store, statement).rows["x"][0].as_py() == name
