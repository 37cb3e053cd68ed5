"""Images of frames on demand: from the cache, or drawn by a few threads."""

import asyncio
import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from fastapi import HTTPException, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response
from PIL import __version__ as _pillow

from api.frame_images.answer import Content, bytes_answer, unchanged
from api.frame_images.drawing import MAX_BYTES, Look
from api.frame_images.image_cache import ImageCache
from api.frame_images.source_file import SourceFile
from api.server.metrics import IMAGE_CACHE
from catalog.errors import BadFile

_DRAWERS = ThreadPoolExecutor(4, thread_name_prefix="drawing")
"""Few: each may take 200 MB, and what others wait for must not take every thread of the server."""

_PATIENCE_S = 30.0
"""Longest wait of an answer for its turn and its image together [s]."""


@dataclass(frozen=True)
class MadeImage:
    """An image that is made of files, and always comes out the same.

    Attributes:
        what: What of them is drawn, with all parameters.
        files: What it is made of.
        look: How it comes out.
        draw: Draws it, given the files' contents.
    """

    what: str
    files: tuple[SourceFile, ...]
    look: Look
    draw: Callable[..., bytes]

    @property
    def key(self) -> str:
        """Another one whenever something else would come out."""
        parts = (self.what, self.look, *(file.identity for file in self.files), _pillow)
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def made(self) -> bytes:
        """The image.

        Raises:
            BadFile: A file cannot be drawn.
            UnreadableFile: One cannot be read, or was changed meanwhile.
            SourceFails: A source cannot be reached.
        """
        for file in self.files:
            if file.entry.size > MAX_BYTES:
                raise BadFile(
                    f"has {file.entry.size:,} bytes; at most {MAX_BYTES:,} are drawn",
                    file.entry.key,
                )
        return self.draw(*(file.read(0, file.entry.size) for file in self.files))


async def made_answer(request: Request, image: MadeImage, cache: ImageCache) -> Response:
    """The image, out of the cache where it was made before.

    Raises:
        HTTPException: 503, the drawers have more to do than they can.
    """
    etag = f'"{image.key[:32]}"'
    known = unchanged(request, etag)
    if known is not None:
        return known
    body = await made_bytes(image, cache)
    media_type = f"image/{image.look.format}"
    content = Content(media_type, len(body), etag, lambda start, n: body[start : start + n])
    return await bytes_answer(request, content)


async def made_bytes(image: MadeImage, cache: ImageCache) -> bytes:
    """The image's bytes, out of the cache where it was made before.

    Raises:
        HTTPException: 503, the drawers have more to do than they can.
    """
    body = await run_in_threadpool(cache.get, image.key)
    IMAGE_CACHE.labels("miss" if body is None else "hit").inc()
    return await _drawn(image, cache) if body is None else body


async def _drawn(image: MadeImage, cache: ImageCache) -> bytes:
    def draw() -> bytes:
        body = image.made()
        cache.put(image.key, body)
        return body

    drawing = asyncio.get_running_loop().run_in_executor(_DRAWERS, draw)
    try:
        return await asyncio.wait_for(drawing, _PATIENCE_S)
    except TimeoutError as error:
        raise HTTPException(
            503,
            f"the image was not made in {_PATIENCE_S:g} s: many are being drawn, or the source is "
            "slow; ask again, for a smaller one if you can",
            {"Retry-After": "5"},
        ) from error
