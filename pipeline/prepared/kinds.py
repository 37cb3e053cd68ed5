"""Both kinds of prepared forms, small and at full size, as what makes them and opens them."""

from pathlib import Path
from typing import Any, Protocol

import numpy.typing as npt

from ingest.labels.dataset_classes import DatasetClasses
from pipeline.manifest import Manifest
from pipeline.prepared.arrays import Arrays
from pipeline.prepared.decoded_frames import UInt8
from pipeline.prepared.form import (
    PreparedForm,
    form_bytes,
    open_form,
)
from pipeline.prepared.full_form import FULL_FRAME, FullForm, open_full_form, packed_bytes
from pipeline.prepared.packed_frames import PackedFrames
from pipeline.runs.size import FormSize, FullSize

Form = PreparedForm | FullForm


class FormFiles(Protocol):
    """Files of a form that is being made."""

    @property
    def frames(self) -> npt.NDArray[Any]:
        """(N,): which frames it has."""
        ...

    @property
    def classes(self) -> DatasetClasses:
        """That labels are decoded with for `put`."""
        ...

    def put(self, position: int, image: UInt8, label: UInt8 | None) -> None:
        """Write a frame, given at its size on disk."""
        ...

    def copy(self, position: int, earlier: Any) -> None:
        """Write a frame that an earlier form, of the same dataset and size, has undamaged."""
        ...


def created_files(folder: Path, manifest: Manifest, size: FormSize) -> FormFiles:
    """Files of a form of a manifest's frames that hold no frame yet."""
    if isinstance(size, FullSize):
        return PackedFrames.create(folder, manifest)
    return Arrays.create(folder, manifest, size)


def opened_files(folder: Path, manifest: Manifest, size: FormSize) -> FormFiles:
    """Files that another process created."""
    kind = PackedFrames if isinstance(size, FullSize) else Arrays
    return kind.open(folder, manifest)


def opened_form(manifest: Manifest, size: FormSize, folder: Path | None = None) -> Form | None:
    """The form of a manifest's frames; None where there is none that is whole.

    Args:
        manifest: The dataset, with all its splits.
        folder: That of all forms; beside the staged manifest by default.
    """
    if isinstance(size, FullSize):
        return open_full_form(manifest, folder)
    return open_form(manifest, size, folder)


def files_of(size: FormSize) -> int:
    """How many files of a form hold its frames."""
    return len((FullForm if isinstance(size, FullSize) else PreparedForm).FILES)


def known_bytes(frames: int, size: FormSize, earlier: Form | None) -> int:
    """Space that a form of so many frames takes, as far as it is known before they are decoded.

    Args:
        earlier: The form that intact ones are copied from.
    """
    if isinstance(size, FullSize):
        copied = earlier.packed.nbytes if isinstance(earlier, FullForm) else 0
        return frames * FULL_FRAME.itemsize + copied
    return form_bytes(frames, size)


def made_bytes(frames: npt.NDArray[Any], size: FormSize) -> int:
    """Space that a form takes [bytes], but for some hundred of headers.

    Args:
        frames: Of it.
    """
    if isinstance(size, FullSize):
        return packed_bytes(frames) + frames.nbytes
    return form_bytes(len(frames), size)
