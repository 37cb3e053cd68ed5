"""A list of files: a line for each frame, its image's path, and its label's after a tab.

The segments of a panoptic label stand after another tab.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from framesift.data.classes import CLASSES_FILE, Classes
from framesift.data.frame_files import DatedFile, decoded, label_size
from framesift.data.waiting import Staging
from framesift.errors import BadFile

UInt8 = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class FileList:
    """Frames of a list; attributes as of framesift.data.frames.Stored."""

    names: Sequence[str]
    labels: Sequence[DatedFile | None]
    classes: Classes
    dataset: str = ""
    splits: Sequence[str] | None = None
    staging: Staging | None = None
    """That brings files which are missing; None where nothing does."""
    has_manifest_rows: ClassVar[bool] = False

    def read(self, row: int) -> tuple[UInt8, UInt8 | None]:
        """A frame's image and class ids."""
        return decoded(DatedFile(self.names[row]), self.labels[row], self.classes, self.staging)

    def label_path(self, row: int) -> str | None:
        """The file of a frame's label."""
        label = self.labels[row]
        return None if label is None else label.path

    def label_size(self, row: int) -> tuple[int, int] | None:
        """Height and width of a frame's label [pixels]."""
        return label_size(self.labels[row], self.staging)


def read_file_list(path: Path, classes: Path | None) -> FileList:
    """The frames of a list, as `framesift dataset export --format files --with-labels` writes one.

    Relative paths are relative to the list's folder.

    Raises:
        BadFile: It, or the list of classes, cannot be read.
    """
    try:
        lines = path.read_text(encoding="utf-8", errors="surrogateescape").split("\n")
    except OSError as error:
        raise BadFile(f"{path}: {error.strerror or error}") from error
    pairs = [line.split("\t") for line in lines if line]
    for number, pair in enumerate(pairs, 1):
        if len(pair) > 3 or not pair[0] or "://" in pair[0]:
            raise BadFile(
                f"{path}: frame {number}: expected an image's path on this machine, and its "
                "label's after a tab"
            )
    folder = path.absolute().parent
    listed = Classes.read(classes or path.with_name(CLASSES_FILE))
    return FileList(
        [str(folder / pair[0]) for pair in pairs],
        [_label(folder, *pair[1:]) for pair in pairs],
        listed,
        staging=Staging.beside(folder),
    )


def _label(folder: Path, label: str = "", segments: str | None = None) -> DatedFile | None:
    return DatedFile(str(folder / label), segments=segments) if label else None
