"""Four readers, two ingests, a watcher and a tag import at once on one catalog.

    python -m benchmarks.many_processes [--backend sqlite-folder] [--seconds 300] [--frames 20000]

Prints the latency of reads alone, beside processes that are busy with something else (on few cores
that alone slows them), and under the writes; the time of the commits; how many operations failed;
and whether an fkey is there twice. Reads are what API workers run: a range of a class, the
redbook's join, shares of all classes, a count over files. An ingest commits what a scan does, 500
frames at a time, and rests as long as their labels would take to count on one core; the watcher
commits three files a second and removes them later; the tag import replaces the values of three
tags for 1,000 frames, again and again. Backends: see tests/catalog/backends.py; PostgreSQL and S3
are real servers on this machine.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from api.settings import Settings
from api.workspace import Workspace
from catalog.errors import FramesiftError
from catalog.frames.frames import SourceNames, register, remove
from catalog.lake.schema import POSITION_TAGS
from catalog.maintenance.compaction import compact
from catalog.records.scans import replace_problems
from catalog.records.sources import add_source, recorded_sources
from catalog.records.tables import Scan, Source
from catalog.records.tag_definitions import define_class_tags
from catalog.store import CatalogStore
from catalog.tags.tags import add_class_tags
from catalog.values import File, Frame, Problem, now
from ingest.imports.tag_import import import_tags
from query.frames.select_frames import select_frames
from query.question.label_range import LabelRange
from query.question.question import Question
from query.run.run_sql import run_sql
from query.statistics.class_statistics import class_report

REPOSITORY = Path(__file__).parent.parent
CLASSES = tuple(f"class_{number:02d}" for number in range(38))
ROLES = {"reader": 4, "ingest": 2, "watcher": 1, "tags": 1}
BATCH = 500
COUNTING_S = 0.5  # 500 labels at 1 ms
COMPACT_EVERY_S = 60.0


@dataclass
class Work:
    """Operations of one process.

    Attributes:
        role: Which.
        seconds: Time of each operation.
        failures: Messages of those that failed.
        added: Files added and not removed again.
    """

    role: str
    seconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    added: int = 0


@dataclass
class Report:
    """Operations of all processes.

    Attributes:
        alone: Reads of the readers alone.
        busy: Reads beside as many processes as write, which do not touch the catalog.
        under_writes: Reads while others write.
        work: Every process that ran under writes.
        files: Files expected in the catalog afterwards.
        doubled: fkeys that are there more than once, by table.
        counted: Files that are there.
    """

    alone: list[float]
    busy: list[float]
    under_writes: list[float]
    work: list[Work]
    files: int
    doubled: dict[str, int]
    counted: int

    @property
    def failures(self) -> list[str]:
        """Every operation that failed."""
        return [message for work in self.work for message in work.failures]


def measure(
    variables: dict[str, str],
    home: Path,
    *,
    frames: int,
    seconds: float,
    compacting: bool,
    alone: bool = True,
) -> Report:
    """Run all of it on the stores that the variables name.

    Args:
        variables: FRAMESIFT_ settings of the stores.
        home: FRAMESIFT_HOME.
        frames: Frames in the catalog before.
        seconds: How long all of them run at once.
        compacting: Compact beside them, each minute.
        alone: Before, let the readers run alone, and beside busy processes, a third as long each.
    """
    environment = {**os.environ, **variables, "FRAMESIFT_HOME": str(home)}
    _run(environment, ["fill"], 0, frames)
    readers = ["reader"] * ROLES["reader"]
    writers = [role for role, count in ROLES.items() if role != "reader" for _ in range(count)]
    others = ["busy"] * len(writers)
    by_themselves = _run(environment, readers, seconds / 3, frames) if alone else []
    busy = _run(environment, readers + others, seconds / 3, frames) if alone else []
    roles = readers + writers + (["compact"] if compacting else [])
    work = _run(environment, roles, seconds, frames)
    (check,) = _run(environment, ["check"], 0, frames)
    counted, doubled = json.loads(check.failures[0])
    expected = frames + sum(done.added for done in work)
    return Report(
        _reads(by_themselves), _reads(busy), _reads(work), work, expected, doubled, counted
    )


def _reads(work: list[Work]) -> list[float]:
    return [one for done in work if done.role == "reader" for one in done.seconds]


def _run(environment: dict[str, str], roles: list[str], seconds: float, frames: int) -> list[Work]:
    """The processes, begun together when all of them have opened the catalog."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.many_processes", "--role", role,
             "--number", str(number), "--seconds", str(seconds), "--frames", str(frames)],
            cwd=REPOSITORY, env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )
        for number, role in enumerate(roles)
    ]  # fmt: skip
    try:
        for process in processes:
            if process.stdout is None or process.stdout.readline() != "ready\n":
                raise RuntimeError(f"a process did not begin: {process.args!r}")
        for process in processes:
            if process.stdin is not None:
                process.stdin.write("go\n")
                process.stdin.flush()
        works = [Work(**json.loads(process.communicate()[0])) for process in processes]
    finally:
        for process in processes:
            process.kill()
    return works


