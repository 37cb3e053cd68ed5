"""docs/python.md: every example runs, from top to bottom, against a server."""

import re
from pathlib import Path

import pytest

from tests.api.servers import serving
from tests.pipeline.homes import REPOSITORY

pytestmark = pytest.mark.wide


def test_the_examples_run(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In one program, as somebody would who reads the page."""
    pytest.importorskip("pandas")
    text = (REPOSITORY / "docs" / "python.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 7
    with serving(home) as (url, _):
        names = {"url": url, "token": None, "folder": tmp_path}
        exec(compile("\n".join(blocks), "docs/python.md", "exec"), names)
    printed = capsys.readouterr().out
    assert "did you mean car" in printed
    assert re.search(r"^done \d+ /.+cache", printed, re.MULTILINE)
    assert (tmp_path / "city.parquet").is_file()
