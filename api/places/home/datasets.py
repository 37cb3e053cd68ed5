"""Datasets of a home."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from api.places.datasets import Body, Export
from api.schemas.datasets import DatasetBody, NewDataset, NewExtension, NewSplit
from api.services.new_dataset import (
    class_tags,
    divide_dataset,
    grow_dataset,
    make_dataset,
)
from api.services.rebuild_dataset import rebuild_dataset
from api.workspace import Workspace
from catalog.records.tables import Dataset
from pipeline.datasets.diff import diff_datasets, diff_to_json
from pipeline.datasets.export import export_text, write_export
from pipeline.manifest import Manifest
from pipeline.manifest_store import read_manifest


@dataclass(frozen=True)
class HomeDatasets:
    """A home."""

    workspace: Workspace

    def create(self, wanted: NewDataset, at: int | None) -> Body:
        """Choose frames and save them."""
        return _body(make_dataset(self.workspace, wanted, at))

    def divide(self, name: str, wanted: NewSplit) -> Body:
        """Divide one anew."""
        return _body(divide_dataset(self.workspace, name, wanted))

    def extend(self, name: str, wanted: NewExtension, at: int | None) -> Body:
        """Add frames to one."""
        return _body(grow_dataset(self.workspace, name, wanted, at))

    def rebuild(self, name: str) -> Body:
        """Make one's manifest again."""
        return _body(rebuild_dataset(self.workspace, name))

    def difference(self, before: str, after: str) -> Body:
        """What changed."""
        find = self.workspace.records.dataset
        return diff_to_json(diff_datasets(self.workspace.records, find(before), find(after)))

    def listed(self) -> Sequence[Body]:
        """Every version."""
        return [_body(found) for found in self.workspace.records.datasets()]

    def found(self, name: str) -> Body:
        """One."""
        return _body(self.workspace.records.dataset(name))

    def text(self, wanted: Export) -> Iterator[str]:
        """One as text."""
        manifest, tags = self._manifest(wanted)
        return export_text(manifest, tags, wanted.format, with_labels=wanted.with_labels)

    def write(self, wanted: Export, out: Path) -> None:
        """One as a file or folder."""
        manifest, tags = self._manifest(wanted)
        write_export(manifest, tags, wanted.format, out, with_labels=wanted.with_labels)

    def _manifest(self, wanted: Export) -> tuple[Manifest, Sequence[str]]:
        found = self.workspace.records.dataset(wanted.name)
        manifest = read_manifest(self.workspace.records, found).split(wanted.split)
        return manifest, class_tags(self.workspace, manifest)


def _body(dataset: Dataset) -> Body:
    return DatasetBody.of(dataset).model_dump(mode="json")