def _work(role: str, number: int, seconds: float, frames: int) -> Work:
    """One process."""
    workspace = Workspace(Settings())
    work = Work(role)
    if role == "fill":
        print("ready", flush=True)
        _fill(workspace, frames)
        return work
    if role == "check":
        print("ready", flush=True)
        work.failures.append(json.dumps(_check(workspace.whole_catalog)))
        return work
    step = _STEPS[role](workspace, work, number, frames) if role != "busy" else None
    print("ready", flush=True)
    sys.stdin.readline()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if step is None:
            sum(range(100_000))
            continue
        try:
            rest = step()
        except FramesiftError as error:
            work.failures.append(f"{role} {number}: {type(error).__name__}: {error}")
            rest = 0.1
        time.sleep(max(0.0, min(rest, until - time.monotonic())))
    return work


Step = Callable[[], float]
"""Does one operation; how long to rest after it [s]."""


def _reader(workspace: Workspace, work: Work, number: int, _frames: int) -> Step:
    question = Question(ranges=(LabelRange(tag="class_03", lowest=1_000, highest=200_000),))
    join = (
        "SELECT t_class_01.value, metaocean.filename FROM metaocean, t_class_01, t_front "
        "WHERE metaocean.fkey = t_class_01.fkey AND metaocean.fkey = t_front.fkey "
        "AND int(t_class_01.value) > 900000 AND t_front.value = '1'"
    )
    asks: list[Callable[[], object]] = [
        lambda: select_frames(workspace.catalog, question),
        lambda: run_sql(workspace.catalog, join),
        lambda: class_report(workspace.catalog).classes,
        lambda: run_sql(workspace.catalog, "SELECT count(*), sum(size) FROM metaocean"),
    ]
    turn = number
    for ask in asks:
        ask()

    def step() -> float:
        nonlocal turn
        turn += 1
        began = time.perf_counter()
        asks[turn % len(asks)]()
        work.seconds.append(time.perf_counter() - began)
        return 0.0

    return step


def _ingest(workspace: Workspace, work: Work, number: int, _frames: int) -> Step:
    source = _source(workspace, f"ingest{number}")
    batch = 0

    def step() -> float:
        nonlocal batch
        files, frames = _frames_of(f"{batch:06d}", BATCH)
        began = time.perf_counter()
        replace_problems(
            workspace.records,
            source.id,
            _SCAN,
            [file.key for file in files],
            [Problem("orphan", f"x{batch}", "r")],
        )
        with workspace.whole_catalog.writing(f"batch {batch}", author="ingest") as connection:
            register(connection, _names(source), files, frames, _SCAN)
        work.seconds.append(time.perf_counter() - began)
        work.added += len(files)
        batch += 1
        return COUNTING_S

    return step


def _watcher(workspace: Workspace, work: Work, number: int, _frames: int) -> Step:
    source = _source(workspace, f"watch{number}")
    batch = 0

    def step() -> float:
        nonlocal batch
        files, frames = _frames_of(f"{batch:06d}", 3)
        old = [file.key for file in _frames_of(f"{batch - 5:06d}", 3)[0]] if batch >= 5 else []
        began = time.perf_counter()
        with workspace.whole_catalog.writing(f"event {batch}", author="watch") as connection:
            remove(connection, _names(source), old)
            register(connection, _names(source), files, frames, _SCAN)
        work.seconds.append(time.perf_counter() - began)
        work.added += len(files) - len(old)
        batch += 1
        return max(0.0, 1.0 - work.seconds[-1])

    return step


def _tags(workspace: Workspace, work: Work, _number: int, frames: int) -> Step:
    folder = Path(tempfile.mkdtemp(dir=workspace.home))
    keys = [file.key for file in _frames_of("base", min(frames, 1_000))[0]]
    turn = 0

    def step() -> float:
        nonlocal turn
        path = folder / "tags.csv"
        with path.open("w", newline="") as out:
            writer = csv.writer(out)
            writer.writerow(["filename", "weather", "rating", "turn"])
            writer.writerows([key, "rain", 0.5 + turn, turn] for key in keys)
        began = time.perf_counter()
        counts = import_tags(workspace.whole_catalog, path, "mine", datasource="base")
        work.seconds.append(time.perf_counter() - began)
        if counts.imported != len(keys):
            work.failures.append(f"tags: {counts.imported} of {len(keys)} rows imported")
        turn += 1
        return 0.5

    return step


def _compact(workspace: Workspace, work: Work, _number: int, _frames: int) -> Step:
    def step() -> float:
        began = time.perf_counter()
        compact(workspace.whole_catalog, list, keep=timedelta(days=1))
        work.seconds.append(time.perf_counter() - began)
        return COMPACT_EVERY_S

    return step


_STEPS: dict[str, Callable[[Workspace, Work, int, int], Step]] = {
    "reader": _reader,
    "ingest": _ingest,
    "watcher": _watcher,
    "tags": _tags,
    "compact": _compact,
}


