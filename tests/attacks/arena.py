"""A server to attack, accounts of every role, and a watch on its memory and its answers."""

import contextlib
import http.client
import re
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from catalog.accounts import row_collections, tokens, users
from catalog.records.store import RecordStore
from tests.api.servers import serving, until_ready
from tests.attacks.memory_limit import memory_limited

ACCOUNTS = {
    "read": ("datauser", "read"),
    "write": ("datauser", "write"),
    "collectionadmin": ("collectionadmin", "admin"),
    "dataadmin": ("dataadmin", "admin"),
    "admin": ("admin", "admin"),
}
"""User -> role, and scope of the token. The first three see the collection ``scene`` only."""

SCENE = "20260311_130314"
RULE = f"filename like '%/{SCENE}/%'"

ASK_EVERY_S = 0.05


@dataclass(frozen=True)
class Server:
    """A served home.

    Attributes:
        url: Where it listens.
        process: The server: one process, and the jobs that it starts.
        home: Its folder.
        headers: User of ACCOUNTS -> headers with their token.
        log: Lines of its log, warnings and errors, as they come.
        limit: What limits its memory, in words; empty where nothing does.
    """

    url: str
    process: "subprocess.Popen[str]"
    home: Path
    headers: Mapping[str, dict[str, str]]
    log: list[str]
    limit: str

    def client(self, account: str, timeout_s: float = 300) -> httpx.Client:
        """A client with an account's token."""
        return httpx.Client(base_url=self.url, headers=self.headers[account], timeout=timeout_s)


@contextlib.contextmanager
def arena(
    home: Path,
    *arguments: str,
    variables: Mapping[str, str] | None = None,
    memory_mb: int | None = None,
) -> Iterator[Server]:
    """Serve a home, which the block may change, to ACCOUNTS, on loopback.

    Args:
        home: Its folder; the accounts are made in it.
        arguments: More of `framesift serve`.
        variables: FRAMESIFT_ variables.
        memory_mb: What the server may take beyond what it takes at rest [MB]; the kernel kills it,
            or refuses, where it takes more.
    """
    headers = _accounts(home)
    with serving(home, *arguments, variables=variables, authenticates=True) as (url, process):
        log: list[str] = []
        reading = threading.Thread(target=_read, args=(process, log))
        reading.start()
        try:
            with httpx.Client(timeout=120) as client:
                until_ready(url, client)
            limits: contextlib.AbstractContextManager[str] = contextlib.nullcontext("")
            if memory_mb is not None:
                limits = memory_limited(_family(process.pid), memory_mb)
            with limits as limit:
                try:
                    yield Server(url, process, home, headers, log, limit)
                finally:
                    process.terminate()
                    process.wait(300)
        finally:
            process.terminate()
            process.wait(300)
            reading.join()


def _read(process: "subprocess.Popen[str]", log: list[str]) -> None:
    # An attack fills a pipe that nobody reads, and then the server would wait for its log.
    assert process.stderr is not None
    log.extend(process.stderr)


def _accounts(home: Path) -> dict[str, dict[str, str]]:
    records = RecordStore(home / "records" / "records.sqlite")
    row_collections.add(records, "scene", RULE)
    headers = {}
    for name, (role, scope) in ACCOUNTS.items():
        users.add(records, name, [role], None)
        if role in ("datauser", "collectionadmin"):
            row_collections.assign(records, "scene", name)
        _, token = tokens.create(records, name, "t", scope, timedelta(days=1))
        headers[name] = {"Authorization": f"Bearer {token}"}
    return headers


def _family(pid: int) -> list[int]:
    """The process and all that it started and theirs, as far as they are there."""
    pids = [pid]
    for parent in pids:
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                pids += [int(child) for child in children.read_text().split()]
    return pids


@dataclass
class Watch:
    """Memory of a server during an attack, and the waits of others.

    Attributes:
        name: The attack's.
        before_mb: Resident memory at its beginning, of all of the server's processes [MB].
        peak_mb: The most it was [MB].
        longest_healthz_s: The longest that /healthz took to answer [s].
    """

    name: str
    before_mb: float
    peak_mb: float = 0.0
    longest_healthz_s: float = 0.0
    _ended: threading.Event = field(default_factory=threading.Event, repr=False)

    def line(self) -> str:
        """The attack and its figures."""
        return (
            f"{self.name}: peak {self.peak_mb:.0f} MB (before {self.before_mb:.0f}), "
            f"longest /healthz {self.longest_healthz_s:.2f} s"
        )


@contextlib.contextmanager
def watching(
    server: Server, name: str, *, most_mb: float = 1024, most_healthz_s: float = 20
) -> Iterator[Watch]:
    """Watch the server during the block, which attacks it.

    The limits are those of a server that dies or a hang, and no timing.

    Args:
        server: What is attacked.
        name: The attack's.
        most_mb: By how much its memory may grow [MB].
        most_healthz_s: How long /healthz may take to answer [s].
    """
    for pid in _family(server.process.pid):
        with contextlib.suppress(OSError):
            Path(f"/proc/{pid}/clear_refs").write_text("5")  # VmHWM starts again
    watch = Watch(name, _resident_mb(server))
    threads = [threading.Thread(target=watched, args=(server, watch)) for watched in (_ask, _weigh)]
    for thread in threads:
        thread.start()
    try:
        yield watch
    finally:
        watch._ended.set()
        for thread in threads:
            thread.join()
    assert server.process.poll() is None, f"the server died: {watch.line()} {server.limit}"
    assert watch.peak_mb - watch.before_mb < most_mb, watch.line()
    assert watch.longest_healthz_s < most_healthz_s, watch.line()


def _ask(server: Server, watch: Watch) -> None:
    address = urlsplit(server.url)
    while True:
        over = watch._ended.is_set()  # one more after the end
        began = time.monotonic()
        connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=120)
        while Path(f"/proc/{server.process.pid}").exists():  # poll is for one thread
            try:
                connection.request("GET", "/healthz")
                if connection.getresponse().read():
                    break
            except (OSError, http.client.HTTPException):  # the time until one is answered counts
                connection.close()
                time.sleep(ASK_EVERY_S)
            if time.monotonic() - began > 300:
                break
        connection.close()
        watch.longest_healthz_s = max(watch.longest_healthz_s, time.monotonic() - began)
        if over:
            return
        watch._ended.wait(ASK_EVERY_S)


def _weigh(server: Server, watch: Watch) -> None:
    while True:
        over = watch._ended.is_set()
        watch.peak_mb = max(watch.peak_mb, _resident_mb(server, "VmHWM"))
        if over:
            return
        watch._ended.wait(ASK_EVERY_S)


def _resident_mb(server: Server, figure: str = "VmRSS") -> float:
    kilobytes = 0
    for pid in _family(server.process.pid):
        with contextlib.suppress(OSError):
            match = re.search(rf"{figure}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
            kilobytes += int(match[1]) if match else 0  # a zombie has none
    return kilobytes / 1024
