"""HTTP byte by byte, over a real socket."""

import re
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Answers:
    """Bytes that came back until the server closed the connection, or said no more.

    Attributes:
        raw: Every byte.
        closed: Whether the server closed the connection.
    """

    raw: bytes
    closed: bool

    @property
    def statuses(self) -> list[int]:
        """Status of each answer; bodies hold no status line, and the next one follows at once."""
        return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", self.raw)]


def exchange(url: str, *parts: bytes, wait_s: float = 120.0) -> Answers:
    """Send the parts, each in packets of its own, and read what comes back.

    Args:
        url: The server.
        parts: What is sent.
        wait_s: How long the server may say nothing before it is taken to have said all.
    """
    address = urlsplit(url)
    assert address.hostname is not None
    with socket.create_connection(
        (address.hostname, address.port or 80), timeout=300
    ) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        received = b""
        for piece in parts:
            try:
                connection.sendall(piece)
            except OSError:
                break  # closed already: what it said is read below
        connection.settimeout(wait_s)
        while True:
            try:
                some = connection.recv(65536)
            except TimeoutError:
                return Answers(received, closed=False)
            except OSError:
                return Answers(received, closed=True)
            if not some:
                return Answers(received, closed=True)
            received += some
