"""Work that stops when its client leaves.

ASGI reports a disconnect through ``receive()`` only, so something has to go on reading a request
while its answer is computed.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol, TypeVar

from fastapi.concurrency import run_in_threadpool
from starlette.types import Message, Receive

from api.http.fair_queue import Slot

_AHEAD_BYTES = 65_536
"""Bytes of a body that are read ahead of the application."""

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)


class DisconnectWatcher:
    """Detects that a client has left, within its block: it reads a request's messages ahead.

    Attributes:
        whole: Done when the body has come, or as much of it as is held.
        gone: Done when the client is gone, or its answer is complete.
    """

    def __init__(self, receive: Receive, on_gone: Callable[[], None] | None = None) -> None:
        """Read nothing yet.

        Args:
            receive: The request's; from here on only this reads it.
            on_gone: Called once, in the event loop, where the client leaves within the block.
        """
        loop = asyncio.get_running_loop()
        self.whole: asyncio.Future[None] = loop.create_future()
        self.gone: asyncio.Future[None] = loop.create_future()
        self._receive, self._on_gone = receive, on_gone
        self._messages: deque[Message | Exception] = deque()
        self._held = 0
        self._there, self._room = asyncio.Event(), asyncio.Event()

    async def __aenter__(self) -> "DisconnectWatcher":
        self._reading = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *_: object) -> None:
        # At once: the server reports the end of an answer as a disconnect, too.
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

    async def granted(self, slot: Slot, patience_s: float | None = None) -> bool:
        """Wait for a slot as long as the client stays.

        Args:
            slot: Of a fair queue; the caller releases it.
            patience_s: How long at most [s]; for ever when None.

        Returns:
            Whether it was granted.
        """
        if not slot.granted.done():
            waiting = {asyncio.wrap_future(slot.granted), self.gone}
            await asyncio.wait(waiting, timeout=patience_s, return_when=asyncio.FIRST_COMPLETED)
        return slot.granted.done()

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
            if self._on_gone is not None:
                self._on_gone()
        elif not message.get("more_body", False) or self._held >= _AHEAD_BYTES:
            _done(self.whole)


class Stoppable(Protocol[_T_co]):
    """Work that ends soon after ``stopped`` says so."""

    def __call__(self, *, stopped: Callable[[], bool]) -> _T_co:
        """Do it."""


async def run_while_connected(receive: Receive, work: Stoppable[_T]) -> _T:
    """Run work in a thread; it is told to stop where the client leaves before its end.

    Args:
        receive: The request's, whose body was read.
        work: Is asked for what is returned.
    """
    ended = threading.Event()
    async with DisconnectWatcher(receive, ended.set):
        return await run_in_threadpool(work, stopped=ended.is_set)


def _done(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
