"""A frame's two files, decoded: its image, PNG or JPEG by its content, and its label."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from framesift.data import jpeg
from framesift.data.classes import Classes
from framesift.data.png import content_of, decode_rgb, size_of
from framesift.data.waiting import Staging, awaited
from framesift.errors import BadFile

UInt8 = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class DatedFile:
    """A file, and which one it must be."""

    path: str
    """Where it lies."""
    size: int | None = None
    """Its size [bytes]; None where that is not known."""
    version: str | None = None
    """"mtime:<microseconds since 1970>"; None where that is not known."""
    segments: str | None = None
    """Of a panoptic label "id:category" with blanks between; None of any other file."""

    def check(self) -> None:
        """See that it is the file that was catalogued.

        Raises:
            BadFile: It is missing, or was changed since.
        """
        if self.size is None:
            return
        try:
            status = Path(self.path).stat()
        except OSError as error:
            raise BadFile(f"{self.path}: {error.strerror}") from error
        is_dated = self.version is not None and self.version.startswith("mtime:")
        now = f"mtime:{status.st_mtime_ns // 1000}"
        if status.st_size != self.size or (is_dated and now != self.version):
            raise BadFile(
                f"{self.path}: has changed since the dataset was made; put that file back, or make "
                "a dataset of what is there now (framesift ingest, framesift dataset create)"
            )


def decoded(
    image: DatedFile, label: DatedFile | None, classes: Classes, staging: Staging | None
) -> tuple[UInt8, UInt8 | None]:
    """A frame's image (H, W, 3) [RGB] and class ids (H, W); None where it has no label.

    Args:
        staging: That brings files which are missing; None where nothing does.

    Raises:
        BadFile: A file is missing or damaged, or they differ in size.
        MissingPackage: There is no Pillow, or of a JPEG no simplejpeg.
    """
    image.check()
    rgb = awaited(lambda: read_image(image.path), staging)
    if label is None:
        return rgb, None
    label.check()
    ids = awaited(lambda: classes.read_label(label.path, label.segments), staging)
    if ids.shape != rgb.shape[:2]:
        sizes = [f"{shape[1]}x{shape[0]}" for shape in (ids.shape, rgb.shape)]
        raise BadFile(
            f"{label.path}: label has {sizes[0]} pixels, but its image {image.path} has {sizes[1]}"
        )
    return rgb, ids


def label_size(label: DatedFile | None, staging: Staging | None) -> tuple[int, int] | None:
    """Height and width of a label [pixels]; None without one. Raises as `decoded`."""
    return None if label is None else awaited(lambda: size_of(label.path), staging)


def read_image(path: str) -> UInt8:
    """A camera image (H, W, 3) uint8 [RGB]; raises as `decoded`."""
    content = content_of(path)
    if not content.startswith(jpeg.SIGNATURE):
        return decode_rgb(path, content)
    try:
        return jpeg.decode_jpeg(content)
    except ValueError as error:
        raise BadFile(f"{path}: {' '.join(str(error).split())}") from error
