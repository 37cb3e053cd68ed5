"""Connections to an S3 endpoint that was named over REST go there and nowhere else.

obstore follows a redirect to any host, and neither it nor boto3 shows its caller the address that
it connects to, which a name server may change between a check and a connection. Both take a
forward proxy. This one listens on loopback in the process, lets through what is meant for the
endpoint's own host and port, and connects to the very address that it has checked.
"""

import base64
import os
import secrets
import socket
import socketserver
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from catalog.errors import InvalidInput
from ingest.sources.public_address import is_public

PUBLIC, ENDPOINT = "public", "endpoint"
"""Addresses that a proxy connects to: the endpoint if its address is public, or the endpoint at any
address."""

REDIRECTED = "it redirects to another server, which is not followed"

_CONNECT_SECONDS = 5
_LONGEST_HEAD = 64 << 10
_PIECE = 256 << 10
_PORTS = {"http": 80, "https": 443}


@dataclass
class Way:
    """The addresses that one endpoint's sources may reach."""

    host: str
    port: int
    reach: str
    """PUBLIC or ENDPOINT."""
    refused: str = ""
    """What was refused last, as a sentence says it; empty for nothing."""
    token: str = field(default_factory=lambda: secrets.token_hex(16))
    """What a client of the proxy shows; other users of the machine do not have it."""


class _Refused(Exception):
    """The proxy refuses a connection."""


_lock = threading.Lock()
_proxies: dict[int, "_Proxy"] = {}  # by process: threads end where a process forks


def way_to(endpoint: str, reach: str) -> tuple[Way, str]:
    """The way to an endpoint, and the URL of the proxy that keeps to it.

    Raises:
        InvalidInput: There is no such reach, or the endpoint is no URL.
    """
    if reach not in (PUBLIC, ENDPOINT):
        raise InvalidInput(f"reach '{reach}': expected {PUBLIC} or {ENDPOINT}")
    parts = urlsplit(endpoint)
    host = (parts.hostname or "").rstrip(".")
    try:
        port = parts.port or _PORTS[parts.scheme.lower()]
    except (KeyError, ValueError) as error:
        raise InvalidInput(f"endpoint {endpoint}: expected https://host[:port]") from error
    with _lock:
        proxy = _proxies.get(os.getpid())
        if proxy is None:
            _proxies.clear()
            proxy = _proxies[os.getpid()] = _Proxy()
            threading.Thread(target=proxy.serve_forever, name="endpoints", daemon=True).start()
        way = next(
            (
                way
                for way in proxy.ways.values()
                if (way.host, way.port, way.reach) == (host, port, reach)
            ),
            None,
        ) or Way(host, port, reach)
        proxy.ways[way.token] = way
    return way, f"http://{way.token}:x@127.0.0.1:{proxy.server_address[1]}"


