"""A request's body as a file."""

import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from fastapi import HTTPException, Request

from catalog.errors import InvalidInput


@asynccontextmanager
async def sent_file(request: Request, suffixes: Mapping[str, str]) -> AsyncIterator[Path]:
    """The body as a file that is gone after the block; errors of the block name it "the body".

    Args:
        request: The request, whose body was not read yet.
        suffixes: Of the file, by the media types that Content-Type may say.

    Raises:
        HTTPException: 415, it says another one.
    """
    sent = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if sent not in suffixes:
        several = "one of " if len(suffixes) > 1 else ""
        raise HTTPException(
            415, f"Content-Type '{sent[:80]}': expected {several}{', '.join(suffixes)}"
        )
    with tempfile.TemporaryDirectory(prefix="framesift-") as folder:
        file = Path(folder, "body" + suffixes[sent])
        async with await anyio.open_file(file, "wb") as out:
            async for chunk in request.stream():
                await out.write(chunk)
        try:
            yield file
        except InvalidInput as error:
            if str(file) not in str(error):
                raise
            raise InvalidInput(str(error).replace(str(file), "the body")) from error
