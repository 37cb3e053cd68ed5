"""Converts annotations into label images and a layout that scans read.

A label holds a digest of the shapes that it was painted from, in a text chunk: a convert that is
begun again writes what is missing or has changed, and nothing else. Labels appear whole.
"""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from io import BytesIO
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from catalog.errors import BadFile, InvalidInput, UnknownName
from catalog.storage.atomic_write import atomic_write, clear_parts
from catalog.values import FrameProgress, Problem
from ingest.conversion import layout_document
from ingest.conversion.annotations import UNLABELED, AnnotatedFrame
from ingest.conversion.paint import painted
from ingest.conversion.registry import FORMATS
from ingest.images.camera_image import image_size
from ingest.images.jpeg_segments import SEGMENT_BYTES
from ingest.labels.png_chunks import MAX_PIXELS

_PAINTED_AS = 1
"""Rises when a shape is painted otherwise."""

_DIGEST = "framesift-shapes"
_HEAD_BYTES = 256
"""Of a label, in which its digest stands: behind the header of 33 bytes."""

_AT_ONCE = 64
_CITYSCAPES = "cityscapes-polygons"


@dataclass
class Conversion(FrameProgress):
    """What a convert has done, of the frames of the annotations."""

    images_missing: int = 0
    """Labels whose image was not there, so that their sizes were not compared."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Shapes that make no pixels, by what they are."""

    def to_json(self) -> dict[str, Any]:
        """The counts and problems as data."""
        return super().to_json() | {
            "images_missing": self.images_missing,
            "left_out": dict(sorted(self.left_out.items())),
        }


def convert(
    format_name: str,
    sources: Sequence[Path],
    root: Path,
    images: Path | None = None,
    *,
    workers: int = 2,
    progress: Callable[[Conversion], None] = lambda _: None,
) -> Conversion:
    """Write a label image for each annotated frame, and the layout.

    Args:
        format_name: Of FORMATS.
        root: The data set's root: what is written, and the images, lie below it.
        images: Folder that the annotations name images below; the root when None.

    Raises:
        InvalidInput: No such format or source, or classes that a layout cannot have.
        BadFile: A file that holds annotations of many frames cannot be read.
    """
    if format_name not in FORMATS:
        raise UnknownName("format", format_name, FORMATS)
    images = root if images is None else images
    below = _below(images, root)
    annotations = FORMATS[format_name](sources, images)
    old = layout_document.read_document(root)
    is_cityscapes = format_name == _CITYSCAPES
    if is_cityscapes and below:
        raise InvalidInput(
            f"--images {images}: of Cityscapes it is the root, as --to is; leave it out"
        )
    document = (
        layout_document.of_cityscapes(old, root)
        if is_cityscapes
        else layout_document.general(below, old, root)
    )
    rows = (old or {}).get("classes", [])
    if not isinstance(rows, list):
        raise InvalidInput(f"{root / layout_document.FILE}: classes: expected a list of classes")
    document["classes"] = layout_document.classes_with(rows, annotations.categories)
    if document != old:
        layout_document.write_document(root, document)
    labels = _Labels(root, below, document["classes"], is_cityscapes=is_cityscapes)
    done = Conversion(annotations.expected)
    with ThreadPoolExecutor(workers, thread_name_prefix="convert") as pool:
        frames = _once(annotations.frames(labels.keys), labels.path)
        while some := list(islice(frames, _AT_ONCE)):
            for result in pool.map(labels.make, some):
                _count(done, result)
            done.left_out = annotations.left_out
            progress(done)
    done.left_out = annotations.left_out
    return done


@dataclass(frozen=True)
class _Made:
    """A frame's label."""

    is_written: bool
    has_image: bool


def _count(done: Conversion, result: "_Made | Problem") -> None:
    if isinstance(result, Problem):
        done.problems.append(result)
        return
    done.written += result.is_written
    done.unchanged += not result.is_written
    done.images_missing += not result.has_image


def _once(
    frames: Iterable[AnnotatedFrame | Problem], path_of: Callable[[str], str]
) -> Iterator[AnnotatedFrame | Problem]:
    """The frames, those whose label another one has already as problems."""
    labels: set[str] = set()
    for frame in frames:
        if isinstance(frame, AnnotatedFrame):
            path = path_of(frame.image)
            if path in labels:
                reason = f"another frame of the annotations has the same label, {path}"
                yield Problem("bad_file", frame.image, reason)
                continue
            labels.add(path)
        yield frame


