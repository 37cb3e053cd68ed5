"""The result of one validation shard on disk: ``shard-00000-of-00002.fsv``.

It says which model and dataset it is of, so that only what belongs together is added up. What every
merge reads lies at its beginning, apart from what is read frame by frame: ten thousand shards are
added up in a second, and a report holds one shard's cells and pictures at a time.

    8 bytes   b"FSVALID" and the format
    2 (4 + 4) lengths of the two parts of the header and their CRC-32, little-endian
    header    JSON: what all shards of a validation have in common, which is read once for all; then
              which shard it is, and of each section its length and CRC-32
    sections  sums (int64, little-endian, in the header's order); frames, cells, pictures, scenes
              (Arrow); where predictions are kept small: the length of each frame's (int32,
              little-endian), and they (PNG), one behind the other
"""

import io
import json
import math
import os
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from catalog.errors import BadFile
from catalog.storage.atomic_write import atomic_path
from training.validation.frame_cells import FRAMES_SCHEMA, FrameCells, FrameScore, Int32
from training.validation.frame_pictures import PICTURES_SCHEMA, FramePictures
from training.validation.metrics.confusion import Confusion
from training.validation.metrics.metric import Int64, Metric
from training.validation.metrics.table import METRICS
from training.validation.scene_sums import SceneSums, as_table, of_table
from training.validation.small_copies import SmallCopies, offsets_of

_MAGIC = b"FSVALID\x06"
_HEAD = struct.Struct("<8sIIII")


@dataclass(frozen=True)
class About:
    """The identity of a shard's result."""

    model_sha256: str
    """Digest of the model's weights' file."""
    model_dir: str
    """Where the model lay, for people."""
    step: int
    """Steps it was trained for."""
    classes: tuple[str, ...]
    """Names; a class id is a position in this list."""
    tags: tuple[str, ...]
    """Tag of each class."""
    label_tags: tuple[tuple[str, ...], ...]
    """Tags of the label classes that each is made of."""
    dataset: str
    """The dataset's name."""
    version: int
    """Its version."""
    dataset_id: str
    """Its id."""
    split: str
    """The split validated."""
    split_frames: int
    """Frames of the whole split."""
    shard: int
    """This shard, from 0."""
    shards: int
    """Number of shards."""
    class_map: Mapping[str, Any] | None = None
    """By which label classes are merged; None where each is a class."""
    lineage: Mapping[str, Any] = field(default_factory=dict)
    """What dataset and model were made of, for people: see `lineage_of`."""
    augment_test: str = ""
    """How each image was changed to be put through the model again; empty for none."""
    predictions: str = ""
    """Digest of the listing of predictions that another program made; empty for none."""


@dataclass(frozen=True)
class ShardResult:
    """The result of one shard."""

    about: About
    """What it is of."""
    metrics: Mapping[str, Metric]
    """Of all its frames, by name: training.validation.metrics.table."""
    frames: Sequence[FrameScore]
    """Scores of its frames, in order; none when there were more shards than frames."""
    cells: FrameCells = field(default_factory=FrameCells.none)
    """The confusion matrix of each of its frames."""
    trained_frames: int | None = 0
    """How many of them the model was trained on; None where that is unknown."""
    frames_of_trained_scenes: int = 0
    """How many others are of a scene that it was trained on."""
    skipped: Sequence[Mapping[str, Any]] = ()
    """Its frames that could not be read, each with the reason."""
    pictures: Sequence[FramePictures] = ()
    """Its worst and its most uncertain frames."""
    scenes: SceneSums = field(default_factory=dict)
    """Its metrics' sums, by scene."""
    small: SmallCopies = field(default_factory=SmallCopies.none)
    """What the model predicted for each frame, small; of no frame where nothing is kept."""

    @property
    def confusion(self) -> Confusion:
        """Its confusion matrix, and what follows from it."""
        return confusion_of(self.metrics)

    def write(self, results_dir: Path) -> Path:
        """Write it as its shard's result, aside and renamed; the file's path."""
        return self.write_to(shard_path(results_dir, self.about.shard, self.about.shards))

    def write_to(self, path: Path) -> Path:
        """Write it, aside and renamed; the path."""
        sums = [
            (f"{name}.{key}", array)
            for name, metric in self.metrics.items()
            for key, array in metric.state().items()
        ]
        frames = pa.Table.from_pylist([asdict(one) for one in self.frames], FRAMES_SCHEMA)
        pictures = pa.Table.from_pylist([asdict(one) for one in self.pictures], PICTURES_SCHEMA)
        sections = {
            "sums": b"".join(array.astype("<i8").tobytes() for _, array in sums),
            "frames": _as_bytes(frames),
            "cells": _as_bytes(pa.table(asdict(self.cells))),
            "pictures": _as_bytes(pictures),
            "scenes": _as_bytes(as_table(self.scenes)),
        }
        lengths = {name: [len(section), zlib.crc32(section)] for name, section in sections.items()}
        if self.small.length:
            sections["small_sizes"] = sizes = self.small.sizes.astype("<i4").tobytes()
            lengths["small_sizes"] = [len(sizes), zlib.crc32(sizes)]
            lengths["small"] = [self.small.length, _crc_of(self.small)]
        about = asdict(self.about)
        own = {
            "shard": about.pop("shard"),
            "frames": len(self.frames),
            "trained_frames": self.trained_frames,
            "frames_of_trained_scenes": self.frames_of_trained_scenes,
            "skipped": list(self.skipped),
            "sections": lengths,
        }
        common = {"about": about, "sums": [[name, list(array.shape)] for name, array in sums]}
        heads = [json.dumps(head).encode() for head in (common, own)]
        of_heads = (number for head in heads for number in (len(head), zlib.crc32(head)))
        with atomic_path(path, parents=True) as partial_path, partial_path.open("wb") as file:
            file.write(_HEAD.pack(_MAGIC, *of_heads))
            for section in (*heads, *sections.values()):
                file.write(section)
            if self.small.length:
                file.writelines(self.small)
        return path


