"""Whether a request's client is still there: its body is read ahead, as nothing else tells."""

import asyncio
from collections import deque

from starlette.types import Message, Receive

_AHEAD_BYTES = 65_536
"""Of a body, that are held before the application asks for them."""


class Departure:
    """Reads a request's messages for the application, within its block.

    Attributes:
        whole: Done when the body has come, or as much of it as is held.
        gone: Done when the client is gone, or its answer is complete.
    """

    def __init__(self, receive: Receive) -> None:
        """Read nothing yet."""
        loop = asyncio.get_running_loop()
        self.whole: asyncio.Future[None] = loop.create_future()
        self.gone: asyncio.Future[None] = loop.create_future()
        self._receive = receive
        self._messages: deque[Message | Exception] = deque()
        self._held = 0
        self._there, self._room = asyncio.Event(), asyncio.Event()

    async def __aenter__(self) -> "Departure":
        self._reading = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._reading.cancel()

    async def receive(self) -> Message:
        """The next message, as the server has it.

        Raises:
            HTTPException: What reading raised.
        """
        while not self._messages:
            self._there.clear()
            await self._there.wait()
        message = self._messages[0]
        if isinstance(message, Exception):
            raise message
        if message["type"] != "http.disconnect":  # which stays
            self._messages.popleft()
            self._held -= len(message.get("body", b""))
            self._room.set()
        return message

    async def _read(self) -> None:
        while not self.gone.done():
            try:
                message = await self._receive()
            except Exception as error:
                self._take(error)
                return
            self._take(message)
            while self._held >= _AHEAD_BYTES:
                self._room.clear()
                await self._room.wait()

    def _take(self, message: Message | Exception) -> None:
        self._messages.append(message)
        self._there.set()
        if isinstance(message, Exception):
            _done(self.whole)
            return
        self._held += len(message.get("body", b""))
        if message["type"] == "http.disconnect":
            _done(self.whole)
            _done(self.gone)
        elif not message.get("more_body", False) or self._held >= _AHEAD_BYTES:
            _done(self.whole)


def _done(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
