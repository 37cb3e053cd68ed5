"""A picture that a server sent."""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from framesift.forms.optional import imported

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True)
class Picture:
    """An encoded picture; shows itself in a notebook."""

    data: bytes
    """Its bytes, as a file would hold them."""
    media_type: str
    """Such as "image/png"."""

    def __bytes__(self) -> bytes:
        return self.data

    def __repr__(self) -> str:
        """Kind and size."""
        return f"<Picture {self.media_type}, {len(self.data):,} bytes>"

    def to_pil(self) -> "Image":
        """The same as a PIL.Image.Image.

        Raises:
            MissingPackage: There is no Pillow.
        """
        opened: Image = imported("PIL.Image").open(io.BytesIO(self.data))
        return opened

    def save(self, path: str | Path) -> Path:
        """Write the bytes to a file; its path."""
        path = Path(path)
        path.write_bytes(self.data)
        return path

    def _repr_mimebundle_(self, **_: object) -> Mapping[str, bytes]:
        return {self.media_type: self.data}