class _Proxy(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.ways: dict[str, Way] = {}

    def handle_error(self, *_: object) -> None:
        """Nothing: the client sees that its connection is closed, and says so."""


class _Connection(socketserver.BaseRequestHandler):
    server: _Proxy

    def handle(self) -> None:
        """Let one connection of a client through, or refuse it."""
        client: socket.socket = self.request
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        server: socket.socket | None = None
        head = _read_head(client, b"")
        way = self._way(head[0]) if head else None
        try:
            if head and way is None:
                client.sendall(_answer("407 Proxy Authentication Required"))
            elif head and way and head[0].startswith(b"CONNECT "):
                _check_target(way, head[0].split(b" ")[1].decode("latin-1"), "https")
                server = _connect(way)
                client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                server.sendall(head[1])
                _start_pump(server, client)
                _pump(client, server)
            while head and way and not head[0].startswith(b"CONNECT "):
                request = _request(way, head[0])
                if server is None:
                    server = _connect(way)
                    _start_pump(server, client)
                server.sendall(request)
                head = _read_head(client, head[1])
        except _Refused as refused:
            if way:
                way.refused = str(refused)
            with suppress(OSError):
                client.sendall(_answer("403 Forbidden"))
        except OSError:
            with suppress(OSError):
                client.sendall(_answer("502 Bad Gateway"))
        finally:
            if server is not None:
                _end(server)
                server.close()

    def _way(self, head: bytes) -> Way | None:
        for line in head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"proxy-authorization":
                with suppress(ValueError):
                    token = base64.b64decode(value.split()[-1]).partition(b":")[0]
                    return self.server.ways.get(token.decode("latin-1"))
        return None


def _read_head(client: socket.socket, head_start: bytes) -> tuple[bytes, bytes] | None:
    """The next request's head and what came after it; None where no request comes any more."""
    while b"\r\n\r\n" not in head_start:
        piece = client.recv(_LONGEST_HEAD) if len(head_start) < _LONGEST_HEAD else b""
        if not piece:
            return None
        head_start += piece
    head, _, rest = head_start.partition(b"\r\n\r\n")
    return head, rest


def _check_target(way: Way, target: str, scheme: str) -> None:
    """Refuse what is not the endpoint itself: that is what a redirect would lead to."""
    try:
        parts = urlsplit(f"{scheme}://{target}" if "://" not in target else target)
        host = (parts.hostname or "").rstrip(".")
        port = parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        host, port = "", 0
    if (host, port) != (way.host, way.port):
        raise _Refused(REDIRECTED)


def _request(way: Way, head: bytes) -> bytes:
    """A request for the endpoint, from one for a proxy."""
    first, *lines = head.split(b"\r\n")
    method, _, rest = first.partition(b" ")
    target, _, version = rest.rpartition(b" ")
    url = target.decode("latin-1")
    if method not in (b"GET", b"HEAD") or not url.startswith("http://"):
        raise _Refused(f"{method.decode('latin-1')[:20]} is not sent there")
    _check_target(way, url, "http")
    names = {line.partition(b":")[0].strip().lower(): line for line in lines}
    length = names.get(b"content-length", b":0").partition(b":")[2].strip()
    if b"transfer-encoding" in names or length != b"0":
        raise _Refused("a body is not sent there")
    path = "/" + url.removeprefix("http://").partition("/")[2]
    headers = [line for line in lines if not line.lower().startswith(b"proxy-")]
    return b"\r\n".join([b" ".join((method, path.encode("latin-1"), version)), *headers, b"", b""])


def _connect(way: Way) -> socket.socket:
    """A connection to the endpoint, at an address that was checked.

    Raises:
        _Refused: One of its addresses is inside the network.
        OSError: None answers.
    """
    addresses = socket.getaddrinfo(way.host, way.port, type=socket.SOCK_STREAM)
    if way.reach == PUBLIC and not all(is_public(str(address[0])) for *_, address in addresses):
        raise _Refused("its name stands for an address inside this server's own network")
    trouble = OSError(f"{way.host}: no address")
    for family, kind, protocol, _, address in addresses:
        connection = socket.socket(family, kind, protocol)
        try:
            connection.settimeout(_CONNECT_SECONDS)
            connection.connect(address)
        except OSError as error:
            connection.close()
            trouble = error
            continue
        connection.settimeout(None)  # the client knows how long it waits, and then ends both
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        way.refused = ""
        return connection
    raise trouble


def _start_pump(source: socket.socket, sink: socket.socket) -> None:
    threading.Thread(target=_pump, args=(source, sink), name="endpoint", daemon=True).start()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    """Hand on what comes until one side ends; then both end."""
    piece = memoryview(bytearray(_PIECE))
    with suppress(OSError):
        while count := source.recv_into(piece):
            sink.sendall(piece[:count])
    _end(source)
    _end(sink)


def _end(side: socket.socket) -> None:
    with suppress(OSError):
        side.shutdown(socket.SHUT_RDWR)


def _answer(status: str) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
