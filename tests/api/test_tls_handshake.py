"""Connections to a TLS server that never finish their handshake."""

import contextlib
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.api.servers import serving, until_ready
from tests.api.test_abuse import closed_after, connected

pytestmark = pytest.mark.wide

LIMITS = {"FRAMESIFT_HEAD_TIMEOUT_S": "5"}
MANY = 100
ask = httpx.Client(verify=False, timeout=120, headers={"Connection": "close"})


@pytest.fixture(scope="module")
def url(shared_home: Path) -> Iterator[str]:
    """A server that speaks TLS."""
    with serving(shared_home, "--tls-self-signed", variables=LIMITS) as (address, _):
        until_ready(address, ask)
        yield address


def client_hello() -> bytes:
    """The first bytes of a handshake."""
    context = ssl.create_default_context()
    out = ssl.MemoryBIO()
    begun = context.wrap_bio(ssl.MemoryBIO(), out, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        begun.do_handshake()
    return out.read()


@contextlib.contextmanager
def shaken_hands(url: str) -> Iterator[ssl.SSLSocket]:
    """A connection that has finished its handshake, and has said nothing since."""
    address = urlsplit(url)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection((address.hostname, address.port), timeout=120) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as connection,
    ):
        yield connection


def test_handshakes_that_do_not_end(url: str) -> None:
    """Nothing, half of a ClientHello, all of it and no more, no TLS: closed, others served.

    So is who says nothing after the handshake.
    """
    hello = client_hello()
    sent = [b"", hello[: len(hello) // 2], hello, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"]
    with contextlib.ExitStack() as stack:
        connections = []
        for number in range(MANY):
            connection = stack.enter_context(connected(url))
            connection.sendall(sent[number % len(sent)])
            connections.append(connection)
        silent = stack.enter_context(shaken_hands(url))
        for _ in range(5):
            assert ask.get(f"{url}/healthz").status_code == 200
        for connection in connections:
            closed_after(connection)  # raises where it is kept
        assert closed_after(silent)[1] == b""
    assert ask.get(f"{url}/healthz").status_code == 200