@dataclass(frozen=True)
class StoredShard:
    """A shard's result on disk: what it is of in memory, the rest read when it is asked for."""

    path: str
    """The file."""
    about: About
    """What it is of."""
    number: int
    """How many frames it has."""
    trained_frames: int | None
    """As ShardResult's."""
    frames_of_trained_scenes: int
    """As ShardResult's."""
    skipped: Sequence[Mapping[str, Any]]
    """As ShardResult's."""
    _sections: Mapping[str, tuple[int, int, int]]

    def scores(self) -> pa.Table:
        """Its frames' scores, schema FRAMES_SCHEMA, in the split's order."""
        return self._table("frames")

    def cells(self) -> FrameCells:
        """The confusion matrix of each of its frames."""
        table = self._table("cells")
        return FrameCells(*(table[name].to_numpy() for name in ("frame", "cell", "pixels")))

    def scene_sums(self) -> SceneSums:
        """Its metrics' sums, by scene."""
        return of_table(self._table("scenes"), len(self.about.classes))

    def pictures(self, rows: Sequence[int]) -> list[FramePictures]:
        """Those of some frames, by their rows in the split, as far as it kept them."""
        row_set = set(rows)
        table = self._table("pictures")
        return [FramePictures(**one) for one in table.to_pylist() if one["row"] in row_set]

    @property
    def keeps_small(self) -> bool:
        """Whether it has small copies of predictions."""
        return "small" in self._sections

    def small(self) -> SmallCopies:
        """What the model predicted for each of its frames, small."""
        if not self.keeps_small:
            return SmallCopies.none(self.number)
        return SmallCopies(self._small_sizes(), (lambda: self._section("small"),))

    def small_places(self) -> tuple[Int64, Int32]:
        """Where each frame's small copy begins in the file, and its length: (frames,) [bytes]."""
        sizes = self._small_sizes()
        return offsets_of(sizes) + self._sections["small"][0], sizes

    def _small_sizes(self) -> Int32:
        return np.frombuffer(self._section("small_sizes"), "<i4").astype(np.int32)

    def _table(self, name: str) -> pa.Table:
        return pa.ipc.open_file(pa.BufferReader(self._section(name))).read_all()

    def _section(self, name: str) -> bytes:
        offset, length, crc = self._sections[name]
        try:
            with Path(self.path).open("rb") as file:
                file.seek(offset)
                return _unchanged(file.read(length), crc)
        except (OSError, ValueError) as error:
            raise _damaged(self.path, error) from error


def shard_name(shard: int, shards: int) -> str:
    """The name of the file of a shard's result."""
    return f"shard-{shard:05d}-of-{shards:05d}.fsv"


def shard_path(results_dir: Path, shard: int, shards: int) -> Path:
    """The file of a shard's result."""
    return results_dir / shard_name(shard, shards)


def compared_results(results_dir: Path) -> Path:
    """Folder of the results of the model that a validation compares its own with."""
    return results_dir / "compared"


def open_shard(path: Path | str) -> tuple[StoredShard, Int64]:
    """A shard's result, and the sums of all its metrics, one behind the other: see `metrics_of`.

    The sums of shards are added up: of ten thousand, each takes a tenth of a millisecond.

    Raises:
        FileNotFoundError: There is none.
        BadFile: It is damaged, or another release wrote it.
    """
    name = str(path)
    try:
        file = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return _opened(name, file)
        finally:
            os.close(file)
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, TypeError, struct.error) as error:
        raise _damaged(name, error) from error