# What is written

_SCAN = 1


def _fill(workspace: Workspace, frames: int) -> None:
    """A source of many frames, and a scan of it for the problems."""
    source = _source(workspace, "base")
    add_class_tags(workspace.whole_catalog, CLASSES)
    define_class_tags(workspace.records, {tag: tag for tag in CLASSES})
    for start in range(0, frames, 10_000):
        files, some = _frames_of("base", min(10_000, frames - start), start)
        with workspace.whole_catalog.writing("base") as connection:
            register(connection, _names(source), files, some, _SCAN)


def _source(workspace: Workspace, name: str) -> Source:
    known = {source.name: source for source in recorded_sources(workspace.records)}
    if name in known:
        return known[name]
    source = add_source(
        workspace.records,
        Source(name=name, uri=f"/{name}", platform="NFS", cluster="c", datasource=name),
    )
    if name == "base":
        with workspace.records.session() as session:
            session.add(Scan(id=_SCAN, source_id=source.id, state="done"))
    return source


def _names(source: Source) -> SourceNames:
    return SourceNames(source.platform, source.cluster, source.datasource, source.uri)


def _frames_of(prefix: str, count: int, start: int = 0) -> tuple[list[File], list[Frame]]:
    """Camera images with their tags; pixels differ from frame to frame."""
    when = now()
    positions = {tag: int(tag in ("front", "center")) for tag in POSITION_TAGS}
    files, frames = [], []
    for number in range(start, start + count):
        key = f"{prefix}_{number:09d}.png"
        files.append(File(key, 2_000_000 + number, when))
        pixels = {tag: number * (index + 7) * 997 % 1_000_003 for index, tag in enumerate(CLASSES)}
        frames.append(
            Frame(key, f"label/{key}", None, None, "20180807_145028", "front_center", number,
                  1920, 1208, positions, pixels, 0)
        )  # fmt: skip
    return files, frames


def _check(store: CatalogStore) -> tuple[int, dict[str, int]]:
    """Number of files, and by table the fkeys that are there more than once."""
    tables = ("files", "class_pixels", "tags_frame", "tags_mine")
    with store.reading() as cursor:
        doubled = {}
        for table in tables:
            row = cursor.execute(
                f"SELECT count(*) - count(DISTINCT fkey) FROM lake.main.{table}"
            ).fetchone()
            doubled[table] = int(row[0]) if row else -1
        row = cursor.execute("SELECT count(*) FROM lake.main.files").fetchone()
        return int(row[0]) if row else 0, doubled


# What is printed


def show(report: Report) -> None:
    """Print the report."""
    print(f"{'':28}{'n':>8}{'p50':>9}{'p95':>9}{'p99':>9}{'longest':>9}   [ms]")
    for title, seconds in (
        ("reads alone", report.alone),
        ("reads, other processes busy", report.busy),
        ("reads under writes", report.under_writes),
        *((f"{role} commits", _commits(report, role)) for role in _WRITERS),
    ):
        if seconds:
            line = "".join(f"{1e3 * percentile(seconds, p):9.0f}" for p in (50, 95, 99, 100))
            print(f"{title:28}{len(seconds):8,}{line}")
    print(
        f"failed operations: {len(report.failures)}; files: {report.counted:,} of "
        f"{report.files:,} expected; doubled fkeys: {sum(report.doubled.values())}"
    )
    for message in report.failures[:5]:
        print(f"  {message}")


_WRITERS = ("ingest", "watcher", "tags", "compact")


def _commits(report: Report, role: str) -> list[float]:
    return [one for work in report.work if work.role == role for one in work.seconds]


def percentile(values: list[float], percent: float) -> float:
    """The value that so many percent are not above."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(percent / 100 * (len(ordered) - 1)))]


def main() -> None:
    """Print the table, or be one of the processes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", default="sqlite-folder")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--frames", type=int, default=20_000)
    parser.add_argument("--no-compaction", action="store_true")
    parser.add_argument("--role")
    parser.add_argument("--number", type=int, default=0)
    options = parser.parse_args()
    if options.role:
        print(
            json.dumps(vars(_work(options.role, options.number, options.seconds, options.frames)))
        )
        return
    from tests.catalog.backends import new_location, variables
    from tests.ingest.s3_server import moto
    from tests.postgres_server import postgres

    with tempfile.TemporaryDirectory() as folder:
        if options.backend.endswith("s3"):
            keys = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}
            os.environ.update(keys)
            moto()
        home = Path(folder)
        records = postgres().new() if "postgres" in options.backend else home / "records.sqlite"
        named = variables(new_location(options.backend, home), records)
        print(f"{options.backend}, {options.frames:,} frames, {os.cpu_count()} cores")
        show(
            measure(
                named, home, frames=options.frames, seconds=options.seconds,
                compacting=not options.no_compaction,
            )
        )  # fmt: skip


if __name__ == "__main__":
    main()
