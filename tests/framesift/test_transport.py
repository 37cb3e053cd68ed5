"""What goes wrong between client and server: lost connections, other versions, other servers."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import framesift
from framesift import FramesiftServerError, NoAnswer, Throttled, WrongVersion
from framesift.http.events import Event, events_of
from tests.api.servers import serving


@contextmanager
def _answering(*answers: bytes | None) -> Iterator[tuple[str, list[bytes]]]:
    """A server that gives each connection the next answer; None closes it without one."""
    requests: list[bytes] = []

    def serve() -> None:
        for answer in answers:
            connection, _ = listener.accept()
            with connection:
                requests.append(_request(connection))
                if answer is not None:
                    connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", requests
    thread.join(10)


def _request(connection: socket.socket) -> bytes:
    got = b""
    while b"\r\n\r\n" not in got:
        got += connection.recv(65536)
    head, _, body = got.partition(b"\r\n\r\n")
    length = next(
        (int(line.split(b":")[1]) for line in head.lower().split(b"\r\n")
         if line.startswith(b"content-length")), 0,
    )  # fmt: skip
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def _answer(body: dict[str, Any], status: str = "200 OK", **headers: str) -> bytes:
    text = json.dumps(body).encode()
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(text)}\r\nConnection: close\r\n{more}\r\n"
    return head.encode() + text


_DATASET = {"name": "a", "version": 1, "frames": 2}


def test_a_lost_connection_is_tried_again_with_the_same_key() -> None:
    """Twice; what creates carries a key by which the server tells a repetition."""
    with _answering(None, None, _answer(_DATASET, "201 Created")) as (url, requests):
        dataset = framesift.connect(url, "fs_x").datasets.create("a")
    assert dataset.frame_count == 2
    keys = [
        line
        for request in requests
        for line in request.split(b"\r\n")
        if line.lower().startswith(b"idempotency-key:")
    ]
    assert len(keys) == 3
    assert len(set(keys)) == 1
    assert b"authorization: bearer fs_x" in requests[0].lower()
    assert f"framesift/{version('framesift')}".encode() in requests[0]


def test_it_is_not_tried_for_ever() -> None:
    """After the third time it is an exception."""
    with _answering(None, None, None) as (url, requests), pytest.raises(NoAnswer, match="no ans"):
        framesift.connect(url).classes()
    assert len(requests) == 3


def test_another_major_number_is_said(server: str) -> None:
    """Before the answer is looked at; the same major number is fine, and servers say theirs."""
    theirs = f"{int(version('framesift').partition('.')[0]) + 1}.0.0"
    answer = _answer({"surprise": 1}, Framesift_Version=theirs)
    with _answering(answer) as (url, _), pytest.raises(WrongVersion, match=theirs):
        framesift.connect(url).classes()
    ours = f"{version('framesift').partition('.')[0]}.999.1"
    with _answering(_answer({"classes": []}, Framesift_Version=ours)) as (url, _):
        assert framesift.connect(url).classes() == []
    with framesift.connect(server) as client:
        answered = client._transport.send("GET", "/healthz")
    assert answered.headers["Framesift-Version"] == version("framesift")


def test_problems_are_exceptions_by_kind() -> None:
    """429 says when to ask again; an unknown kind keeps status and details."""
    problem = {"title": "LoginThrottled", "detail": "slowly", "status": 429}
    answer = _answer(problem, "429 Too Many Requests", Retry_After="7")
    with _answering(answer) as (url, _), pytest.raises(Throttled) as throttled:
        framesift.connect(url).classes()
    assert throttled.value.retry_after_s == 7
    answer = _answer({"title": "Odd", "detail": "odd", "more": 1}, "418 I'm a teapot")
    with _answering(answer) as (url, _), pytest.raises(FramesiftServerError) as odd:
        framesift.connect(url).classes()
    assert (odd.value.status, odd.value.kind, odd.value.details) == (418, "Odd", {"more": 1})


def test_a_job_is_watched_without_events() -> None:
    """A server that sends none, or breaks off, is asked again and again."""
    job = {"name": "j", "kind": "train", "metrics": {}, "error": "", "state": "running"}
    missing = _answer({"title": "Not Found", "detail": "Not Found"}, "404 Not Found")
    cut = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"9\r\nid: 1\nev\r\n"
    )
    done = _answer({**job, "state": "done", "metrics": {"loss": 1.0}})
    running = _answer(job)
    with _answering(running, running, missing, running, cut, done) as (url, requests):
        result = framesift.connect(url).jobs.get("j").wait(progress=False)
    assert result.metrics == {"loss": 1.0}
    assert len(requests) == 6


def test_events_are_read_as_the_standard_has_them() -> None:
    """Comments, several data lines, ids that last, and an event that is cut off."""
    lines = [": here", "", "id: 7", "event: job", "data: {", "data:}", "", "data: x", "", "data: y"]
    assert list(events_of(lines)) == [
        Event("", "here", ""), Event("job", "{\n}", "7"), Event("message", "x", "7"),
    ]  # fmt: skip


def test_a_token_is_never_shown(server: str) -> None:
    """Not by repr, nor by an error; one that cannot be sent is refused before."""
    client = framesift.connect(server, "fs_secret")
    assert "secret" not in repr(client)
    with pytest.raises(FramesiftServerError, match="token") as caught:
        framesift.connect(server, "fs_sécrèt")
    assert "crèt" not in str(caught.value)


def test_a_self_signed_certificate_is_trusted_by_file(home: Path) -> None:
    """With ca_bundle; without it there is no answer, and a file that is none is said."""
    with serving(home, "--tls-self-signed") as (url, _):
        bundle = str(home / "tls" / "cert.pem")
        with framesift.connect(url, ca_bundle=bundle) as client:
            assert client.call("GET", "/healthz") is not None
        with pytest.raises(NoAnswer, match="certificate"):
            framesift.connect(url).classes()
    with pytest.raises(FramesiftServerError, match="ca_bundle"):
        framesift.connect(url, ca_bundle=str(home / "none.pem"))


@pytest.mark.parametrize("token", ["fs_SECRET\n", "\r\nfs_SECRET \r\n"])
def test_a_tokens_line_end_is_no_part_of_it(token: str) -> None:
    """As `cat` and a Kubernetes secret leave it; what the server gets has none."""
    with _answering(_answer({"user": "a"})) as (url, requests):
        framesift.connect(url, token).me()
    assert b"\r\nAuthorization: Bearer fs_SECRET\r\n" in requests[0]


@pytest.mark.parametrize("token", ["fs_SEC\nRET", "fs_SEC RET", "fs_SECR\u00e9T", "fs_SEC\x00RET"])
def test_a_token_that_none_can_be_is_not_shown(token: str) -> None:
    """No library's text either, which would show the header."""
    with pytest.raises(FramesiftServerError, match="token: holds a blank, a line end or") as error:
        framesift.connect("http://127.0.0.1:9", token)
    assert "SEC" not in str(error.value)
    assert error.value.__cause__ is None


