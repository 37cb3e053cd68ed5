"""Time limits of connections: a client that sends or reads nothing holds nothing long.

uvicorn limits how long a connection waits for its next request. Here is the rest: how long a head
and a body may take to come, how long a client may leave its answer unread, and how many connections
there are; of those that ask nothing the oldest give way to new ones.
"""

import asyncio
import json
import logging
import sys
from collections import OrderedDict
from functools import partial
from http import HTTPStatus
from typing import Any

import h11

from api.server.h11_protocol import TolerantH11Protocol
from api.settings import Settings

_LOG = logging.getLogger(__name__)

_LEAST_BYTES_PER_S = 4096
_UNREAD_S = 10.0
"""Time for which the rest of a body is read and dropped after the answer [s]: a client that is
still sending would not see an answer before the connection is cut."""

_UNREADABLE = (
    "no HTTP/1.1 that can be read: a wrong first line or header, no Host, or a body whose length "
    "is not said, or said by Content-Length and Transfer-Encoding both"
)
_TOO_LONG = "path, query and headers together are too long; send fewer"
_UNKNOWN_CODING = (
    "the body comes in a Transfer-Encoding that is not known here; send it as chunked, or with "
    "Content-Length"
)
_WHY = {
    HTTPStatus.BAD_REQUEST: _UNREADABLE,
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: _TOO_LONG,
    HTTPStatus.NOT_IMPLEMENTED: _UNKNOWN_CODING,
}
"""Message for each status that h11 gives."""

_LATE = "the request did not come in time; send it again, and faster"


class TimedProtocol(TolerantH11Protocol):
    """One connection; `protocol_of` makes the class for a server process."""

    settings: Settings
    """The limits."""
    idle: "OrderedDict[TimedProtocol, None]"
    """Connections of the process that are not waiting for an answer, the oldest first."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Take the arguments of uvicorn's protocol."""
        super().__init__(*arguments, **options)
        self._awaited: object = None
        self._late: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._since, self._received = 0.0, 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """One more."""
        super().connection_made(transport)
        self.idle[self] = None
        if len(self.connections) > self.settings.connections:
            oldest, _ = self.idle.popitem(last=False)
            oldest.transport.abort()
        self._watch_input(begun=True)

    def connection_lost(self, exc: Exception | None) -> None:
        """One less."""
        super().connection_lost(exc)
        self.idle.pop(self, None)
        self._await(None)
        self._stop_unread()

    def data_received(self, data: bytes) -> None:
        """Bytes of a head or of a body."""
        self._received += len(data)
        super().data_received(data)
        self._watch_input(begun=True)

    def on_response_complete(self) -> None:
        """An answer has been handed over to the transport."""
        super().on_response_complete()
        if self.transport.get_write_buffer_size() and self._unread is None:
            self._unread = self._later(self.settings.write_timeout_s, self._unread_end, self.cycle)
        self._watch_input(begun=bool(len(self.conn._receive_buffer)))

    def pause_writing(self) -> None:
        """The client does not read as fast as its answer is made."""
        super().pause_writing()
        self._stop_unread()
        self._unread = self._later(self.settings.write_timeout_s, self._give_up)

    def resume_writing(self) -> None:
        """It has read."""
        super().resume_writing()
        self._stop_unread()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  uvicorn calls it
        """400, or what h11 takes for a better answer, such as 431 for a head that is too long."""
        error = sys.exception()
        status = error.error_status_hint if isinstance(error, h11.RemoteProtocolError) else 400
        # Of h11's own words none: they repeat what came, and that may be a token.
        self._refuse(HTTPStatus(status), _WHY.get(HTTPStatus(status), _UNREADABLE))

    def _watch_input(self, *, begun: bool) -> None:
        """Have a timer for what is awaited of the client.

        Args:
            begun: Whether a head is; else uvicorn waits for the next request.
        """
        state = self.conn.their_state
        answered = self.cycle is None or self.cycle.response_complete
        if answered:
            self.idle.setdefault(self)
        else:
            self.idle.pop(self, None)
        if self.transport.is_closing():
            self._await(None)
        elif state is h11.SEND_BODY:
            self._await((state, answered))
        elif state is h11.IDLE and begun:
            self._await((state, True))
        else:
            self._await(None)

    def _await(self, what: tuple[object, bool] | None) -> None:
        if what == self._awaited:
            return
        self._awaited = what
        if self._late is not None:
            self._late.cancel()
            self._late = None
        if what is None:
            return
        self._since, self._received = self.loop.time(), 0
        of_body, answered = what[0] is h11.SEND_BODY, what[1]
        if of_body and answered:
            self._late = self._later(_UNREAD_S, self.transport.abort)
        elif of_body:
            self._late = self._later(self.settings.body_timeout_s, self._body_late)
        else:
            self._late = self._later(self.settings.head_timeout_s, self._head_late)

    def _head_late(self) -> None:
        if len(self.conn._receive_buffer):
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, _LATE)
        else:
            self.transport.close()

    def _body_late(self) -> None:
        allowed = self.settings.body_timeout_s + self._received / _LEAST_BYTES_PER_S
        remaining_s = self._since + allowed - self.loop.time()
        if remaining_s > 0:
            self._late = self._later(remaining_s, self._body_late)
        elif self.cycle.response_started:
            self.transport.abort()
        else:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, _LATE)

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        """An answer of the connection's own, and its end; no part of the application sees it."""
        if self.cycle is not None and not self.cycle.response_complete:
            if self.cycle.response_started:
                self.transport.abort()  # a second head would be read as bytes of the first's body
                return
            self.cycle.disconnected = True  # what it answers now is sent to nobody
            self.cycle.message_event.set()
        body = _problem(status, why)
        self.transport.write(
            f"HTTP/1.1 {status.value} {status.phrase}\r\nConnection: close\r\n"
            f"Content-Type: application/problem+json\r\nContent-Length: {len(body)}\r\n\r\n"
            .encode() + body
        )  # fmt: skip
        self.transport.close()
        self._later(self.settings.write_timeout_s, self.transport.abort)

    def _stop_unread(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _unread_end(self, cycle: object) -> None:
        self._unread = None
        if self.cycle is cycle and self.transport.get_write_buffer_size():
            self._give_up()

    def _give_up(self) -> None:
        _LOG.warning(
            "a client read nothing for %g s: its connection was cut", self.settings.write_timeout_s
        )
        self.transport.abort()  # the application sees that the client is gone

    def _later(self, seconds: float, what: Any, *arguments: object) -> asyncio.TimerHandle:
        return self.loop.call_later(seconds, partial(what, *arguments))


def _problem(status: HTTPStatus, why: str) -> bytes:
    """A problem in the application's own shape (api.http.errors), without a request's id."""
    body = {"type": "about:blank", "title": status.phrase, "status": status, "detail": why}
    return json.dumps(body).encode()


def protocol_of(settings: Settings) -> type[TimedProtocol]:
    """The class of a server process's connections."""
    return type("Connection", (TimedProtocol,), {"settings": settings, "idle": OrderedDict()})
