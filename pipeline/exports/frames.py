"""The frames of an export: their images as they are, and their labels as class ids."""

import hashlib
import io
import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

from PIL import Image

from ingest.images.camera_image import BEGIN_BYTES, media_type
from pipeline.manifest import Manifest
from pipeline.prepared.decoded_frames import DecodedFrames, UInt8
from pipeline.prepared.label_classes import LabelClasses

SUFFIXES = {"image/png": ".png", "image/jpeg": ".jpg"}
"""Suffix of an image, by the media type that its content shows."""

_OTHER = re.compile(r"[^A-Za-z0-9-]+")
_LONGEST_NAME = 200


@dataclass(frozen=True)
class ExportedFrame:
    """A frame's image and mask."""

    name: str
    """Its name, which no other frame of the export has, without a suffix."""
    suffix: str
    """Of its image: one of SUFFIXES."""
    image: bytes
    """The image's file as it is."""
    ids: UInt8
    """(H, W) uint8 [class id]; UNKNOWN_CLASS (255) of pixels of no class or of an ignored one."""

    @property
    def mask(self) -> bytes:
        """The class ids as a PNG of 8 bits of grey."""
        file = io.BytesIO()
        Image.fromarray(self.ids).save(file, "PNG")
        return file.getvalue()


class FramesToExport:
    """The frames of a dataset whose files lie in folders of this machine."""

    def __init__(self, manifest: Manifest, classes: LabelClasses) -> None:
        """Read no file yet."""
        self.manifest, self.classes = manifest, classes
        self.splits: list[str] = manifest.frames["split"].to_pylist()
        self._decoded = DecodedFrames(manifest, manifest.header.dataset_classes)

    def __len__(self) -> int:
        """Number of frames."""
        return len(self.manifest)

    @cached_property
    def names(self) -> list[str]:
        """Name of each frame: its source and its image's path, in letters that every reader takes.

        Frames whose paths differ in other characters alone are numbered in the dataset's order.
        """
        columns = (self.manifest.frames[name].to_pylist() for name in ("image_source", "image"))
        names, times = [], Counter[str]()
        used: set[str] = set()
        for source, key in zip(*columns, strict=True):
            path = f"{source}/{PurePosixPath(key).with_suffix('')}"
            name = _OTHER.sub("_", path)
            if len(name) > _LONGEST_NAME:
                digest = hashlib.sha256(path.encode(errors="surrogateescape")).hexdigest()
                name = f"{name[-_LONGEST_NAME:]}-{digest[:12]}"
            first = name
            while name in used:
                times[first] += 1
                name = f"{first}-{times[first] + 1}"
            used.add(name)
            names.append(name)
        return names

    def rows(self, split: str) -> list[int]:
        """The rows of a split's frames, in the dataset's order."""
        return [row for row, each in enumerate(self.splits) if each == split]

    def about(self, row: int) -> dict[str, Any]:
        """Where a frame comes from: its fkey, scene and camera."""
        names = ("fkey", "scene", "camera")
        return {name: self.manifest.frames[name][row].as_py() for name in names}

    def frame(self, row: int) -> ExportedFrame:
        """A frame, read and checked against the dataset.

        Raises:
            BadFile: A file of it is missing, has changed or cannot be decoded, or its label has
                another size than its image.
        """
        image, size_px = self._decoded.image_file(row)
        suffix = SUFFIXES[media_type(image[:BEGIN_BYTES]) or "image/png"]
        ids = self.classes.merged(self._decoded.label(row, size_px))
        return ExportedFrame(self.names[row], suffix, image, ids)

    def ids(self, row: int) -> UInt8:
        """A frame's class ids, as `ExportedFrame.ids`; raises as `frame`."""
        return self.classes.merged(self._decoded.label(row, self._decoded.size_px(row)))
