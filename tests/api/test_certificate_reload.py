"""A server's certificate is renewed while it serves; SIGHUP, and a terminal that goes away."""

import os
import pty
import re
import signal
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from http.client import HTTPResponse
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from api.server.certificate import LOOK_S, Certificate
from api.server.self_signed import self_signed
from tests.api.servers import FRAMESIFT, environment, serving, until_ready, wait_until
from tests.api.test_monitoring import samples
from tests.api.test_workers import workers_of

KEEPS = {"FRAMESIFT_KEEP_ALIVE_S": "300"}


class Said:
    """What a process writes, as it comes."""

    def __init__(self, stream: IO[str] | None) -> None:
        assert stream is not None
        self.lines: list[str] = []
        threading.Thread(target=self._read, args=(stream,), daemon=True).start()

    def _read(self, stream: IO[str]) -> None:
        self.lines.extend(iter(stream.readline, ""))

    def count(self, words: str) -> int:
        """How many lines hold some words."""
        return sum(words in line for line in self.lines)


def reads_certificates(pid: int) -> bool:
    """Whether a serving process has read its certificate, and looks for a newer one.

    It ignores SIGHUP until then.
    """
    caught = re.search(r"^SigCgt:\s*(\w+)$", Path(f"/proc/{pid}/status").read_text(), re.M)
    return caught is not None and bool(int(caught[1], 16) >> (signal.SIGHUP - 1) & 1)


def renewed(certificates: Path, name: str, files: Path) -> bytes:
    """Have a server's files be those of another certificate, one after the other; its DER."""
    certificate, key = self_signed(certificates / name, "127.0.0.1")
    for made, file in ((certificate, files / "cert.pem"), (key, files / "key.pem")):
        aside = file.with_suffix(".new")
        aside.write_bytes(made.read_bytes())
        aside.rename(file)
    return ssl.PEM_cert_to_DER_cert(certificate.read_text())


def encrypted(key: Path) -> bytes:
    """A key as it is with a password."""
    private = serialization.load_pem_private_key(key.read_bytes(), None)
    return private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )


def expiry_of(certificate: Path) -> datetime:
    """Until when a certificate is valid."""
    return x509.load_pem_x509_certificate(certificate.read_bytes()).not_valid_after_utc


@contextmanager
def connected(url: str, name: str | None = "localhost") -> Iterator[ssl.SSLSocket]:
    """A connection that has finished its handshake, and named the server or not."""
    address = urlsplit(url)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection((address.hostname, address.port), timeout=120) as plain,
        context.wrap_socket(plain, server_hostname=name) as connection,
    ):
        yield connection


def shown(url: str, name: str | None = "localhost") -> bytes | None:
    """The certificate that a new connection is shown."""
    with connected(url, name) as connection:
        return connection.getpeercert(binary_form=True)


def answered(connection: ssl.SSLSocket) -> bool:
    """Whether a connection that is open asks, and is answered."""
    connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    answer = HTTPResponse(connection)
    answer.begin()
    return answer.status == 200 and answer.read() != b""


@pytest.mark.wide
def test_a_renewed_certificate_is_read(shared_home: Path, tmp_path: Path) -> None:
    """By new connections, with a name and without; those that are open go on.

    One that cannot be used, or that another key belongs to, is said and changes nothing.
    """
    files = tmp_path / "tls"
    files.mkdir()
    certificate, key = files / "cert.pem", files / "key.pem"
    first = renewed(tmp_path, "first", files)
    options = ["--tls-cert", str(certificate), "--tls-key", str(key), "--log-level", "info"]
    with (
        serving(shared_home, *options, variables=KEEPS) as (url, process),
        connected(url) as before,
    ):
        said = Said(process.stderr)
        assert answered(before)  # then it may stay silent for as long as KEEPS says
        assert shown(url) == shown(url, None) == first
        second = renewed(tmp_path, "second", files)
        wait_until(lambda: shown(url) == second)
        assert shown(url, None) == second
        assert answered(before)

        certificate.write_text("no certificate")
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: said.count("cannot be used") == 1)
        assert said.count(f"certificate {certificate}, {key}: cannot be used") == 1
        other, _ = self_signed(tmp_path / "other", "127.0.0.1")
        certificate.write_bytes(other.read_bytes())  # and the key stays
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: said.count("the server goes on with the one before") == 2)
        certificate.unlink()
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: said.count("No such file") == 1)
        renewed(tmp_path, "second", files)
        key.write_bytes(encrypted(key))  # nobody is asked for its password
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: said.count("cannot be used") == 4)
        assert shown(url) == second

        third = renewed(tmp_path, "third", files)
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: said.count("read again; it is valid until 20") == 2)
        assert shown(url) == third
        assert answered(before)
        assert process.poll() is None


