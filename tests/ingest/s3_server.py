"""Real S3 servers for tests, each started once per process, and a TCP proxy that breaks lines."""

import atexit
import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.config import Config

CEPH_PROGRAMS = ("ceph-mon", "ceph-osd", "ceph-mgr", "radosgw", "radosgw-admin", "ceph")
CEPH_PACKAGES = "ceph-mon ceph-osd ceph-mgr radosgw ceph-common"


@dataclass(frozen=True)
class S3Server:
    """Where a server listens and a user that may do everything there."""

    endpoint: str
    access_key: str
    secret_key: str

    def client(self) -> Any:
        """A boto3 client of that user."""
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            region_name="us-east-1",
            config=Config(s3={"addressing_style": "path"}),
        )

    def sign_in(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        """Put the user's keys where boto3 finds them, and nobody else's."""
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("AWS_CONFIG_FILE", str(folder / "config"))
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(folder / "credentials"))
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", self.access_key)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", self.secret_key)

    def new_bucket(self, name: str) -> str:
        """Make a bucket, emptied if it was there."""
        client = self.client()
        with contextlib.suppress(client.exceptions.BucketAlreadyOwnedByYou):
            client.create_bucket(Bucket=name)
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=name)
        for entry in [entry for page in pages for entry in page.get("Contents", [])]:
            client.delete_object(Bucket=name, Key=entry["Key"])
        return name

    def put_folder(self, bucket: str, folder: Path, prefix: str = "") -> None:
        """Copy a folder's files into a bucket."""
        client = self.client()
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                key = prefix + path.relative_to(folder).as_posix()
                client.put_object(Bucket=bucket, Key=key, Body=path.read_bytes())


def free_port(more: int = 0) -> int:
    """A port that nobody has just now, and so are as many ``more`` that follow.

    It is below those that Linux gives to who asks for any, and so it is most likely free later.
    """
    while True:
        port = 10_000 + secrets.randbelow(22_000 - more)
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for number in range(port, port + more + 1):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", number))
            return port


def wait_for_port(port: int, seconds: float) -> None:
    """Return when something listens; AssertionError when nothing does in time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise AssertionError(f"nothing listens on port {port} after {seconds} s")


@cache
def moto(certificate: Path | None = None, key: Path | None = None) -> S3Server:
    """A moto server, 3 s: the whole API of S3, but it checks neither signatures nor ACLs.

    With a certificate and its key (PEM files) it speaks TLS.
    """
    port = free_port()
    tls = ["-c", str(certificate), "-k", str(key)] if certificate else []
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port), *tls],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    atexit.register(process.wait)
    atexit.register(process.terminate)
    wait_for_port(port, 300)
    scheme = "https" if certificate else "http"
    return S3Server(f"{scheme}://127.0.0.1:{port}", "testing", "testing")


def missing_ceph() -> str:
    """Why Ceph cannot be started here; empty if it can."""
    missing = [name for name in CEPH_PROGRAMS if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)} not installed (Debian packages {CEPH_PACKAGES})"
    return "" if os.geteuid() == 0 else "Ceph's programs start as root only"


@cache
def ceph(parent: str | None = None) -> S3Server:
    """Ceph's gateway, 17 s: a production S3 with signatures and access lists. Skips without it.

    Its store is below ``parent``, where temporary files are where that is None.
    """
    if reason := missing_ceph():
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="ceph-", dir=parent))
    atexit.register(stop_ceph, folder)
    port, monitor = free_port(), free_port(1)
    server = S3Server(f"http://127.0.0.1:{port}", "AKIATESTTESTTEST", "not-a-secret-but-a-test")
    script = Path(__file__).with_name("ceph_up.sh")
    arguments = [str(folder), str(port), str(monitor), server.access_key, server.secret_key]
    log = folder / "up.log"
    with log.open("wb") as output:
        done = subprocess.run(
            ["bash", str(script), *arguments], stdout=output, stderr=output, timeout=600
        )
    assert done.returncode == 0, log.read_text()[-2000:]
    return server


def stop_ceph(folder: Path) -> None:
    """End Ceph's daemons, the gateway first, which hangs without the others; remove the folder."""
    pids = {path.stem: int(path.read_text()) for path in (folder / "run").glob("*.pid")}
    for name in sorted(pids, key=lambda name: not name.startswith("client")):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pids[name], signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


class BreakingProxy:
    """A TCP proxy that drops or stalls some of the connections it is given.

    Attributes:
        endpoint: The URL it serves.
        connections: Connections met so far.
        downstream: Bytes it handed to clients.
    """

    def __init__(self, target: str, fault: Callable[[int], str]) -> None:
        """``fault`` gives for the n-th connection "drop", "cut" (in the answer), "stall" or ""."""
        parts = urlsplit(target)
        self._target, self._fault = (parts.hostname or "", parts.port or 80), fault
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.connections = self.downstream = 0
        self._lock, self._open = threading.Lock(), True
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while self._open:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(
                target=self._serve, args=(client, self._fault(self.connections)), daemon=True
            ).start()

    def _serve(self, client: socket.socket, fault: str) -> None:
        self._sockets.append(client)
        if fault == "drop":
            client.close()
            return
        if fault == "stall":
            return  # accepted, never answered
        server = socket.create_connection(self._target)
        self._sockets.append(server)
        for end in (client, server):  # or Nagle's algorithm adds 40 ms to every answer
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=self._pump, args=(client, server, ""), daemon=True).start()
        self._pump(server, client, fault)

    def _pump(self, source: socket.socket, sink: socket.socket, fault: str) -> None:
        with contextlib.suppress(OSError):
            while content := source.recv(65536):
                if fault == "cut":
                    sink.sendall(content[: len(content) // 2])
                    break
                sink.sendall(content)
                with self._lock:
                    self.downstream += len(content)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Stop listening and close every connection."""
        self._open = False
        for end in (self._listener, *self._sockets):
            end.close()


@contextlib.contextmanager
def breaking_proxy(target: str, fault: Callable[[int], str]) -> Iterator[BreakingProxy]:
    """A proxy before a server, closed at the end."""
    proxy = BreakingProxy(target, fault)
    try:
        yield proxy
    finally:
        proxy.close()
