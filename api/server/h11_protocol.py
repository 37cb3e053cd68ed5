"""HTTP/1.1 as uvicorn and h11 speak it, stricter in one thing, and with one tolerance.

Stricter: a head that says its body's length in two ways is refused. The tolerance is for Spectrum
Discover's clients.

Published clients cut their token out of `curl -I` and keep the carriage return that ends the line,
so that they send ``Authorization: Bearer TOKEN`` with two carriage returns before the line feed.
That header, in that shape and once, is served. The head was split into lines before, exactly as
without the tolerance, so where a message begins or ends does not change; and the connection is
closed after the answer, so that nothing behind such a request is read as another one.
"""

import re
from typing import Any

from h11 import RemoteProtocolError
from h11._receivebuffer import ReceiveBuffer
from uvicorn.protocols.http.h11_impl import H11Protocol

_REQUEST_LINE = re.compile(rb"[A-Z]+ [!-~]+ HTTP/1\.[01]")
_AUTHORIZATION = re.compile(rb"authorization[ \t]*:", re.IGNORECASE)
_STRAY = re.compile(rb"authorization:[ \t]*bearer [a-z0-9._~+/-]+=*\r", re.IGNORECASE)
_FOLDS = (b" ", b"\t")
_TWO_LENGTHS = frozenset((b"content-length", b"transfer-encoding"))


class TolerantH11Protocol(H11Protocol):
    """uvicorn's, reading heads by `HeadBuffer`."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Take the arguments of uvicorn's protocol."""
        super().__init__(*arguments, **options)
        self.conn._receive_buffer = HeadBuffer(self.config.h11_max_incomplete_event_size)


class HeadBuffer(ReceiveBuffer):
    """h11's, which takes one carriage return too many from the end of a bearer token."""

    def __init__(self, most_bytes: int | None = None) -> None:
        """Empty; ``most_bytes`` is what a head may have: h11 limits only one that is not whole."""
        super().__init__()
        self._most_bytes = most_bytes

    def maybe_extract_lines(self) -> list[bytearray] | None:
        """The lines of a head, or of a chunked body's trailer, when they are there."""
        lines = super().maybe_extract_lines()
        if lines and self._most_bytes and sum(map(len, lines)) > self._most_bytes:
            raise RemoteProtocolError("the head is too long", error_status_hint=431)
        if lines and _names(lines[1:]) >= _TWO_LENGTHS:
            # RFC 9112, 6.1: whoever stands before this server may have gone by the other one.
            raise RemoteProtocolError("Content-Length together with Transfer-Encoding")
        if lines and (index := _stray(lines)) is not None:
            del lines[index][-1]
            lines.append(bytearray(b"Connection: close"))
        return lines


def _names(lines: list[bytearray]) -> frozenset[bytes]:
    return frozenset(bytes(line.partition(b":")[0].strip().lower()) for line in lines)


def _stray(lines: list[bytearray]) -> int | None:
    """The line of a request's head that ends in a stray carriage return; None without one."""
    if not _REQUEST_LINE.fullmatch(lines[0]):
        return None
    numbers = [index for index, line in enumerate(lines) if _AUTHORIZATION.match(line)]
    if len(numbers) != 1 or not _STRAY.fullmatch(lines[numbers[0]]):
        return None
    following = lines[numbers[0] + 1 : numbers[0] + 2]
    # A folded line would become part of the token.
    return None if following and following[0].startswith(_FOLDS) else numbers[0]
