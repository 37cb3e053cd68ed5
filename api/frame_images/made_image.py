"""Images that are drawn of files: the same files and parameters give the same image."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import PIL

from api.frame_images.drawing import MAX_BYTES, Look
from catalog.errors import BadFile
from catalog.values import File
from ingest.images.camera_image import DECODER

_PROGRAMS = (PIL.__version__, DECODER)


class PictureFile(Protocol):
    """What an image is made of: a file of a source, or a part of a job's result."""

    @property
    def entry(self) -> File:
        """Its key and size."""
        ...

    @property
    def identity(self) -> str:
        """A name of this content."""
        ...

    def read(self, start: int, length: int) -> bytes:
        """Exactly that part of the content."""
        ...


@dataclass(frozen=True)
class MadeImage:
    """An image that is made of files, and always comes out the same."""

    what: str
    """What of them is drawn, with all parameters."""
    files: tuple[PictureFile, ...]
    """What it is made of."""
    look: Look
    """How it comes out."""
    draw: Callable[..., bytes]
    """Draws it, given the files' contents."""

    @property
    def key(self) -> str:
        """Another one whenever something else would come out."""
        parts = (self.what, self.look, *(file.identity for file in self.files), _PROGRAMS)
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def made(self) -> bytes:
        """The image.

        Raises:
            BadFile: A file cannot be drawn.
        """
        for file in self.files:
            if file.entry.size > MAX_BYTES:
                raise BadFile(
                    f"has {file.entry.size:,} bytes; at most {MAX_BYTES:,} are drawn",
                    file.entry.key,
                )
        return self.draw(*(file.read(0, file.entry.size) for file in self.files))
