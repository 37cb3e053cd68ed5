"""Images of frames on demand: from the cache, or drawn by a few threads."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from fastapi import HTTPException, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response

from api.frame_images.image_cache import ImageCache
from api.frame_images.made_image import MadeImage
from api.http.bytes_answer import Content, bytes_answer, unchanged
from api.server.metrics import IMAGE_CACHE

_DRAWERS = ThreadPoolExecutor(4, thread_name_prefix="drawing")
"""Few: each may take 200 MB, and what others wait for must not take every thread of the server."""

_PATIENCE_S = 30.0
"""Longest wait of an answer for its turn and its image together [s]."""


async def made_answer(request: Request, image: MadeImage, cache: ImageCache) -> Response:
    """The image, out of the cache where it was made before."""
    etag = f'"{image.key[:32]}"'
    known = unchanged(request, etag)
    if known is not None:
        return known
    body = await made_bytes(image, cache)
    media_type = f"image/{image.look.format}"
    content = Content(media_type, len(body), etag, lambda start, n: body[start : start + n])
    return await bytes_answer(request, content)


async def made_bytes(image: MadeImage, cache: ImageCache) -> bytes:
    """The image's bytes, out of the cache where it was made before."""
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
