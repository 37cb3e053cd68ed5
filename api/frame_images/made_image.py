"""Images that are drawn of files: the same files and parameters give the same image."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import PIL

from api.frame_images.drawing import MAX_BYTES, Look
from api.frame_images.source_file import SourceFile
from catalog.errors import BadFile
from ingest.images.camera_image import DECODER

_PROGRAMS = (PIL.__version__, DECODER)


@dataclass(frozen=True)
class MadeImage:
    """An image that is made of files, and always comes out the same."""

    what: str
    """What of them is drawn, with all parameters."""
    files: tuple[SourceFile, ...]
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
