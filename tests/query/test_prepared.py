"""Statements seen before are remembered for the snapshot that they were rewritten for."""

from pathlib import Path

import pyarrow as pa
import pytest

from catalog.errors import SqlError
from catalog.tags import families
from query.db2 import read_only
from query.run.run_sql import run_sql
from tests.query.catalogs import drawn


def test_a_statement_is_rewritten_once_for_a_snapshot(
    catalogued: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second time nothing is parsed; a new tag, a new snapshot: rewritten with it."""
    store = drawn(catalogued, tmp_path)
    rewritten: list[str] = []
    parse = read_only.parse

    def noted(text: str, schema: read_only.Schema) -> object:
        rewritten.append(text)
        return parse(text, schema)

    monkeypatch.setattr(read_only, "parse", noted)
    text = "select count(*) from t_rain"
    for _ in range(2):
        with pytest.raises(SqlError, match="SQL0204N"):
            run_sql(store, text)
    assert rewritten == [text] * 2  # a refused statement is not kept
    fkey = run_sql(store, "select fkey from metaocean").rows["fkey"][0]
    families.write(
        store, "weather", {"rain": "INTEGER"}, pa.table({"fkey": [fkey.as_py()], "rain": [1]})
    )
    before = len(rewritten)
    answers = [run_sql(store, text) for _ in range(3)]
    assert [answer.rows.to_pylist() for answer in answers] == [[{"1": 1}]] * 3
    assert len(rewritten) == before + 1
    assert {answer.snapshot for answer in answers} == {store.snapshot()}