def _opened(name: str, file: int) -> tuple[StoredShard, Int64]:
    beginning = os.pread(file, _BEGINNING, 0)
    magic, length, crc, own_length, own_crc = _HEAD.unpack_from(beginning)
    _need(magic == _MAGIC, "another release of Framesift wrote it, or another program")
    at = _HEAD.size
    common = _common(_unchanged(_part(file, beginning, at, length), crc))
    own = json.loads(_unchanged(_part(file, beginning, at + length, own_length), own_crc))
    at += length + own_length
    sections = {}
    for section, (size, section_crc) in own["sections"].items():
        sections[section] = at, size, section_crc
        at += size
    _need(os.fstat(file).st_size == at, "it is cut short")
    begin, size, section_crc = sections["sums"]
    sums = np.frombuffer(_unchanged(_part(file, beginning, begin, size), section_crc), "<i8")
    stored = StoredShard(
        name,
        About(**common, shard=own["shard"]),
        int(own["frames"]),
        own["trained_frames"],
        int(own["frames_of_trained_scenes"]),
        own["skipped"],
        sections,
    )
    return stored, sums


@lru_cache(8)
def _common(text: bytes) -> Mapping[str, Any]:
    """The attributes of About that the shards of a validation have in common: the same objects."""
    header = json.loads(text)
    about: dict[str, Any] = header["about"]
    about["classes"], about["tags"] = tuple(about["classes"]), tuple(about["tags"])
    about["label_tags"] = tuple(map(tuple, about["label_tags"]))
    layout = [[name, list(shape)] for name, shape in _layout(len(about["classes"]))]
    _need(header["sums"] == layout, "its metrics are another release's")
    return about


_BEGINNING = 24 << 10
"""Bytes read at once: header and sums, of 38 classes without many frames that were left out."""


def _part(file: int, beginning: bytes, begin: int, size: int) -> bytes:
    if begin + size <= len(beginning):
        return beginning[begin : begin + size]
    return os.pread(file, size, begin)


def metrics_of(sums: Int64, n_classes: int) -> dict[str, Metric]:
    """All metrics, by name, of their sums one behind the other.

    The states of a metric's parts add up to the state of the whole.
    """
    states: dict[str, dict[str, Any]] = {name: {} for name in METRICS}
    at = 0
    for full_name, shape in _layout(n_classes):
        name, key = full_name.split(".", 1)
        size = math.prod(shape)
        states[name][key] = sums[at : at + size].reshape(shape)
        at += size
    return {name: metric.from_state(states[name], n_classes) for name, metric in METRICS.items()}


@cache
def _layout(n_classes: int) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Names and shapes of the arrays of all metrics, in their order in a file."""
    return tuple(
        (f"{name}.{key}", array.shape)
        for name, metric in METRICS.items()
        for key, array in metric.empty(n_classes).state().items()
    )


def read_shard(path: Path) -> ShardResult:
    """A shard's whole result."""
    stored, sums = open_shard(path)
    frames = [FrameScore(**one) for one in stored.scores().to_pylist()]
    pictures = stored.pictures([frame.row for frame in frames])
    return ShardResult(
        stored.about,
        metrics_of(sums, len(stored.about.classes)),
        frames,
        stored.cells(),
        stored.trained_frames,
        stored.frames_of_trained_scenes,
        stored.skipped,
        pictures,
        stored.scene_sums(),
        stored.small(),
    )


def trained_frames_of(shards: Sequence[ShardResult | StoredShard]) -> int | None:
    """Number of these frames that the model was trained on; None where that is unknown."""
    numbers = [shard.trained_frames for shard in shards]
    return None if None in numbers else sum(filter(None, numbers))


def confusion_of(metrics: Mapping[str, Metric]) -> Confusion:
    """The confusion matrix among the metrics."""
    confusion = metrics["scores"]
    assert isinstance(confusion, Confusion)
    return confusion


def _as_bytes(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table.unify_dictionaries().combine_chunks())
    return sink.getvalue()


def _crc_of(parts: Iterable[bytes]) -> int:
    crc = 0
    for part in parts:
        crc = zlib.crc32(part, crc)
    return crc


def _need(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)


def _unchanged(content: bytes, crc: int) -> bytes:
    _need(zlib.crc32(content) == crc, "its bytes have changed")
    return content


def _damaged(path: str, reason: object) -> BadFile:
    return BadFile(f"is damaged ({reason}); validate this shard again", path)
