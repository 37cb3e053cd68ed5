"""Answers as tables of Arrow and pandas."""

import sys
from decimal import Decimal
from typing import Any

import httpx
import pyarrow as pa
import pytest

import framesift
from framesift import MissingPackage
from framesift.forms.tables import data_frame, rows_of

VALUES = (
    "select count(*) as n, sum(size) as s, avg(size) as a, max(inserttime) as t, "
    "cast(1.10 as decimal(10, 2)) as d, cast(null as integer) as i from metaocean"
)


def test_counts_are_integers_in_pandas(client: framesift.Client) -> None:
    """Though Db2 counts in decimals; other decimals stay exact."""
    pytest.importorskip("pandas")
    result = client.sql(VALUES)
    frame, (row,) = result.to_pandas(), result.rows
    assert str(result.to_arrow().schema.field("n").type) == "decimal128(31, 0)"
    kinds = {name: str(kind) for name, kind in frame.dtypes.items()}
    assert (kinds["n"], kinds["s"], kinds["i"]) == ("int64", "int64", "Int32")
    assert (frame["n"][0], frame["s"][0]) == (row["n"], row["s"])
    assert frame["d"][0] == Decimal("1.10")
    assert (frame["n"] / 2)[0] == row["n"] / 2
    cars = client.sql("select cast(car as bigint) as car from metaocean_view").to_pandas()["car"]
    assert str(cars.dtype) == "Int64"  # files that are no frames have none
    assert 0 < cars.isna().sum() < len(cars)


def test_what_does_not_fit_stays_exact() -> None:
    """Decimals beyond 64 bits, decimals with places, and large integers beside missing ones."""
    pytest.importorskip("pandas")
    large = [Decimal(2**63), None]
    table = pa.table(
        {
            "large": pa.array(large, pa.decimal128(31, 0)),
            "fits": pa.array([Decimal(2**62 + 1), None], pa.decimal128(31, 0)),
            "places": pa.array([Decimal("0.10"), Decimal("2.00")], pa.decimal128(10, 2)),
            "missing": pa.array([2**62 + 1, None], pa.int64()),
            "flag": pa.array([True, None]),
            "small": pa.array([1, 2], pa.int16()),
        }
    )
    frame = data_frame(table)
    assert [str(kind) for kind in frame.dtypes] == [
        "object", "Int64", "object", "Int64", "boolean", "int16"
    ]  # fmt: skip
    assert frame["large"].tolist() == large
    assert (frame["fits"][0], frame["missing"][0]) == (2**62 + 1, 2**62 + 1)
    assert frame["places"].tolist() == [Decimal("0.10"), Decimal("2.00")]
    assert data_frame(table.slice(0, 0)).shape == (0, 6)


def test_selections_and_datasets_in_pandas(client: framesift.Client) -> None:
    """A row per frame; pixels can be computed with."""
    pytest.importorskip("pandas")
    chosen = client.select(car=(1, None))
    frame = chosen.to_pandas()
    assert frame["car"].tolist() == [each["car"] for each in chosen]
    assert str(frame["car"].dtype) == "int64"
    saved = chosen.save("cars-in-pandas")
    assert saved.to_pandas()["car"].sum() == frame["car"].sum()


def test_a_statement_runs_once(client: framesift.Client) -> None:
    """For its rows, both tables, its length and a notebook, in whatever order."""
    pytest.importorskip("pandas")
    statements: list[str] = []
    client._transport._http.event_hooks["request"] = [lambda sent: statements.append(sent.url.path)]
    for first in ("rows", "to_arrow"):
        result = client.sql("select fkey from metaocean")
        count = len(result.rows) if first == "rows" else result.to_arrow().num_rows
        sizes = {
            len(result),
            result.to_arrow().num_rows,
            len(result.to_pandas()),
            len(list(result)),
        }
        assert sizes == {count}
        assert f"<p>{count} rows; the first 20 are shown</p>" in result._repr_html_()
    client._transport._http.event_hooks["request"] = []
    assert statements == ["/v1/sql"] * 2


def test_rows_are_the_servers_json(client: framesift.Client) -> None:
    """Made of Arrow they are what the server says itself."""
    statement = {"statement": f"select * from metaocean_view, ({VALUES}) as v order by fkey"}
    sent = httpx.post(f"{client._transport.url}/v1/sql", json=statement).json()
    assert client.sql(statement["statement"]).rows == sent
    assert rows_of(pa.table({"x": [float("nan"), 1.5]})) == [{"x": None}, {"x": 1.5}]


def test_a_notebook_fetches_what_it_shows(client: framesift.Client) -> None:
    """Of millions of rows the first: the rest is neither sent nor computed."""
    answers: list[httpx.Response] = []
    client._transport._http.event_hooks["response"] = [answers.append]
    result = client.sql("select a.fkey from metaocean a, metaocean b, metaocean c, metaocean d")
    html = result._repr_html_()
    client._transport._http.event_hooks["response"] = []
    assert answers[0].num_bytes_downloaded < 10_000  # 100 kB, were it all
    assert html.count("<tr>") == 21
    assert "<p>the first 20 rows; there are more</p>" in html
    assert result.truncated is None


@pytest.mark.parametrize(("package", "hint"), [
    ("pandas", "pip install 'pandas>=2.2,<3'"), ("pyarrow", "pip install 'pyarrow'"),
])  # fmt: skip
def test_a_package_that_is_missing_is_named(
    client: framesift.Client, monkeypatch: pytest.MonkeyPatch, package: str, hint: str
) -> None:
    """By what to install; it is an ImportError, too."""
    monkeypatch.setitem(sys.modules, package, None)
    ask: tuple[Any, ...] = (client.sql(VALUES), client.select(limit=1))
    for answer in ask:
        with pytest.raises(MissingPackage, match=hint) as caught:
            answer.to_pandas()
        assert isinstance(caught.value, ImportError)
