"""Datasets: saved, versioned selections, and what they become for other programs."""

import builtins
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from api.schemas.datasets import DatasetAnswer, DatasetBody, DatasetRemoved, LayoutOfSources
from api.services.call import Service
from catalog.errors import FramesiftError, InvalidInput
from catalog.records.datasets import newest_datasets, recorded_dataset, recorded_datasets
from catalog.records.jobs import models_of_datasets
from catalog.values import Owner
from pipeline.datasets.export_formats import TABLES, ExportFormat
from query.question.wrong_value import checked

if TYPE_CHECKING:  # imported where it is used: short commands do without
    import pyarrow as pa

    from catalog.records.tables import Dataset
    from catalog.values import FrameProgress
    from pipeline.datasets.diff import DatasetDiff
    from pipeline.exports.export import TrainingExport
    from pipeline.exports.progress import Report
    from pipeline.manifest import Manifest

_CHUNK_BYTES = 1 << 20


class Datasets(Service):
    """Datasets of a home."""

    @property
    def _owner(self) -> Owner:
        return self._session.caller.owner

    def create(self, name: str, *, at: int | None = None, **how: Any) -> DatasetBody:
        """Choose frames and save them as a dataset's new version.

        Args:
            **how: More of api.schemas.new_datasets.NewDataset.
        """
        from api.schemas.new_datasets import NewDataset
        from api.services.datasets.new_dataset import make_dataset

        request = checked(NewDataset, name=name, **how)
        return self._body(make_dataset(self._workspace, request, at, self._owner))

    def divide(self, name: str, split: str, **how: Any) -> DatasetBody:
        """Divide a dataset's frames into other splits, as a new version of it."""
        from api.schemas.new_datasets import NewSplit
        from api.services.datasets.new_dataset import divide_dataset

        request = checked(NewSplit, split=split, **how)
        return self._body(divide_dataset(self._workspace, name, request, self._owner))

    def extend(self, name: str, *demands: Any, at: int | None = None, **how: Any) -> DatasetBody:
        """Add as few frames as close a gap, as a new version; its report says what stays open."""
        from api.schemas.new_datasets import NewExtension
        from api.services.datasets.new_dataset import grow_dataset

        request = checked(NewExtension, demands=demands, **how)
        return self._body(grow_dataset(self._workspace, name, request, at, self._owner))

    def reduce(self, name: str, frames: int, **how: Any) -> DatasetBody:
        """Keep the most informative frames of a dataset's split, as a new version of it."""
        from api.schemas.new_datasets import NewReduction
        from api.services.datasets.reduced import make_smaller  # with those of models

        request = checked(NewReduction, frames=frames, **how)
        return self._body(make_smaller(self._workspace, name, request, self._owner))

    def rebuild(self, name: str) -> DatasetBody:
        """Make a lost or damaged manifest again: api.services.datasets.rebuild_dataset."""
        from api.services.datasets.rebuild_dataset import rebuild_dataset

        return self._body(rebuild_dataset(self._workspace, name))

    def change(
        self, name: str, *, rename: str | None = None, description: str | None = None
    ) -> DatasetBody:
        """Rename a dataset with all its versions, or describe a version; how it stands then.

        Raises:
            InvalidInput: The name is none, or nothing is to be changed.
        """
        from pipeline.datasets.changes import describe_dataset, rename_dataset

        records = self._workspace.records
        if rename is None and description is None:
            raise InvalidInput(f"dataset {name}: give another name, or a description")
        if description is not None:
            described = describe_dataset(records, name, description)
            name = f"{described.name}@{described.version}"
        if rename is not None:
            renamed = rename_dataset(records, name, rename)
            name = f"{renamed.name}@{renamed.version}"
        return self.get(name)

    def remove(self, name: str) -> DatasetRemoved:
        """Remove every version of NAME, or NAME@VERSION alone: pipeline.datasets.changes."""
        from pipeline.datasets.changes import remove_dataset

        return DatasetRemoved(removed=remove_dataset(self._workspace.records, name))

    def diff(self, name: str, other: str, *, limit: int | None = None) -> Mapping[str, Any]:
        """Changes from one to the other: pipeline.datasets.diff.diff_to_json."""
        from pipeline.datasets.diff import diff_to_json

        return diff_to_json(self._compared(name, other, limit))

    def diff_text(self, name: str, other: str, *, limit: int | None = None) -> Iterator[str]:
        """`diff` as its text, piece by piece: pipeline.datasets.diff.diff_to_text."""
        from pipeline.datasets.diff import diff_to_text

        return diff_to_text(self._compared(name, other, limit))

    def diff_rows(self, name: str, other: str, *, limit: int | None = None) -> "pa.Table":
        """`diff` as a row for each frame that differs."""
        from pipeline.datasets.diff import diff_to_rows

        return diff_to_rows(self._compared(name, other, limit))

    def list(
        self,
        name: str | None = None,
        *,
        after: tuple[str, int] | None = None,
        limit: int | None = None,
    ) -> builtins.list[DatasetBody]:
        """Versions of every dataset, or of one: catalog.records.datasets.recorded_datasets."""
        records = self._workspace.readable_records
        versions = recorded_datasets(records, name, after=after, limit=limit)
        models = models_of_datasets(records, [version.id for version in versions])
        return [self._body(version, models.get(version.id, ())) for version in versions]

    def newest(self, *, limit: int, holding: str = "") -> builtins.list[DatasetBody]:
        """The versions that were made last, newest first: catalog.records.datasets."""
        versions = newest_datasets(self._workspace.records, limit=limit, holding=holding)
        return [self._body(version) for version in versions]

    def get(self, name: str) -> DatasetAnswer:
        """A dataset's newest version, or NAME@VERSION."""
        records = self._workspace.readable_records
        dataset = recorded_dataset(records, name)
        body = self._body(dataset, models_of_datasets(records, [dataset.id]).get(dataset.id, ()))
        return DatasetAnswer(**dict(body), layouts=self._layouts(dataset))

    def _layouts(self, dataset: "Dataset") -> builtins.list[LayoutOfSources] | None:
        header = Path(dataset.manifest) / "manifest.json"
        try:
            if self._workspace.is_limited or not header.is_file():
                # The part that the user sees, or what lies in S3; a manifest's reader takes longer.
                from pipeline.manifest import layout_rows
                from pipeline.manifest_store import read_manifest

                layouts = read_manifest(self._workspace.records, dataset).header.layouts
                rows = layout_rows(layouts)
            else:
                rows = json.loads(header.read_bytes())["layouts"]
            return [
                LayoutOfSources(layout=row["layout"].get("name", ""), sources=row["sources"])
                for row in rows
            ]
        except (FramesiftError, OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def exported(
        self,
        name: str,
        format: ExportFormat = "csv",  # noqa: A002
        *,
        split: str | None = None,
        with_labels: bool = False,
    ) -> Iterator[bytes]:
        """The text that `export` writes, as it is made; "fiftyone" is one JSON document."""
        from pipeline.datasets.export import export_text, fiftyone_document

        manifest, tags = self._manifest(name, split)
        if format in TABLES:
            return _table_file(manifest, tags, format)
        if format == "fiftyone":
            document = fiftyone_document(manifest, tags)
            return iter([json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()])
        lines = export_text(manifest, tags, format, with_labels=with_labels)
        return (text.encode() for text in lines)

    def export(
        self,
        name: str,
        path: Path,
        format: ExportFormat = "csv",  # noqa: A002
        *,
        split: str | None = None,
        with_labels: bool = False,
    ) -> Path:
        """Write a dataset for other programs, to a file; as "fiftyone", to a folder; the path."""
        from pipeline.datasets.export import write_export

        manifest, tags = self._manifest(name, split)
        write_export(manifest, tags, format, path, with_labels=with_labels)
        return path

    def export_for_training(
        self,
        name: str,
        path: Path,
        export: "TrainingExport",
        *,
        split: str | None = None,
        report: "Report" = lambda _: None,
    ) -> "FrameProgress":
        """Write a dataset's images and masks for another trainer, to a folder.

        Files are read where they lie; those that do not lie in folders of this machine, from the
        home's cache.

        Raises:
            InvalidInput: They lie elsewhere and are not staged.
        """
        from pipeline.cache.contents import staged_name
        from pipeline.cache.lease import MANIFESTS, Holder, leased
        from pipeline.manifest import Manifest
        from pipeline.manifest_store import read_manifest

        records = self._workspace.records
        record = recorded_dataset(records, name)
        manifest = read_manifest(records, record)
        roots = manifest.header.roots.values()
        elsewhere = next((root for root in roots if not _is_folder(root)), None)
        if elsewhere is None:
            return export.write(manifest.split(split), path, report=report)
        cache, staged = self._workspace.cache, staged_name(record)
        reference = f"{record.name}@{record.version}"
        with leased(cache, staged, Holder(reference)):
            folder = cache / MANIFESTS / staged
            if not folder.is_dir():
                raise InvalidInput(
                    f"dataset {reference}: {elsewhere} is no folder of this machine, and the "
                    f"dataset is not staged; bring its files here: framesift stage {reference}"
                )
            return export.write(Manifest.read(folder).split(split), path, report=report)

    def _body(self, dataset: "Dataset", models: Sequence[str] = ()) -> DatasetBody:
        return DatasetBody.of(dataset, self._workspace.place, models)

    def _compared(self, name: str, other: str, limit: int | None) -> "DatasetDiff":
        from pipeline.datasets.diff import diff_datasets

        records = self._workspace.records
        return diff_datasets(
            records, recorded_dataset(records, name), recorded_dataset(records, other), limit
        )

    def _manifest(self, name: str, split: str | None) -> "tuple[Manifest, builtins.list[str]]":
        """A dataset's frames, and the class tags of their pixels."""
        from pipeline.datasets.class_lists import tags_of
        from pipeline.manifest import Manifest
        from pipeline.manifest_store import read_manifest

        records = self._workspace.records
        manifest = read_manifest(records, recorded_dataset(records, name)).split(split)
        tags = builtins.list(tags_of(manifest))
        if self._workspace.is_limited:
            roots = {
                source: _root_for_limited(source, root)
                for source, root in manifest.header.roots.items()
            }
            manifest = Manifest(replace(manifest.header, roots=roots), manifest.frames)
        return manifest, tags


def _is_folder(root: str) -> bool:
    """True for a source whose files are opened by their paths."""
    return Path(root).is_absolute() and Path(root).is_dir()


def _root_for_limited(source: str, root: str) -> str:
    """A source's root as users limited to collections are told it: its name for a folder."""
    return root if "://" in root else source


def _table_file(
    manifest: "Manifest", tags: builtins.list[str], format_: ExportFormat
) -> Iterator[bytes]:
    from pipeline.datasets.export import write_export

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"frames.{format_}")
        write_export(manifest, tags, format_, path)
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                yield chunk