def test_a_renewal_is_read_when_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look at a certificate whose key has not come yet reads neither; nor one at the same.

    `/metrics` has the expiry of the one that is used.
    """
    files = tmp_path / "tls"
    files.mkdir()
    renewed(tmp_path, "first", files)
    pair = (files / "cert.pem", files / "key.pem")
    reads: list[int] = []

    def read() -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*pair)
        reads.append(1)
        return context

    certificate = Certificate(pair, read)
    for _ in range(3):
        certificate.look()
    assert len(reads) == 1
    first = certificate.expires
    assert first == expiry_of(pair[0])
    monkeypatch.setattr("api.server.self_signed._DAYS", 30)
    other, key = self_signed(tmp_path / "second", "127.0.0.1")
    pair[0].write_bytes(other.read_bytes())
    certificate.look()
    pair[1].write_bytes(key.read_bytes())
    certificate.look()
    assert (len(reads), certificate.expires) == (1, first)
    certificate.look()
    assert (len(reads), certificate.expires) == (2, expiry_of(pair[0]))
    assert certificate.expires != first
    pair[0].write_text("no certificate")
    certificate.read_again()
    assert certificate.expires == expiry_of(other)
    assert LOOK_S <= 10


@pytest.mark.wide
def test_several_processes_read_it(shared_home: Path, tmp_path: Path) -> None:
    """Each of them, by its own look or when the first one is told; none is replaced."""
    files = tmp_path / "tls"
    files.mkdir()
    certificate, key = files / "cert.pem", files / "key.pem"
    renewed(tmp_path, "first", files)
    options = ["--tls-cert", str(certificate), "--tls-key", str(key), "--log-level", "info"]
    with (
        serving(shared_home, "--workers", "2", *options, variables=KEEPS) as (url, process),
        httpx.Client(verify=False, headers={"Connection": "close"}) as ask,
        connected(url) as before,
    ):
        said = Said(process.stderr)
        assert answered(before)  # then it may stay silent for as long as KEEPS says
        until_ready(url, ask)
        wait_until(lambda: len(workers_of(process.pid)) == 2)
        workers = workers_of(process.pid)
        # A process that starts later reads the second one first, and reads none again.
        wait_until(lambda: all(map(reads_certificates, workers)))
        second = renewed(tmp_path, "second", files)
        wait_until(lambda: said.count("read again") == 2)
        assert {shown(url) for _ in range(20)} == {second}
        name = "framesift_certificate_expiry_timestamp_seconds"
        expiry = {samples(ask.get(f"{url}/metrics").text, name)[""] for _ in range(6)}
        assert expiry == {expiry_of(certificate).timestamp()}
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: said.count("read again") == 4)
        certificate.write_text("no certificate")
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: said.count("cannot be used") >= 2)
        assert {shown(url) for _ in range(20)} == {second}
        assert answered(before)
        assert workers_of(process.pid) == workers
        assert process.poll() is None


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.wide)])
def test_a_server_without_a_certificate_stays(shared_home: Path, workers: int) -> None:
    """SIGHUP ends no server: there is nothing to read again."""
    with serving(shared_home, "--workers", str(workers)) as (url, process):
        until_ready(url)
        for _ in range(3):
            process.send_signal(signal.SIGHUP)
            assert httpx.get(f"{url}/healthz", timeout=120).status_code == 200
        assert process.poll() is None


@pytest.mark.wide
@pytest.mark.parametrize(("prefix", "workers", "ends"), [((), 1, True), ((), 2, True),
                                                         (("nohup",), 1, False)])  # fmt: skip
def test_a_terminal_that_is_gone_ends_the_server(
    shared_home: Path, tmp_path: Path, prefix: tuple[str, ...], workers: int, ends: bool
) -> None:
    """With its requests answered, unlike SIGHUP on a terminal that is there; not under nohup."""
    ours, theirs = pty.openpty()
    out = tmp_path / "out"
    with out.open("w") as file:
        process = subprocess.Popen(
            [*prefix, FRAMESIFT, "serve", "--no-auth", "--port", "0", "--drain", "5",
             "--workers", str(workers)],
            env=environment(shared_home), stdin=theirs, stdout=file, stderr=file,
            start_new_session=True, preexec_fn=lambda: _control(theirs),
        )  # fmt: skip
    os.close(theirs)
    try:
        wait_until(lambda: " on http" in out.read_text())
        url = out.read_text().partition(" on ")[2].split()[0]
        until_ready(url)
        process.send_signal(signal.SIGHUP)
        assert not is_stopping(url)
        os.close(ours)
        if ends:
            wait_until(lambda: is_stopping(url))
            assert process.wait(120) == -signal.SIGHUP
        else:
            assert not any(is_stopping(url) for _ in range(20))
            assert process.poll() is None
    finally:
        process.kill()
        process.wait()


def is_stopping(url: str) -> bool:
    """Whether a server says that it should be asked no more; another of its processes may load."""
    return bool(httpx.get(f"{url}/readyz", timeout=120).json().get("title") == "Stopping")


def _control(terminal: int) -> None:
    """Have a terminal be that of the process, and of those that it starts, as a shell does."""
    import fcntl
    import termios

    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup's before the tests goes to all of them
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
