"""Growth by doubling: what a question or a command costs with twice as much of one thing.

    python -m benchmarks.growth [KIND...] [--steps 3] [--rounds 3]

KIND is one of frames, classes, scenes, sources, snapshots, datasets, jobs, users, labels (those
shared by two frames). Each size is a home of its own, twice as large as the one before, and each
work runs in this process, sizes in turn: CPU seconds, user and system, the median of the rounds
with the least and the greatest, and the ratio to half the size. Cost may double: a ratio above 2
by more than the spread is a fault.
"""

import argparse
import resource
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from api.services.session import Session
from api.settings import Settings
from api.workspace import Workspace
from benchmarks.catalog_scale import fill_home
from catalog.frames import duplicates
from catalog.lake.schema import CLASS_PIXELS
from catalog.lake.snapshots import log
from catalog.lake.views import tag_columns
from catalog.records.sources import add_source
from catalog.records.tables import Dataset, Job, Source
from catalog.records.user_tables import User
from catalog.tags import families
from query.frames.select_frames import select_frames
from query.question.label_range import LabelRange
from query.question.question import Question
from query.run.run_sql import run_sql

Work = Callable[[Workspace], object]
_FEW = 5_000
_BY_SCENE = "select scene, count(*) from metaocean_view group by scene"
_COUNT = "select count(*) from t_turn where value = '1'"


@dataclass(frozen=True)
class Kind:
    """A thing that grows.

    Attributes:
        smallest: How many there are at first.
        make: Fills an empty home with so many.
        works: What is measured, by name.
    """

    smallest: int
    make: Callable[[Workspace, int], object]
    works: dict[str, Work]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", choices=[*KINDS, []], default=[])
    parser.add_argument("--steps", type=int, default=3, help="sizes of each kind")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print("CPU s: median of the rounds (least to greatest); ratio to half the size\n")
    print(
        "| what grows | work | " + " | ".join(["once", *["doubled"] * (options.steps - 1)]) + " |"
    )
    print("|---|---|" + "---|" * options.steps)
    for name in options.kinds or KINDS:
        kind = KINDS[name]
        sizes = [kind.smallest * 2**step for step in range(options.steps)]
        with tempfile.TemporaryDirectory() as folder:
            homes = [_home(Path(folder, str(size)), kind, size) for size in sizes]
            for title, work in kind.works.items():
                cells = _cells(homes, work, options.rounds)
                print(f"| {name}: {', '.join(f'{s:,}' for s in sizes)} | {title} | {cells} |")
            for home in homes:
                home.close()


def _home(folder: Path, kind: Kind, size: int) -> Workspace:
    folder.mkdir()
    workspace = Workspace(Settings(home=folder, compact_files=0), on_making=lambda _: None)
    kind.make(workspace, size)
    return workspace


def _cells(homes: list[Workspace], work: Work, rounds: int) -> str:
    seconds: list[list[float]] = [[] for _ in homes]
    for home in homes:
        work(home)  # what is made once
    for _ in range(rounds):
        for home, times in zip(homes, seconds, strict=True):
            before = _cpu_s()
            work(home)
            times.append(_cpu_s() - before)
    cells, half = [], 0.0
    for times in seconds:
        median = statistics.median(times)
        ratio = f", {median / half:.2f}" if half else ""
        cells.append(f"{median:.3f} ({min(times):.3f} to {max(times):.3f}){ratio}")
        half = median
    return " | ".join(cells)


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _frames(home: Workspace, frames: int, classes: int = 38) -> None:
    fill_home(home, {f"class{number}": f"Class {number}" for number in range(classes)}, frames)


def _scenes(home: Workspace, scenes: int) -> None:
    """Frames of as many scenes, all of one number of frames."""
    _frames(home, 40_000, classes=4)
    with home.whole_catalog.writing("scenes") as connection:
        connection.execute(f"UPDATE tags_frame SET scene = 'scene' || frame_number % {scenes}")


