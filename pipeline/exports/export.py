"""Writes a dataset for another trainer. What is begun again goes on where it was."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catalog.errors import BadFile, InvalidInput, StorageError
from catalog.storage.atomic_write import atomic_write
from catalog.storage.bounded_file import parsed_json, read_bounded
from catalog.storage.file_lock import open_locked
from catalog.values import FrameProgress
from pipeline.exports.coco import write_coco
from pipeline.exports.formats import TrainingFormat
from pipeline.exports.frames import FramesToExport
from pipeline.exports.hugging_face import write_hugging_face
from pipeline.exports.mmseg import write_mmseg
from pipeline.exports.progress import Report
from pipeline.exports.shards import SHARD_BYTES
from pipeline.exports.ultralytics import check_splits, write_ultralytics
from pipeline.exports.webdataset import write_webdataset
from pipeline.manifest import Manifest
from pipeline.prepared.label_classes import LabelClasses
from pipeline.runs.class_map import ClassMap

ABOUT = "framesift.json"
"""Of an export's folder: what it is of, by which a later export knows whether it may go on."""

_FORMAT = 1
_MOST_BYTES = 1 << 20
_FOLDERS: Mapping[TrainingFormat, Callable[..., None]] = {
    "mmseg": write_mmseg,
    "ultralytics": write_ultralytics,
    "coco": write_coco,
}
_SHARDS: Mapping[TrainingFormat, Callable[..., None]] = {
    "hf": write_hugging_face,
    "webdataset": write_webdataset,
}


@dataclass(frozen=True)
class TrainingExport:
    """How a dataset is written for another trainer."""

    format: TrainingFormat
    classes: ClassMap | None = None
    """By which label classes are merged; None for the dataset's own."""
    shard_bytes: int = 0
    """Files of a shard are no more than this together [bytes]; 0 for SHARD_BYTES. Of hf and
    webdataset alone.
    """

    def write(
        self,
        manifest: Manifest,
        out: Path,
        *,
        workers: int = 2,
        report: Report = lambda _: None,
    ) -> FrameProgress:
        """Write what is missing in a folder.

        Args:
            manifest: A dataset whose files lie in folders of this machine, or one split of it.

        Raises:
            InvalidInput: The dataset has frames without label, or does not fit the format or the
                class map; or the folder holds something else.
            StorageError: The folder cannot be written.
        """
        if self.shard_bytes and self.format not in _SHARDS:
            raise InvalidInput(
                f"--shard-bytes {self.shard_bytes:,}: format {self.format} has no shards, "
                f"{' and '.join(_SHARDS)} have; leave it out"
            )
        header = manifest.need_labels().header
        name = f"{header.name}@{header.version}"
        classes = LabelClasses.of(header.dataset_classes, self.classes, name)
        frames = FramesToExport(manifest, classes)
        if self.format == "ultralytics":
            check_splits(frames)
        done = FrameProgress(len(frames))
        with _claimed(out, self._about(manifest)):
            if self.format in _SHARDS:
                shard_bytes = self.shard_bytes or SHARD_BYTES
                _SHARDS[self.format](frames, out, shard_bytes, workers, done, report)
            else:
                _FOLDERS[self.format](frames, out, workers, done, report)
        return done

    def _about(self, manifest: Manifest) -> dict[str, Any]:
        header = manifest.header
        return {
            "export_format": _FORMAT,
            "format": self.format,
            "dataset": f"{header.name}@{header.version}",
            "id": header.id,
            "frames": len(manifest),
            "splits": sorted({*manifest.frames["split"].to_pylist()}),
            "classes": None if self.classes is None else self.classes.as_json(),
            "shard_bytes": self.shard_bytes,
        }


@contextmanager
def _claimed(out: Path, about: Mapping[str, Any]) -> Iterator[None]:
    """The folder for the block, for one export at a time.

    Raises:
        InvalidInput: It holds something else, another export, or another process exports to it.
        StorageError: It cannot be written.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        names = {path.name for path in out.iterdir()}
        handle = open_locked(out, os.O_RDONLY, wait_s=0)
    except OSError as error:
        raise StorageError(f"{out}: cannot be written: {error.strerror}", str(out)) from error
    if handle is None:
        raise InvalidInput(f"{out}: another export writes there; wait for it, or name another one")
    try:
        if names and (present := _read_about(out)) != about:
            what = f"an export of {present['dataset']}" if present else "something else"
            differs = _difference(present, about) if present else ""
            raise InvalidInput(
                f"{out}: the folder holds {what}{differs}; name one that does not exist"
            )
        atomic_write(out / ABOUT, json.dumps(about, indent=2, ensure_ascii=False))
        yield
    finally:
        os.close(handle)


def _read_about(out: Path) -> dict[str, Any] | None:
    try:
        about = parsed_json(read_bounded(out / ABOUT, _MOST_BYTES))
    except (OSError, ValueError, BadFile):
        return None
    return about if isinstance(about, dict) and "dataset" in about else None


def _difference(present: Mapping[str, Any], about: Mapping[str, Any]) -> str:
    for name, value in about.items():
        if present.get(name) != value and name not in ("classes",):
            return f" with {name} {present.get(name)}, not {value}"
    return " with other classes"