class _Labels:
    """The labels of a data set, and the images beside them."""

    def __init__(
        self, root: Path, below: str, classes: Sequence[Mapping[str, Any]], *, is_cityscapes: bool
    ) -> None:
        self._root, self._images = root, root / below
        self._below, self._is_cityscapes = below, is_cityscapes
        self.keys = layout_document.keys_by_name(classes)
        self._background = self.keys[UNLABELED]
        self._is_wide = max(self.keys.values()) > 255
        self._cleared: set[Path] = set()

    def path(self, image: str) -> str:
        """Path of an image's label below the root."""
        if self._is_cityscapes:
            return f"{layout_document.LABELS}/{layout_document.cityscapes_label(image)}"
        image = str(PurePosixPath(self._below, image))
        return f"{layout_document.LABELS}/{layout_document.label_of(image)}"

    def make(self, frame: AnnotatedFrame | Problem) -> _Made | Problem:
        """A frame's label, where it is not there already; what is wrong where none can be made."""
        if isinstance(frame, Problem):
            return frame
        try:
            return self._made(frame)
        except BadFile as error:
            return Problem("bad_file", frame.image, str(error))

    def _made(self, frame: AnnotatedFrame) -> _Made:
        _check_name(frame.image)
        of_image = _size_of(self._images / frame.image)
        size = frame.size or of_image
        if size is None:
            raise BadFile(
                "neither the annotations say its size, nor is its image at "
                f"{self._images / frame.image}; give the images' folder (--images)"
            )
        if of_image not in (None, size):
            raise BadFile(
                f"the image is {_text(of_image)} pixels, and {_text(size)} by the annotations"
            )
        if min(size) < 1 or size[0] * size[1] > MAX_PIXELS:
            raise BadFile(f"{_text(size)} pixels; expected at least 1 x 1, at most {MAX_PIXELS:,}")
        target = self._root / self.path(frame.image)
        digest = self._digest(frame, size)
        is_there = digest.encode() in _head(target)
        if not is_there:
            canvas = painted(frame, size, self._background, wide=self._is_wide)
            self._write(target, _png(canvas, digest))
        return _Made(is_written=not is_there, has_image=of_image is not None)

    def _digest(self, frame: AnnotatedFrame, size: tuple[int, int]) -> str:
        shapes = [[each.key, each.kind, each.data, each.is_crowd] for each in frame.shapes]
        made_of = [_PAINTED_AS, size, self._background, self._is_wide, frame.largest_first, shapes]
        return hashlib.sha256(json.dumps(made_of).encode()).hexdigest()

    def _write(self, target: Path, png: bytes) -> None:
        folder = target.parent
        if folder not in self._cleared:
            self._cleared.add(folder)
            clear_parts(folder.glob(f"*.png.{'[0-9a-f]' * 32}.part"))
        atomic_write(target, png, parents=True, clear=False)


def _check_name(image: str) -> None:
    path = PurePosixPath(image)
    if not path.name or path.is_absolute() or ".." in path.parts or "\\" in image or "\0" in image:
        raise BadFile("is no path below the images' folder, such as scene/0001.jpg")


def _size_of(image: Path) -> tuple[int, int] | None:
    """(W, H) of an image as its header says; None where it is not there."""
    try:
        with image.open("rb") as file:
            handle = file.fileno()
            size = os.fstat(handle).st_size
            return image_size(lambda at: os.pread(handle, SEGMENT_BYTES, at), size)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise BadFile(f"the image cannot be read: {error.strerror}") from error
    except BadFile as error:
        raise BadFile(f"the image: {error}") from error


def _head(label: Path) -> bytes:
    try:
        with label.open("rb") as file:
            return file.read(_HEAD_BYTES)
    except OSError:
        return b""


def _png(canvas: Image.Image, digest: str) -> bytes:
    text = PngInfo()
    text.add_text(_DIGEST, digest)
    if canvas.mode == "I":
        canvas = Image.fromarray(np.asarray(canvas).astype(np.uint16))
    file = BytesIO()
    canvas.save(file, "PNG", pnginfo=text)
    return file.getvalue()


def _below(images: Path, root: Path) -> str:
    """The images' folder below the root; "" for the root itself."""
    images_path, above = images.resolve(), root.resolve()
    below = images_path.relative_to(above).as_posix() if images_path.is_relative_to(above) else None
    if below is None or below.partition("/")[0] == layout_document.LABELS:
        raise InvalidInput(
            f"--images {images}: expected a folder below {root} (--to), and not of its "
            f"{layout_document.LABELS}: a source has images and labels below one root"
        )
    return "" if below == "." else below


def _text(size: tuple[int, int] | None) -> str:
    return "no" if size is None else f"{size[0]} x {size[1]}"
