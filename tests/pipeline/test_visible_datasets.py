"""The visible parts of datasets: looked at once, whatever the disk keeps of them."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from api.services.accounts.callers import Caller
from api.services.session import Session
from api.workspace import Workspace
from catalog.limited_store import LimitedStore
from catalog.records.datasets import recorded_dataset
from catalog.records.tables import Dataset
from catalog.storage.lru import Lru
from pipeline.datasets import visible_datasets
from pipeline.datasets.visible_datasets import VisibleDatasets
from pipeline.manifest import Manifest
from pipeline.manifest_store import read_manifest
from query.question.collection_rule import rows_of
from tests.pipeline.test_datasets import make

SCENE = "20260311_130314"
RULE = f"filename like '%/{SCENE}/%'"


class Looks:
    """Visible parts as a process of its own computes them, and how often it read which dataset."""

    def __init__(self, workspace: Workspace) -> None:
        self._records, self.read = workspace.records, Counter[str]()
        catalog = LimitedStore(workspace.whole_catalog, rows_of((RULE,)))
        self.seen = VisibleDatasets(catalog, workspace.home / "seen", self._read, Lru(100))

    def _read(self, dataset: Dataset) -> Manifest:
        self.read[dataset.name] += 1
        return read_manifest(self._records, dataset)


@pytest.mark.wide
def test_a_dataset_is_looked_at_once(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """More datasets than manifests are kept: neither a list, nor another process looks again.

    One of which no frame is seen is remembered, too. A manifest that is gone is made again, the
    same one.
    """
    monkeypatch.setattr(visible_datasets, "_KEPT", 2)
    datasets = [make(workspace, name) for name in ("a", "b", "ab", "c")]
    Session(workspace).datasets.create("hidden", question={"scenes": ["20260721_110506"]})
    datasets.append(recorded_dataset(workspace.records, "hidden"))
    first, manifests = Looks(workspace), workspace.home / "seen"
    parts = [first.seen.of(dataset) for dataset in datasets]
    assert [part is None for part in parts] == [False, False, False, False, True]
    for _ in range(3):
        assert [first.seen.of(dataset) for dataset in datasets] == parts
    assert first.read == {"a": 1, "b": 1, "ab": 1, "c": 1, "hidden": 1}
    other = Looks(workspace)
    assert [other.seen.of(dataset) for dataset in datasets] == parts
    assert other.read == {}
    for _ in range(2):
        for dataset, part in zip(datasets[:4], parts[:4], strict=True):
            assert part is not None
            manifest = other.seen.manifest(dataset)
            assert (manifest.header.id, len(manifest)) == (part[0].id, part[0].frames)
            assert set(manifest.frames["scene"].to_pylist()) == {SCENE}
    assert len([path for path in manifests.iterdir() if len(path.name) == 32]) == 2


@pytest.mark.wide
def test_info_looks_at_no_dataset(workspace: Workspace) -> None:
    """A limited user's counts are of their own; they cost no look, however many there are."""
    for name in ("a", "b", "ab"):
        make(workspace, name)
    caller = Caller("anna", frozenset({"collectionadmin"}), "admin", logged_in=True)
    session = Session(workspace, replace(caller, rules=(RULE,), account="1 now"))
    assert session.datasets.create("mine").name == "anna~mine"
    for path in sorted((workspace.home / "seen").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    info = session.info()
    assert (info.sources, info.datasets, info.jobs) == (0, 1, 0)
    assert Session(workspace).info().datasets == 4
    assert _files(workspace.home / "seen") == []


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]
