"""Frames as a sequence of (image, class ids)."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, overload

import numpy as np
import numpy.typing as npt

from framesift.data.classes import Classes
from framesift.data.file_list import read_file_list
from framesift.data.manifest import HEADER_FILE, read_manifest
from framesift.data.prepared import ABOUT_FILE, read_prepared
from framesift.data.waiting import Staging, Turn
from framesift.errors import BadFile, UnknownName

if TYPE_CHECKING:
    from pipeline.cache.reading import Reading

UInt8 = npt.NDArray[np.uint8]


class Stored(Protocol):
    """Frames where they lie: files, or the arrays of a prepared form."""

    @property
    def dataset(self) -> str:
        """NAME@VERSION; empty where that is not known."""
        ...

    @property
    def classes(self) -> Classes:
        """The label classes."""
        ...

    @property
    def names(self) -> Sequence[str]:
        """The fkey of each frame, or the path of its image where that is not known."""
        ...

    @property
    def splits(self) -> Sequence[str] | None:
        """The split of each frame; None where that is not known."""
        ...

    def read(self, row: int) -> tuple[UInt8, UInt8 | None]:
        """A frame's image (H, W, 3) [RGB] and class ids (H, W); None where it has no label.

        Raises:
            BadFile: A file is missing or damaged.
        """
        ...

    def label_path(self, row: int) -> str | None:
        """The file of a frame's label; None where it has none, or no file of its own."""
        ...

    def label_size(self, row: int) -> tuple[int, int] | None:
        """Height and width of that file [pixels]; raises as `read`."""
        ...

    @property
    def staging(self) -> Staging | None:
        """That brings files which are missing; None where nothing does."""
        ...

    @property
    def has_manifest_rows(self) -> bool:
        """True where a frame's row is that of its manifest."""
        ...


class Frames(Sequence[tuple[UInt8, UInt8 | None]]):
    """Frames of a dataset, each a pair of arrays.

    An item is (image, class ids): (H, W, 3) uint8 [RGB], and (H, W) uint8 [class id] with
    UNKNOWN_CLASS (255) where the colour is in no class list, or None where the frame has no label.
    It is read when it is asked for, so that several threads, and processes that get this object
    pickled, may share the work.
    """

    def __init__(self, stored: Stored, rows: npt.NDArray[np.int64]) -> None:
        """Frames of a store, by their rows in it."""
        self._stored, self._rows = stored, rows

    def __repr__(self) -> str:
        """Number of frames and their dataset; nothing is read."""
        return f"<Frames: {len(self):,} of {self.dataset or 'a list of files'}>"

    def __len__(self) -> int:
        """Number of frames."""
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> tuple[UInt8, UInt8 | None]: ...
    @overload
    def __getitem__(self, index: slice) -> "Frames": ...
    def __getitem__(self, index: int | slice) -> "tuple[UInt8, UInt8 | None] | Frames":
        """A frame's (image, class ids); of a slice the Frames in it, which reads nothing.

        Raises:
            IndexError: There is no such frame.
            BadFile: A file is missing, damaged, or not the dataset's.
        """
        if isinstance(index, slice):
            return Frames(self._stored, self._rows[index])
        if isinstance(index, Turn) and self._stored.staging is not None:
            self._stored.staging.reads(index)
        return self._stored.read(int(self._rows[index]))

    def __iter__(self) -> Iterator[tuple[UInt8, UInt8 | None]]:
        """Each frame, in order."""
        return (self._stored.read(int(row)) for row in self._rows)

    @property
    def dataset(self) -> str:
        """NAME@VERSION of the dataset; empty where that is not known."""
        return self._stored.dataset

    @property
    def classes(self) -> Classes:
        """Class names and colours; a class id is a position in `classes.names`."""
        return self._stored.classes

    @property
    def names(self) -> list[str]:
        """The fkey of each frame, in order; of a list of files the path of each image."""
        names = self._stored.names
        return [names[int(row)] for row in self._rows]

    def label_path(self, index: int) -> str | None:
        """The file of a frame's label; None where it has none, or the frames are prepared."""
        return self._stored.label_path(int(self._rows[index]))

    def label_size(self, index: int) -> tuple[int, int] | None:
        """Height and width of the file of a frame's label [pixels]; None as of `label_path`.

        Raises:
            BadFile: It is missing, or no PNG.
        """
        return self._stored.label_size(int(self._rows[index]))

    @property
    def is_staged_meanwhile(self) -> bool:
        """True where a staging brings these frames while they are read."""
        return self._stored.staging is not None

    def tell_order(self, reading: "Reading") -> "Reading | None":
        """Have a staging that fetches these frames meanwhile follow the order of a rank.

        Returns:
            What the turns of its examples tell (framesift.data.waiting.Turn); None where nothing
            is staged meanwhile, or the frames are not a manifest's.
        """
        staging = self._stored.staging
        if staging is None or not self._stored.has_manifest_rows:
            return None
        reading = replace(reading, rows=staging.rows_file(self._rows.tolist()))
        staging.begin(reading)
        return reading

    def shard(self, rank: int, ranks: int) -> "Frames":
        """Every `ranks`-th frame from the `rank`-th: shards are disjoint and cover all.

        Raises:
            ValueError: Not 0 <= rank < ranks.
        """
        if not 0 <= rank < ranks:
            raise ValueError(f"rank {rank} of {ranks}: expected 0 <= rank < ranks")
        return self[rank::ranks]


def open_frames(
    path: str | Path, split: str | None = None, *, classes: str | Path | None = None
) -> Frames:
    """The frames of a manifest, a staged manifest, a prepared form, or a list of files.

    Args:
        path: A manifest's folder or its manifest.json; a prepared form's folder; or a text file
            with a line for each frame: the image's path, and the label's after a tab.
        split: Only the frames of this split; all of them when None.
        classes: Of a list of files and of a prepared form, the classes.json; beside the list or in
            the form's folder by default.

    Raises:
        BadFile: Nothing of that kind lies there, or it is damaged, or its files are not on this
            machine.
        UnknownName: It has no such split.
        MissingPackage: It is a manifest, and pyarrow is not installed; frames of a form at full
            size need it as well.
    """
    location = Path(path)
    if location.name == HEADER_FILE or (location / HEADER_FILE).is_file():
        stored: Stored = read_manifest(
            location.parent if location.name == HEADER_FILE else location
        )
    elif (location / ABOUT_FILE).is_file():
        stored = read_prepared(location, None if classes is None else Path(classes))
    elif location.is_file():
        stored = read_file_list(location, None if classes is None else Path(classes))
    else:
        raise BadFile(
            f"{location}: no frames there; expected the folder of a manifest (with {HEADER_FILE}) "
            f"or of a prepared form (with {ABOUT_FILE}), or a list of files"
        )
    return Frames(stored, _rows(stored, split, location))


def _rows(stored: Stored, split: str | None, location: Path) -> npt.NDArray[np.int64]:
    if split is None:
        return np.arange(len(stored.names), dtype=np.int64)
    splits = stored.splits
    if splits is None:
        raise UnknownName(
            f"split '{split}': {location} does not know its frames' splits; open its manifest, or "
            "leave the split out"
        )
    known = list(dict.fromkeys(splits))
    if split not in known:
        raise UnknownName(
            f"split '{split}': {stored.dataset} has {', '.join(known)}", details={"nearest": known}
        )
    return np.array([row for row, of in enumerate(splits) if of == split], np.int64)
