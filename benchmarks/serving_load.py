"""Many clients of one server for minutes, and the same questions to Datasette over the same rows.

    .venv/bin/python -m benchmarks.serving_load [--frames 41277] [--seconds 300] [--clients 64]
        [--workers 1] [--slices 5] [--kinds range sql page image] [--commit-every S]
        [--datasette .venv-bench/bin/datasette] [--beside PROGRAM]

Clients are coroutines of a process of their own; each keeps one connection and asks again as soon
as it is answered: range selections, SQL that groups, pages of results, and pictures (of 24 drawn
frames; Datasette has none, and is asked the rest). Both servers run all the time and are asked in
turns, --slices each, on the same machine. Values asked for change from request to request, so that
no answer is one that was kept. With --commit-every another process commits 50 frames as often, as a
watcher does. Memory is what the server's processes hold (RSS) before the first
request and after each slice; CPU is theirs, user and system, divided by the requests. Datasette is
asked where --datasette names it; `make bench-setup` puts it into .venv-bench/bin. --beside names
another version's `framesift`, which is asked in turn over the same home.
"""

import argparse
import asyncio
import json
import os
import random
import re
import select
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import urlopen

from benchmarks.catalog_scale import CLASS_LIST, REPOSITORY, load_frames
from benchmarks.query_peers import Sqlite
from benchmarks.query_speed import _write_wide
from benchmarks.snapshot_refresh import new_frames
from ingest.labels.class_list import ClassList
from tests.api.servers import environment, serving, until_ready
from tests.ingest.s3_server import free_port
from tests.pipeline.homes import SAMPLE, add_source, open_home

KINDS = ("range", "sql", "page", "image")
TWICE = ("range", "page")
"""What a client asks twice as often as the others, in a random order."""

_START_S = 120.0
_COMMITTED = 50

Times = dict[str, list[float]]


