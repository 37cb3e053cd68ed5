"""Extractors by name and from a user's own file; the documented example."""

import re
import sys
from pathlib import Path

import pytest

from catalog.errors import InvalidInput, UnknownName
from ingest.extractors.registry import (
    BUILT_IN,
    extractor_in_file,
    extractor_named,
    known_extractors,
)
from ingest.extractors.run import run_extractor
from tests.ingest.scene_folders import Home

_DOCS = Path(__file__).parents[3] / "docs" / "extractors.md"

_MINIMAL = """
from ingest.extractors.base import Extractor
class Mine(Extractor):
    family = "mine"
    columns = {"mine": "INTEGER"}
    def extract(self, source, frame):
        return {"mine": 1}
class Unfinished(Extractor):
    family = "mine"
    columns = {"mine": "INTEGER"}
class Nameless(Extractor):
    def extract(self, source, frame):
        return {}
NUMBER = 7
"""


def test_built_in_extractors() -> None:
    """Every built-in name gives an extractor of that family; an unknown one offers the nearest."""
    for name in BUILT_IN:
        assert extractor_named(name).family == name
    with pytest.raises(UnknownName, match="did you mean lidar"):
        extractor_named("lidr")


def test_an_installed_packages_extractor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry point of the group framesift.extractors is found by name; one may not take over."""
    (tmp_path / "installed_extractor.py").write_text(_MINIMAL)
    about = tmp_path / "installed_extractor-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: installed-extractor\nVersion: 1")
    (about / "entry_points.txt").write_text(
        "[framesift.extractors]\nmine = installed_extractor:Mine\n"
        "bus = installed_extractor:Mine\ngone = no_such_module:Mine\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "mine" in known_extractors()
    assert extractor_named("mine").family == "mine"
    assert extractor_named("bus").family == "bus"
    with pytest.raises(InvalidInput, match="no_such_module"):
        extractor_named("gone")
    sys.modules.pop("installed_extractor", None)


def test_extractors_in_files(tmp_path: Path) -> None:
    """FILE.py:CLASS gives the class's extractor; whatever is wrong with it is one line."""
    file = tmp_path / "mine.py"
    file.write_text(_MINIMAL)
    assert extractor_in_file(f"{file}:Mine").family == "mine"
    (tmp_path / "fails.py").write_text("raise OSError('no\\nluck')")
    (tmp_path / "wrong.py").write_text("def (:")
    for spec, words in (
        (str(file), "FILE.py:CLASS"),
        (f"{file}:", "FILE.py:CLASS"),
        (f"{file}:No", "no class No"),
        (f"{file}:NUMBER", "derived from"),
        (f"{file}:Unfinished", "abstract"),
        (f"{file}:Nameless", "does not set 'family'"),
        (f"{tmp_path}/none.py:Mine", "there is no file"),
        (f"{tmp_path}/fails.py:Mine", "OSError: no luck"),
        (f"{tmp_path}/wrong.py:Mine", "SyntaxError"),
    ):
        with pytest.raises(InvalidInput, match=re.escape(words)) as caught:
            extractor_in_file(spec)
        assert "\n" not in str(caught.value)


@pytest.mark.wide
def test_the_documented_example(home: Home, tmp_path: Path, sample_root: Path) -> None:
    """docs/extractors.md's class, put into a file as it stands, tags every sample frame."""
    text = _DOCS.read_text()
    match = re.search(r"<!-- example: (\S+) -->\n```python\n(.*?)```", text, re.DOTALL)
    assert match is not None
    file = tmp_path / match[1]
    file.write_text(match[2])
    option = re.search(r"--extractor (\S+)", text)
    assert option is not None
    source = home.add(sample_root)
    home.scan(source)
    counts = run_extractor(home.store, source, extractor_in_file(f"{tmp_path}/{option[1]}"))
    assert (counts.tagged, counts.bad_files) == (24, 0)
    rows = home.rows(
        "SELECT count(*) FROM lake.main.tags_image_file JOIN metaocean USING (fkey) "
        "JOIN lake.main.tags_frame USING (fkey) "
        "WHERE bytes_per_pixel = size / (image_width * image_height)"
    )
    assert rows == [(24,)]