def _sources(home: Workspace, sources: int) -> None:
    _frames(home, _FEW, classes=4)
    for number in range(sources):
        source = Source(name=f"s{number}", uri=f"/data/{number}", platform="NFS", cluster="c",
                        datasource=f"d{number}")  # fmt: skip
        add_source(home.records, source)


def _snapshots(home: Workspace, snapshots: int) -> None:
    store = home.whole_catalog
    families.write(store, "own", {"turn": "INTEGER"})
    for number in range(snapshots):
        with store.writing("a tag") as connection:
            connection.execute(
                "INSERT INTO tags_own BY NAME SELECT ? AS fkey, 1 AS turn", [f"c:d:{number}"]
            )


def _datasets(home: Workspace, datasets: int) -> None:
    with home.records.session() as session:
        session.add_all(
            Dataset(name=f"d{number}", version=1, content_id=f"{number:064}", question={},
                    snapshot=1, frames=1, splits={}, class_pixels={}, manifest="datasets/x")
            for number in range(datasets)
        )  # fmt: skip


def _jobs(home: Workspace, jobs: int) -> None:
    with home.records.session() as session:
        session.add_all(
            Job(name=f"j{number}", kind="train", backend="local", state="done", request={})
            for number in range(jobs)
        )


def _users(home: Workspace, users: int) -> None:
    with home.records.session() as session:
        session.add_all(User(name=f"u{number}", roles=["user"]) for number in range(users))


def _labels(home: Workspace, shared: int) -> None:
    """40,000 frames, as many digests of which two labels share one."""
    _frames(home, 40_000, classes=4)
    with home.whole_catalog.writing("digests") as connection:
        connection.execute(
            "INSERT INTO file_digests BY NAME SELECT 'local:a2d2:' || label_file AS fkey, "
            f"left(md5((CASE WHEN frame_number % 20000 < {shared} THEN frame_number % 20000 "
            "ELSE 20000 + frame_number END)::VARCHAR), 16) AS digest FROM tags_frame"
        )


def _range(home: Workspace) -> object:
    ranges = (LabelRange.parse("class0=9000:9050"), LabelRange.parse("class1=10000:20000"))
    return select_frames(home.catalog, Question(ranges=ranges))


def _sums(home: Workspace) -> object:
    with home.catalog.reading() as snapshot:
        tags = [one.tag for one in tag_columns(snapshot) if one.table == CLASS_PIXELS]
    sums = ", ".join(f"sum(int({tag}))" for tag in tags)
    return run_sql(home.catalog, f"select {sums} from metaocean_view")


def _search(home: Workspace) -> object:
    with home.whole_catalog.inspecting() as cursor:
        return duplicates.search(cursor, None)


KINDS = {
    "frames": Kind(50_000, _frames, {
        "range of two classes, from Parquet": _range,
        "sums of 38 classes, from Parquet": _sums,
    }),
    "classes": Kind(20, lambda home, count: _frames(home, 20_000, count), {
        "range of two classes, from Parquet": _range,
        "sums of all classes, from Parquet": _sums,
    }),
    "scenes": Kind(500, _scenes, {
        "frames of each scene, from Parquet": lambda home: run_sql(home.catalog, _BY_SCENE),
    }),
    "sources": Kind(50, _sources, {
        "list of sources": lambda home: Session(home).sources.list(),
    }),
    "snapshots": Kind(50, _snapshots, {
        "log of all": lambda home: log(home.whole_catalog),
        "a count of files, from Parquet": lambda home: run_sql(home.catalog, _COUNT),
    }),
    "datasets": Kind(200, _datasets, {
        "list of datasets": lambda home: Session(home).datasets.list(),
    }),
    "jobs": Kind(200, _jobs, {"list of jobs": lambda home: Session(home).jobs.list()}),
    "users": Kind(200, _users, {"list of users": lambda home: Session(home).users.list()}),
    "labels": Kind(2_500, _labels, {"search for duplicates, all compared": _search}),
}  # fmt: skip


if __name__ == "__main__":
    main()
