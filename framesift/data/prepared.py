"""A prepared form: a dataset's frames decoded once.

images.npy      (N, h, w, 3) uint8 [RGB], memory-mapped
labels.npy      (N, h, w) uint8 [class id], memory-mapped
frames.lz4      in place of both in a form at full size: images and labels, each compressed
frames.npy      (N,): which frames it has (`has`: 1 image, 2 label), their checksums (CRC-32)
prepared.json   its dataset and size
classes.json    the classes
rows.npy        (n,) int64, only in what a job of kind "run" gets: rows of the job's frames
names.txt       only there: the split and fkey of each of those, a tab between
"""

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from framesift.data.classes import CLASSES_FILE, Classes
from framesift.errors import BadFile
from framesift.forms.optional import imported

ABOUT_FILE = "prepared.json"
_HAS_IMAGE, _HAS_LABEL = 1, 2

UInt8 = npt.NDArray[np.uint8]


class PreparedFrames:
    """Frames of a form; attributes as of framesift.data.frames.Stored."""

    staging: ClassVar[None] = None
    has_manifest_rows: ClassVar[bool] = False

    def __init__(self, folder: Path, dataset: str, classes: Classes) -> None:
        """Those of the form in a folder."""
        self.folder, self.dataset, self.classes = folder, dataset, classes

    @cached_property
    def names(self) -> Sequence[str]:
        """The fkey of each frame, or its row in the form."""
        if self._names_file is None:
            return [str(row) for row in self.rows]
        return [fkey for _, fkey in self._names_file]

    @cached_property
    def splits(self) -> Sequence[str] | None:
        """The split of each frame; None in a cache, where datasets of other splits share a form."""
        return None if self._names_file is None else [split for split, _ in self._names_file]

    @cached_property
    def rows(self) -> npt.NDArray[np.int64]:
        """(n,) int64: the row in the form of each frame."""
        chosen = self.folder / "rows.npy"
        if chosen.is_file():
            rows: npt.NDArray[np.int64] = np.load(chosen, allow_pickle=False)
            return rows
        return np.arange(len(self._arrays.frames), dtype=np.int64)

    def read(self, row: int) -> tuple[UInt8, UInt8 | None]:
        """A frame's image and class ids, arrays of its own.

        Raises:
            BadFile: The form lacks the frame, or it was damaged since.
        """
        position = int(self.rows[row])
        about = self._arrays.frames[position]
        if not about["has"] & _HAS_IMAGE:
            raise BadFile(
                f"{self.folder}: has no frame {self.names[row]}, whose files could not be decoded; "
                "framesift stage --prepare says why"
            )
        try:
            image = self._arrays.image(position)
            return image, self._arrays.label(position) if about["has"] & _HAS_LABEL else None
        except ValueError as error:
            raise BadFile(
                f"{self.folder}: frame {self.names[row]} is damaged; framesift stage --prepare "
                "makes it again"
            ) from error

    def label_path(self, row: int) -> None:  # noqa: ARG002 (of all that is stored)
        """None: labels are arrays, at the form's size."""
        return

    def label_size(self, row: int) -> None:  # noqa: ARG002 (of all that is stored)
        """None, likewise."""
        return

    @cached_property
    def _arrays(self) -> "_FormFiles":
        return _opened(self.folder)

    @cached_property
    def _names_file(self) -> list[tuple[str, str]] | None:
        file = self.folder / "names.txt"
        if not file.is_file():
            return None
        lines = file.read_text(encoding="utf-8", errors="surrogateescape").split("\n")
        return [(split, fkey) for split, _, fkey in (li.partition("\t") for li in lines if li)]

    def __getstate__(self) -> dict[str, Any]:
        """The place alone: another process maps the arrays itself."""
        return {"folder": self.folder, "dataset": self.dataset, "classes": self.classes}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Take what `__getstate__` gave."""
        self.__dict__.update(state)


class _FormFiles(Protocol):
    @property
    def frames(self) -> npt.NDArray[Any]: ...

    def image(self, position: int) -> UInt8:
        """A frame's image, an array of its own; ValueError where it is damaged."""
        ...

    def label(self, position: int) -> UInt8:
        """A frame's class ids, an array of its own; ValueError where they are damaged."""
        ...


@dataclass(frozen=True)
class _Arrays:
    """The arrays of a small form."""

    images: UInt8
    labels: UInt8
    frames: npt.NDArray[Any]

    def image(self, position: int) -> UInt8:
        return _whole(np.array(self.images[position]), self.frames[position]["image"])

    def label(self, position: int) -> UInt8:
        return _whole(np.array(self.labels[position]), self.frames[position]["label"])


@dataclass(frozen=True)
class _Packed:
    """The frames of a form at full size: LZ4 frames, image and label one behind the other."""

    content: UInt8
    frames: npt.NDArray[Any]

    def image(self, position: int) -> UInt8:
        frame = self.frames[position]
        rows, columns = int(frame["height_px"]), int(frame["width_px"])
        begin, size = int(frame["at"]), int(frame["image_bytes"])
        pixels = self._unpacked(begin, size, frame["image"], rows, 3 * columns)
        # Each row is stored as its differences from the row above.
        above, *rest = pixels
        for row in rest:
            np.add(row, above, out=row)
            above = row
        return pixels.reshape(rows, columns, 3)

    def label(self, position: int) -> UInt8:
        frame = self.frames[position]
        begin = int(frame["at"]) + int(frame["image_bytes"])
        rows, columns = int(frame["height_px"]), int(frame["width_px"])
        return self._unpacked(begin, int(frame["label_bytes"]), frame["label"], rows, columns)

    def _unpacked(self, begin: int, size: int, checksum: int, rows: int, row_bytes: int) -> UInt8:
        packed = _whole(self.content[begin : begin + size], checksum)
        content = imported("pyarrow").decompress(packed, rows * row_bytes, codec="lz4")
        return np.frombuffer(content, np.uint8).reshape(rows, row_bytes)


def _whole(array: UInt8, checksum: int) -> UInt8:
    if zlib.crc32(array.data) != checksum:
        raise ValueError("wrong checksum")
    return array


def _opened(folder: Path) -> _FormFiles:
    packed = folder / "frames.lz4"
    try:
        frames = np.load(folder / "frames.npy", mmap_mode="r", allow_pickle=False)
        if packed.exists():
            has_bytes = packed.stat().st_size > 0
            content = np.memmap(packed, np.uint8, "r") if has_bytes else np.zeros(0, np.uint8)
            return _Packed(content, frames)
        images, labels = (
            np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)
            for name in ("images", "labels")
        )
    except (OSError, ValueError, EOFError) as error:
        raise BadFile(f"{folder}: the prepared form cannot be opened: {error}") from error
    if images.shape != (*labels.shape, 3) or frames.shape != labels.shape[:1]:
        raise BadFile(f"{folder}: the arrays of the prepared form do not belong together")
    return _Arrays(images, labels, frames)


def read_prepared(folder: Path, classes: Path | None) -> PreparedFrames:
    """The frames of the form in a folder.

    Raises:
        BadFile: It is damaged, or its classes are not known.
    """
    try:
        about = json.loads((folder / ABOUT_FILE).read_text(encoding="utf-8"))
        dataset = str(about["dataset"])
    except OSError as error:
        raise BadFile(f"{folder}: {error.strerror or error}") from error
    except (ValueError, TypeError, KeyError) as error:
        raise BadFile(f"{folder}: {ABOUT_FILE} is damaged: {error}") from error
    form = PreparedFrames(
        folder.absolute(), dataset, Classes.read(classes or folder / CLASSES_FILE)
    )
    _opened(folder)
    return form
