"""A statement with more rows than a server gives: never a part for the whole without a word."""

import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import framesift
from framesift import FramesiftWarning, SqlResult
from tests.api.servers import serving
from tests.pipeline.homes import copy_home

MOST = 5
LONG = "select fkey, size from metaocean order by fkey"
SHORT = LONG + f" fetch first {MOST - 1} rows only"


@pytest.fixture(scope="module")
def client(
    catalogued: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[framesift.Client]:
    """A client of a server that gives few rows."""
    home = copy_home(catalogued, tmp_path_factory.mktemp("few"))
    with (
        serving(home, variables={"FRAMESIFT_QUERY_MAX_ROWS": str(MOST)}) as (url, _),
        framesift.connect(url) as connected,
    ):
        yield connected


def _read(result: SqlResult) -> int:
    with result.reader() as reader:
        assert result.max_rows == MOST
        return sum(batch.num_rows for batch in reader)


READ: list[Callable[[SqlResult], Any]] = [
    lambda result: len(result.rows),
    lambda result: sum(1 for _ in result),
    len,
    lambda result: result.to_arrow().num_rows,
    lambda result: len(result.to_pandas()),
    lambda result: result._repr_html_().count("<td>") // 2,
    _read,
]


@pytest.mark.parametrize("read", READ)
def test_a_cut_answer_is_warned_of(client: framesift.Client, read: Callable[..., int]) -> None:
    """At the line that reads it, in every form; a whole one is not."""
    result = client.sql(LONG)
    assert (result.truncated, result.max_rows) == (None, None)
    with pytest.warns(FramesiftWarning) as noted:
        assert read(result) == MOST
    (warning,) = noted
    assert warning.filename == __file__
    assert f"the first {MOST} rows" in str(warning.message)
    assert LONG in str(warning.message)
    assert (result.truncated, result.max_rows) == (True, MOST)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whole = client.sql(SHORT)
        assert read(whole) == MOST - 1
    assert (whole.truncated, whole.max_rows) == (False, MOST)


@pytest.mark.parametrize("read", READ)
def test_a_warning_can_be_an_exception(client: framesift.Client, read: Callable[..., int]) -> None:
    """Each time, for programs that must not go on with a part."""
    result = client.sql(LONG)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FramesiftWarning)
        for _ in range(2):
            with pytest.raises(FramesiftWarning, match="Narrow the statement"):
                read(result)


def test_without_pyarrow(client: framesift.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows come as JSON, and are the same; they are counted as well."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = client.sql(LONG)
    with pytest.warns(FramesiftWarning):
        rows = result.rows
    assert len(rows) == MOST
    monkeypatch.undo()
    with pytest.warns(FramesiftWarning):
        assert client.sql(LONG).rows == rows


def test_a_notebook_says_it_too(client: framesift.Client) -> None:
    """Below the table."""
    with pytest.warns(FramesiftWarning):
        assert f"<p>{MOST} rows, as many as the server gives" in client.sql(LONG)._repr_html_()
    assert f"<p>{MOST - 1} rows</p>" in client.sql(SHORT)._repr_html_()
