"""A place without a home: which commands make one, and what the others say."""

import json
from pathlib import Path

import pytest

from api.settings import read_settings
from api.workspace import Workspace
from catalog.errors import InvalidInput, NotMade
from catalog.records.sources import recorded_sources
from tests.api.servers import framesift, several
from tests.pipeline.homes import SAMPLE

ASKING = [
    ["info"], ["show", "f"], ["source", "list"], ["source", "remove", "a2d2"], ["ingest", "a2d2"],
    ["watch", "a2d2"], ["sql", "select count(*) from metaocean"], ["select", "--has", "car"],
    ["classes"], ["histogram", "car"], ["facets"],
    ["gaps", "d"], ["tags", "list"], ["dataset", "list"],
    ["dataset", "create", "d"], ["stage", "d"], ["train", "d"], ["jobs", "list"], ["user", "list"],
    ["user", "add", "anna", "--role", "datauser", "--no-password"],
    ["policy", "list"], ["audit"], ["compact"],
    ["catalog", "log"], ["catalog", "check"],
]  # fmt: skip


def test_a_wrong_home_is_no_new_one(tmp_path: Path) -> None:
    """Commands that ask say that there is nothing, where, and what to do; nothing is made."""
    home = tmp_path / "hmoe"
    for command, (status, out, err) in zip(ASKING, several(home, *ASKING), strict=True):
        assert (status, out) == (1, ""), command
        assert err.startswith(("error: no catalog at ", "error: no records at ")), (command, err)
        assert str(home) in err, command
        assert "FRAMESIFT_HOME" in err, command
        assert "framesift source add" in err, command
        assert err.count("\n") == 1, command
    assert list(tmp_path.iterdir()) == []


def test_a_first_source_makes_a_home_and_says_so(tmp_path: Path) -> None:
    """Records and catalog, each with its place; a source that cannot be opened makes none."""
    home = tmp_path / "home"
    run = framesift(home, "source", "add", "a", tmp_path / "nothing")
    assert run.returncode == 1
    assert not home.exists()
    added = [["source", "add", name, str(SAMPLE), "--datasource", name] for name in ("a", "b")]
    (_, first, told), (_, second, again), (_, information, _) = several(
        home, *added, ["info", "--json"]
    )
    assert first.startswith("added source a: ")
    assert told.splitlines() == [
        f"made new records: {home}/records/records.sqlite",
        f"made a new catalog: {home}/catalog/catalog.sqlite",
    ]
    assert (second.startswith("added source b: "), again) == (True, "")
    assert {name: json.loads(information)[name] for name in ("metadata", "data", "records")} == {
        "metadata": f"{home}/catalog/catalog.sqlite",
        "data": f"{home}/catalog/data",
        "records": f"{home}/records/records.sqlite",
    }


@pytest.mark.parametrize("name", ["HOME", "CATALOG_METADATA", "CATALOG_DATA", "RECORDS", "CACHE"])
def test_an_empty_variable_is_no_place(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script's unset variable means neither the current folder nor another catalog."""
    monkeypatch.setenv(f"FRAMESIFT_{name}", "")
    with pytest.raises(InvalidInput, match=f"FRAMESIFT_{name}=: empty: .* unset the variable"):
        read_settings()


def test_the_variable_that_is_wrong_is_named(
    tmp_path: Path, catalogued: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Metadata elsewhere than in a home that is there."""
    monkeypatch.setenv("FRAMESIFT_HOME", str(catalogued))
    monkeypatch.setenv("FRAMESIFT_CATALOG_METADATA", str(tmp_path / "other.sqlite"))
    workspace = Workspace(read_settings(), on_making=None)
    with pytest.raises(
        NotMade, match=r"other\.sqlite: set FRAMESIFT_CATALOG_METADATA to where yours"
    ):
        _ = workspace.catalog
    assert [source.name for source in recorded_sources(workspace.records)] == ["a2d2"]
    assert list(tmp_path.iterdir()) == []