def test_a_password_in_the_url_is_not_shown() -> None:
    """Where the server is away, is another one, of another version, or the URL is none."""
    said = []
    with _answering(b"HTTP/1.1 404 None\r\nContent-Length: 0\r\n\r\n",
                    _answer({}, Framesift_Version="99.0.0")) as (url, requests):  # fmt: skip
        held = url.replace("//", "//user:secretword@")
        client = framesift.connect(held)
        said.append(repr(client) + client.url if hasattr(client, "url") else repr(client))
        for _ in range(2):
            with pytest.raises(FramesiftServerError) as error:
                client.me()
            said.append(str(error.value))
    assert b"Authorization: Basic" in requests[0]  # for a proxy that asks for it
    for url in ("http://user:secretword@127.0.0.1:9", "http://user:secretword@127.0.0.1:xx",
                "ftp://user:secretword@127.0.0.1"):  # fmt: skip
        with pytest.raises(FramesiftServerError) as error:
            framesift.connect(url).me()
        said.append(str(error.value))
    assert all("127.0.0.1" in each for each in said)
    assert "secretword" not in " ".join(said)


@pytest.mark.wide
def test_a_wrong_scheme_is_said(home: Path, server: str) -> None:
    """https:// of a plain server, with a file of authorities too, and http:// of one of HTTPS.

    The right URL is in the message; no certificate is blamed. A server that has answered in clear,
    and is gone, is no server of HTTPS.
    """
    with serving(home, "--tls-self-signed") as (url, _):
        secure = server.replace("http://", "https://")
        for bundle in (None, str(home / "tls" / "cert.pem")):
            with (
                framesift.connect(secure, ca_bundle=bundle) as client,
                pytest.raises(NoAnswer, match="does not speak TLS") as caught,
            ):
                client.info()
            assert str(caught.value).endswith(f"a server of plain HTTP is {server}")
            assert "trusted" not in str(caught.value)
        plain = url.replace("https://", "http://")
        with framesift.connect(plain) as client, pytest.raises(NoAnswer, match="no answer") as no:
            client.info()
        assert f"a server of HTTPS is {url}; is 'framesift serve' running there?" in str(no.value)
    with (
        _answering(_answer({"a": 1}), None, None, None) as (url, _),
        framesift.connect(url) as client,
    ):
        client.call("GET", "/v1/x")
        with pytest.raises(NoAnswer, match="no answer") as gone:
            client.call("GET", "/v1/x")
        assert "HTTPS" not in str(gone.value)


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_a_proxy_of_the_environment_is_named(
    name: str, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is not there, and one that answers itself: by its variable, without its password.

    NO_PROXY leads past it, and the proxy of the other scheme is none.
    """
    for each in ("HTTP", "HTTPS", "ALL", "NO"):
        monkeypatch.delenv(f"{each}_PROXY", raising=False)
        monkeypatch.delenv(f"{each.lower()}_proxy", raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:7")

    def told() -> str:
        with framesift.connect(server) as client, pytest.raises(NoAnswer) as caught:
            client.info()
        return str(caught.value)

    monkeypatch.setenv(name, "http://anna:secret@127.0.0.1:9/")
    text = told()
    assert f"no answer through the proxy 127.0.0.1:9 ({name.upper()}): " in text
    assert "name 127.0.0.1 in NO_PROXY" in text
    assert "secret" not in text
    with _answering(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno") as (proxy, _):
        monkeypatch.setenv(name, proxy)
        assert f"403 Forbidden through the proxy {proxy.removeprefix('http://')}" in told()
    monkeypatch.setenv(name, "nonsense://anna:secret@127.0.0.1:9")
    with pytest.raises(FramesiftServerError, match="expected one such as http://proxy") as caught:
        framesift.connect(server)
    assert "secret" not in str(caught.value)
    monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with framesift.connect(server) as client:
        assert client.info()["frames"]