def main() -> None:
    """Print a table of each server, and how its memory went."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=41_277)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--slices", type=int, default=5)
    parser.add_argument("--datasette", type=Path, default=None)
    parser.add_argument("--beside", type=Path, default=None)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--commit-every", type=float, metavar="S", help="Seconds.")
    parser.add_argument("--committer", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--client", nargs=2, metavar=("SERVER", "URL"), help=argparse.SUPPRESS)
    parser.add_argument("--images", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        server, url = options.client
        _be_clients(server, url, options.clients, options.seconds, options.images, options.kinds)
        return
    if options.committer:
        _commit(options.committer, options.commit_every)
        return
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        home, images = Path(folder, "home"), Path(folder, "images.json")
        _make_home(home, options.frames, images, Path(folder))
        servers = _started(stack, options, home, Path(folder, "wide.sqlite"))
        for server in servers.values():  # both warm
            server.kinds = options.kinds
            server.ask(options.clients, 5, images)
            server.start_counting()
        if options.commit_every:
            stack.enter_context(_committing(home, options.commit_every))
        for _ in range(options.slices):
            for server in servers.values():
                server.count(options.clients, options.seconds / options.slices, images)
        print(
            f"{options.frames:,} frames, {options.clients} clients, {options.workers} workers, "
            f"{options.seconds:g} s each in {options.slices} slices"
        )
        for name, server in servers.items():
            server.report(name)


def _started(
    stack: ExitStack, options: argparse.Namespace, home: Path, data: Path
) -> "dict[str, _Server]":
    """The servers that are asked, by name, until the stack ends."""
    workers = "--workers", str(options.workers)
    url, process = stack.enter_context(
        serving(home, *workers, variables={"FRAMESIFT_HOME": str(home)})
    )
    servers = {"Framesift": _Server("framesift", url, process.pid)}
    if options.beside is not None:
        url, other = stack.enter_context(_other_version(options.beside, home, workers))
        servers["Framesift before"] = _Server("framesift", url, other.pid)
    if options.datasette is not None:
        servers["Datasette"] = stack.enter_context(_datasette(options.datasette, data))
    for server in servers.values():
        if server.name == "framesift":
            for _ in range(8 * options.workers):  # each by another connection, so any worker's
                until_ready(server.url)
    return servers


class _Server:
    """One server, and what was measured of it."""

    def __init__(self, name: str, url: str, pid: int) -> None:
        self.name, self.url, self._pid = name, url, pid
        self.kinds: Sequence[str] = KINDS

    def start_counting(self) -> None:
        """From here on it is measured."""
        self._memory = [_rss_mb(self._pid)]
        self._times: Times = defaultdict(list)
        self._errors: dict[str, int] = defaultdict(int)
        self._seconds = self._cpu_s = 0.0

    def ask(self, clients: int, seconds: float, images: Path) -> tuple[Times, dict[str, int]]:
        """One slice: seconds per request by kind, and errors by what they are."""
        call = [
            *(sys.executable, "-m", "benchmarks.serving_load", "--client", self.name, self.url),
            *("--clients", str(clients), "--seconds", str(seconds), "--images", str(images)),
            *("--kinds", *self.kinds),
        ]
        run = subprocess.run(call, cwd=REPOSITORY, capture_output=True, text=True, check=False)
        if run.returncode:
            raise SystemExit(run.stderr)
        answer = json.loads(run.stdout)
        return answer["times"], answer["errors"]

    def count(self, clients: int, seconds: float, images: Path) -> None:
        """One slice, measured."""
        began = cpu_s(self._pid)
        times, errors = self.ask(clients, seconds, images)
        self._cpu_s += cpu_s(self._pid) - began
        for kind, values in times.items():
            self._times[kind] += values
        for what, number in errors.items():
            self._errors[what] += number
        self._seconds += seconds
        self._memory.append(_rss_mb(self._pid))

    def report(self, name: str) -> None:
        """Print it."""
        total = sum(map(len, self._times.values()))
        rate, each_ms = total / self._seconds, 1000 * self._cpu_s / total
        print(f"\n{name}: {rate:,.1f} requests/s, {each_ms:.2f} ms of CPU each")
        print(f"  errors: {dict(self._errors)}")
        print(f"  {'kind':8}{'requests':>10}{'per s':>9}{'p50 ms':>9}{'p99 ms':>9}{'most ms':>9}")
        for kind, values in sorted(self._times.items()):
            p99 = statistics.quantiles(values, n=100)[98] if len(values) > 1 else values[0]
            print(
                f"  {kind:8}{len(values):>10,}{len(values) / self._seconds:>9,.1f}"
                f"{statistics.median(values) * 1000:>9,.1f}{p99 * 1000:>9,.1f}"
                f"{max(values) * 1000:>9,.0f}"
            )
        print("  memory in MB:", " ".join(f"{mb:,.0f}" for mb in self._memory))


def _make_home(home: Path, frames: int, images: Path, folder: Path) -> None:
    """Drawn frames, 24 with pictures among them, and all in a SQLite file, too."""
    palette = ClassList.from_colours(json.loads(CLASS_LIST.read_bytes()))
    workspace = open_home(home)
    load_frames(workspace.whole_catalog, list(palette.tags), frames)
    _write_wide(workspace.whole_catalog, folder / "wide.duckdb")
    Sqlite(folder / "wide.duckdb", folder)
    add_source(workspace, "pictures", SAMPLE)
    with workspace.catalog.reading() as cursor:
        rows = cursor.execute(
            "SELECT fkey FROM lake.main.tags_frame WHERE fkey LIKE 'local:pictures:%'"
        ).fetchall()
    images.write_text(json.dumps([row[0] for row in rows]))
    workspace.close()


@contextmanager
def _committing(home: Path, seconds: float) -> Iterator[None]:
    """Another process commits to the home's catalog; how often is said at the end."""
    call = [sys.executable, "-m", "benchmarks.serving_load", "--committer", str(home),
            "--commit-every", str(seconds)]  # fmt: skip
    process = subprocess.Popen(
        call, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield
    finally:
        print(f"\n{process.communicate()[0].strip()} commits of {_COMMITTED} frames")


def _commit(home: Path, seconds: float) -> None:
    """Commit every so many seconds until standard input ends."""
    store, commits = open_home(home).whole_catalog, 0
    while not select.select([sys.stdin], [], [], seconds)[0]:
        new_frames(store, f"new{commits}", _COMMITTED)
        commits += 1
    print(commits)


@contextmanager
def _other_version(
    program: Path, home: Path, arguments: Sequence[str]
) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    """Serve the home by another version: its URL and its process."""
    port = free_port()
    call = [str(program), "serve", "--port", str(port), "--no-auth", "--log-level", "warning"]
    with subprocess.Popen(
        [*call, *arguments], env=environment(home), stdout=subprocess.DEVNULL
    ) as process:
        url = f"http://127.0.0.1:{port}"
        try:
            until = time.monotonic() + _START_S
            while not _listens(f"{url}/healthz"):
                if process.poll() is not None or time.monotonic() > until:
                    raise SystemExit(f"{program} does not serve")
                time.sleep(0.2)
            yield url, process
        finally:
            process.terminate()
            process.wait(60)


def _listens(url: str) -> bool:
    try:
        urlopen(url, timeout=5).close()  # noqa: S310
    except OSError:
        return False
    return True


@contextmanager
def _datasette(program: Path, data: Path) -> Iterator[_Server]:
    """Datasette over the file, with every index that the questions could use."""
    import sqlite3

    with sqlite3.connect(data) as connection:
        for column in ("car", "bicycle", "camera"):
            connection.execute(f"CREATE INDEX by_{column} ON wide ({column})")
        connection.execute("ANALYZE")
    process = subprocess.Popen(
        [program, "serve", "-i", data, "--port", "8765", "--setting", "sql_time_limit_ms", "60000",
         "--setting", "max_returned_rows", "10000"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    url = "http://127.0.0.1:8765"
    try:
        until = time.monotonic() + _START_S
        while not _listens(f"{url}/-/versions.json"):
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"{program} does not serve")
            time.sleep(0.2)
        yield _Server("datasette", url, process.pid)
    finally:
        process.terminate()
        process.wait(30)


def _rss_mb(pid: int) -> float:
    """Memory that a process and its children hold [MB]."""
    kilobytes = 0
    for one in _with_children(pid):
        match = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{one}/status").read_text())
        kilobytes += int(match[1]) if match else 0
    return kilobytes * 1024 / 1e6


def cpu_s(pid: int) -> float:
    """CPU, user and system, that a process and its children have taken [s]."""
    ticks = 0
    for one in _with_children(pid):
        stat = Path(f"/proc/{one}/stat").read_text(encoding="ascii")
        ticks += sum(map(int, stat.rpartition(")")[2].split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _with_children(pid: int) -> list[int]:
    pids, pending = [], [pid]
    while pending:
        pids.append(pending.pop())
        pending += map(int, Path(f"/proc/{pids[-1]}/task/{pids[-1]}/children").read_text().split())
    return pids


def _be_clients(
    server: str, url: str, clients: int, seconds: float, images: Path, kinds: Sequence[str]
) -> None:
    """Ask, and print what came of it."""
    ask = _framesift(json.loads(images.read_text())) if server == "framesift" else _datasettes()
    times: Times = defaultdict(list)
    errors: dict[str, int] = defaultdict(int)
    mix = [*kinds, *(kind for kind in kinds if kind in TWICE)]

    async def run() -> None:
        until = time.perf_counter() + seconds
        await asyncio.gather(
            *(_client(url, number, until, ask, mix, times, errors) for number in range(clients))
        )

    asyncio.run(run())
    print(json.dumps({"times": times, "errors": errors}))


Ask = Callable[[str, random.Random], bytes | None]
"""The request of a kind; None where the server has nothing of it."""


def _framesift(images: list[str]) -> Ask:
    def ask(kind: str, chance: random.Random) -> bytes | None:
        low = chance.randrange(0, 60_000)
        if kind == "range":
            question = {
                "ranges": [
                    {"tag": "car", "lowest": low, "highest": low + 2_000},
                    {"tag": "bicycle", "lowest": 1_000},
                ],
                "cameras": ["front_center"],
                "limit": 100,
            }
            return _request("POST", "/v1/selections", json.dumps(question), "application/json")
        if kind == "sql":
            statement = (
                "select camera, count(*), sum(int(car)) from metaocean_view "
                f"where int(car) >= {low} group by camera"
            )
            return _request("POST", "/db2whrest/v1/sql_query", statement, "text/plain")
        if kind == "page":
            where = urlencode({"limit": 100, "where": f"car >= {low}", "columns": "camera,car"})
            return _request("GET", f"/v1/frames?{where}")
        width = chance.randrange(100, 500, 20)
        return _request("GET", f"/v1/images/{quote(chance.choice(images))}?width={width}")

    return ask


def _datasettes() -> Ask:
    fields = [("_col", "fkey"), ("_col", "camera"), ("_col", "car"), ("_nocount", "1"),
              ("_nofacet", "1"), ("_size", "100")]  # fmt: skip

    def ask(kind: str, chance: random.Random) -> bytes | None:
        low = chance.randrange(0, 60_000)
        if kind == "range":
            ranges = [("car__gte", low), ("car__lte", low + 2_000), ("bicycle__gte", 1_000),
                      ("camera__exact", "front_center")]  # fmt: skip
            every = fields[3:]  # all columns, as Framesift's answer has them
            return _request("GET", f"/wide/wide.json?{urlencode([*every, *ranges])}")
        if kind == "sql":
            statement = f"select camera, count(*), sum(car) from wide where car >= {low} group by 1"
            return _request("GET", f"/wide.json?{urlencode({'sql': statement})}")
        if kind == "page":
            return _request("GET", f"/wide/wide.json?{urlencode([*fields, ('car__gte', low)])}")
        return None

    return ask


def _request(method: str, target: str, body: str = "", kind: str = "") -> bytes:
    lines = [f"{method} {target} HTTP/1.1", "Host: localhost"]
    if body:
        lines += [f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


async def _client(
    url: str,
    number: int,
    until: float,
    ask: Ask,
    mix: Sequence[str],
    times: Times,
    errors: dict[str, int],
) -> None:
    address, chance = urlsplit(url), random.Random(number)
    reader = writer = None
    while time.perf_counter() < until:
        kind = chance.choice(mix)
        request = ask(kind, chance)
        if request is None:
            continue
        try:
            if reader is None or writer is None:
                reader, writer = await asyncio.open_connection(address.hostname, address.port)
            began = time.perf_counter()
            writer.write(request)
            status = await asyncio.wait_for(_answer(reader), 120)
            times[kind].append(time.perf_counter() - began)
            if status != 200:
                errors[f"{kind} {status}"] += 1
        except (OSError, EOFError, TimeoutError, ValueError) as error:
            errors[f"{kind} {type(error).__name__}"] += 1
            if writer is not None:
                writer.close()
            reader = writer = None
    if writer is not None:
        writer.close()


async def _answer(reader: asyncio.StreamReader) -> int:
    """Read one answer; its status."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = re.search(rb"\r\ncontent-length: *(\d+)", head)
    if length:
        await reader.readexactly(int(length[1]))
    elif b"chunked" in head:
        while size := int(await reader.readline(), 16):
            await reader.readexactly(size + 2)
        await reader.readline()
    else:
        raise ValueError("an answer without an end")
    return int(head.split(b" ", 2)[1])


if __name__ == "__main__":
    main()
