"""Objects received in place: those of a store that answers as it should, and none of others."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from botocore.credentials import Credentials

from ingest.sources.s3.s3_plain_get import PlainGets
from tests.ingest.s3_server import S3Server, ceph

CONTENT = bytes(range(256)) * 40
HEAD = b"HTTP/1.1 200 OK\r\nLast-Modified: Mon, 02 Jan 2023 03:04:05 GMT\r\n"
WHOLE = HEAD + b'ETag: "e"\r\nContent-Length: 10240\r\n\r\n' + CONTENT


class Store:
    """A server on one thread, which gives the answers it was told, connection by connection.

    Attributes:
        requests: What it was asked.
        connections: How many it had.
    """

    def __init__(self, *connections: list[bytes]) -> None:
        self.requests: list[str] = []
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.thread = threading.Thread(target=self._serve, args=(connections,), daemon=True)
        self.thread.start()

    def _serve(self, connections: tuple[list[bytes], ...]) -> None:
        for answers in connections:
            connection, _ = self._listener.accept()
            self.connections += 1
            with connection:
                for answer in answers:
                    self.requests.append(connection.recv(65_536).decode())
                    connection.sendall(answer)
        self._listener.close()

    def gets(self) -> PlainGets:
        """What asks it, without signing."""
        return PlainGets(self.endpoint, "b", "us-east-1", None, 300)


@contextmanager
def received(gets: PlainGets, key: str = "k", etag: str = "") -> Iterator[bytes | None]:
    """The content of an object; None where the usual client should ask."""
    found = gets.open(key, etag)
    if found is None:
        yield None
        return
    with found:
        place = bytearray(found.entry.size)
        assert found.read_into(memoryview(place)) == len(place)
    yield bytes(place)


def test_a_connection_is_kept_and_replaced_when_the_store_closes_it() -> None:
    """Two objects on one connection; that is closed then, and the third comes on another."""
    store = Store([WHOLE, WHOLE], [WHOLE])
    gets = store.gets()
    for _ in range(3):
        with received(gets, "a b/ü+%~.png", "e") as content:
            assert content == CONTENT
    store.thread.join()
    assert store.connections == 2
    first = store.requests[0].split("\r\n")
    assert first[0] == "GET /b/a%20b/%C3%BC%2B%25~.png HTTP/1.1"
    assert 'if-match: "e"' in first


@pytest.mark.parametrize("read_bytes", [0, 2**20])
def test_a_connection_whose_content_was_left_is_not_kept(read_bytes: int) -> None:
    """Unread or read in part: the next object is not what the rest of this one's content says."""
    answer = HEAD + b'ETag: "e"\r\nContent-Length: 10240\r\n\r\n' + bytes(10_240)
    content = bytes(read_bytes) + answer
    head = HEAD + f"Content-Length: {len(content)}\r\nx: ".encode()
    head = head.ljust(2**16 - 4, b"x") + b"\r\n\r\n"  # which comes alone
    store = Store([head + content], [WHOLE, WHOLE])
    gets = store.gets()
    opened = gets.open("large", "")
    assert opened is not None
    with opened:
        if read_bytes:
            assert len(next(opened.pieces())) == read_bytes
    for _ in range(2):
        with received(gets) as whole:
            assert whole == CONTENT
    store.thread.join()
    assert store.connections == 2


def test_its_answer_says_what_the_object_is() -> None:
    """Size, ETag and time, and the content in pieces."""
    found = Store([WHOLE]).gets().open("k", "")
    assert found is not None
    with found:
        assert (found.entry.size, found.entry.etag) == (10_240, "e")
        assert str(found.entry.modified) == "2023-01-02 03:04:05"
        assert b"".join(found.pieces()) == CONTENT


def test_headers_may_come_alone() -> None:
    """The content follows once they have been read: all of it is in the pieces."""
    opened = threading.Event()

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(WHOLE.removesuffix(CONTENT))
            assert opened.wait(300)
            connection.sendall(CONTENT)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        endpoint = f"http://127.0.0.1:{listener.getsockname()[1]}"
        found = PlainGets(endpoint, "b", "us-east-1", None, 300).open("k", "")
        assert found is not None
        with found:
            opened.set()
            assert b"".join(found.pieces()) == CONTENT


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 412 No\r\nContent-Length: 0\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        HEAD + b"\r\n",
        HEAD + b"Content-Length: ten\r\n\r\n",
        HEAD + b"Content-Length: 1\r\n\r\n22",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1",
    ],
)
def test_other_answers_are_left_to_the_usual_client(answer: bytes) -> None:
    """Errors, what is no HTTP, and answers that do not say what they must; it is asked again."""
    gets = Store([answer], [WHOLE]).gets()
    with received(gets) as content:
        assert content is None
    with received(gets) as content:
        assert content == CONTENT


def test_a_store_that_refuses_is_not_asked_again() -> None:
    """It does not take what is signed here: one request, and none for the next object."""
    store = Store([b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"])
    gets = store.gets()
    for _ in range(2):
        with received(gets) as content:
            assert content is None
    assert len(store.requests) == 1


def test_a_store_that_breaks_off_is_told_by_what_came() -> None:
    """Half of the content, and its connection is not kept."""
    store = Store([WHOLE[:5_000]], [WHOLE])
    gets = store.gets()
    found = gets.open("k", "")
    assert found is not None
    with found:
        assert found.read_into(memoryview(bytearray(10_240))) < 10_240
    with received(gets) as content:
        assert content == CONTENT
    store.thread.join()
    assert store.connections == 2


def test_a_proxy_of_the_environment_is_not_passed_by(monkeypatch: pytest.MonkeyPatch) -> None:
    """The usual client goes by it."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert PlainGets("http://127.0.0.1:1", "b", "us-east-1", None, 1).open("k", "") is None


@pytest.mark.ceph
def test_ceph_takes_what_is_signed() -> None:
    """Names with every kind of character; a wrong key is refused, another ETag as well."""
    server = ceph()
    bucket, client = server.new_bucket("plain-gets"), server.client()
    for key in ("a b/ü+%~.png", "x'()*!&=:@,;$.bin", "scene/camera/1.png"):
        client.put_object(Bucket=bucket, Key=key, Body=CONTENT)
        with received(_gets(server, bucket), key) as content:
            assert content == CONTENT
    assert _gets(server, bucket).open(key, "0" * 32) is None
    assert _gets(server, bucket, "wrong").open(key, "") is None


def _gets(server: S3Server, bucket: str, secret: str = "") -> PlainGets:
    keys = Credentials(server.access_key, secret or server.secret_key)
    return PlainGets(server.endpoint, bucket, "us-east-1", keys, 300)
