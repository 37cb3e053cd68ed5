"""A prepared form: a dataset's frames decoded at one size, in arrays that are memory-mapped.

images.npy      (N, h, w, 3) uint8 [RGB]
labels.npy      (N, h, w) uint8 [class id]
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
from typing import Any

import numpy as np
import numpy.typing as npt

from framesift.data.classes import CLASSES_FILE, Classes
from framesift.errors import BadFile

ABOUT_FILE = "prepared.json"
_HAS_IMAGE, _HAS_LABEL = 1, 2

UInt8 = npt.NDArray[np.uint8]


class PreparedFrames:
    """Frames of a form; attributes as of framesift.data.frames.Stored."""

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
        image = self._whole(self._arrays.images[position], about["image"], row)
        if not about["has"] & _HAS_LABEL:
            return image, None
        return image, self._whole(self._arrays.labels[position], about["label"], row)

    def _whole(self, mapped: UInt8, checksum: int, row: int) -> UInt8:
        array = np.array(mapped)
        if zlib.crc32(array.data) != checksum:
            raise BadFile(
                f"{self.folder}: frame {self.names[row]} is damaged; framesift stage --prepare "
                "makes it again"
            )
        return array

    @cached_property
    def _arrays(self) -> "_Arrays":
        return _Arrays.open(self.folder)

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


@dataclass(frozen=True)
class _Arrays:
    images: UInt8
    labels: UInt8
    frames: npt.NDArray[Any]

    @classmethod
    def open(cls, folder: Path) -> "_Arrays":
        try:
            opened = cls(
                *(np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)
                  for name in ("images", "labels", "frames"))
            )  # fmt: skip
        except (OSError, ValueError, EOFError) as error:
            raise BadFile(f"{folder}: the prepared form cannot be opened: {error}") from error
        shape = opened.labels.shape
        if opened.images.shape != (*shape, 3) or opened.frames.shape != shape[:1]:
            raise BadFile(f"{folder}: the arrays of the prepared form do not belong together")
        return opened


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
    _Arrays.open(folder)
    return form
