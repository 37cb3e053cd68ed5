"""The redbook's questions, asked of Framesift and of other engines that hold the same frames.

    python -m benchmarks.query_speed [--frames 1000000] [--rounds 9] [--peers wide views polars...]

Drawn frames as catalog_scale has them. Each cell is the median of --rounds in ms of wall time, the
statement seen before, with the factor to DuckDB's one wide table. Two rows are Framesift: as a
server asks (the newest snapshot in memory) and as a command does (Parquet); both with the redbook's
own statements. Polars is asked where it is installed (`make bench-setup`), PostgreSQL where its
programs are. Every answer's digest must be that of the others; of samples, how many frames of
each camera.
"""

import argparse
import hashlib
import importlib.util
import json
import os
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

from benchmarks import query_peers
from benchmarks.catalog_scale import CLASS_LIST, load_frames
from benchmarks.query_statements import SAMPLE, SHARE, SIX_TABLES, VIEW
from catalog.lake.schema import CLASS_PIXELS
from catalog.lake.views import tag_columns
from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
from ingest.labels.class_list import ClassList
from query.frames.candidates import columns_of
from query.question.question import Question
from query.run.run_sql import run_sql
from query.sets.draw import Frames, draw_set
from query.sets.methods import Sample
from query.sets.select_set import SetRequest, select_set
from query.statistics.class_statistics import class_report
from tests.postgres_server import missing_postgres, postgres

QUESTIONS = ("ranges", "share", "classes", "sample")
PEERS = ("wide", "views", "polars", "sqlite", "postgres", "postgres-tags")

Rows = query_peers.Rows


class Framesift:
    """The catalog, with its newest snapshot in memory or without."""

    def __init__(self, name: str, store: CatalogStore) -> None:
        self.name, self.store = name, store

    def ranges(self) -> Rows:
        """The redbook's six-table join."""
        return self._sql(SIX_TABLES)

    def share(self) -> Rows:
        """The redbook's share of a class."""
        return self._sql(SHARE)

    def view(self) -> Rows:
        """Ranges over metaocean_view."""
        return self._sql(VIEW)

    def classes(self, tags: list[str]) -> Rows:
        """The rows that `framesift classes` shows."""
        shares = [share for share in class_report(self.store).classes if share.tag in tags]
        return [tuple(value for s in shares for value in (s.frames, s.pixels))]

    def sample(self) -> Rows:
        """The frames of `dataset create --sample 5000 --stratify camera`, with all columns."""
        request = SetRequest(Question(), Sample(frames=SAMPLE, stratify=("camera",)), seed=7)
        frames = select_set(self.store, request)[0].frames
        return list(zip(frames["fkey"].to_pylist(), frames["camera"].to_pylist(), strict=True))

    def drawn(self) -> Rows:
        """The same draw, of which only what the others fetch is fetched: name and camera."""
        with self.store.reading() as cursor:
            relation = cursor.relation
            method = Sample(frames=SAMPLE, stratify=("camera",))
            chosen = draw_set(Frames(cursor, relation, Question()), method, seed=7)
            rows = columns_of(cursor, relation, chosen.hashes, ["fkey", "camera"]).rows
        return list(zip(rows["fkey"].to_pylist(), rows["camera"].to_pylist(), strict=True))

    def _sql(self, text: str) -> Rows:
        rows = run_sql(self.store, text).rows
        return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--memory-mb", type=int, default=8_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=PEERS)
    options = parser.parse_args()
    palette = ClassList.from_colours(json.loads(CLASS_LIST.read_bytes()))
    titles = dict(zip(palette.tags, palette.classes, strict=True))
    with tempfile.TemporaryDirectory() as folder:
        location = CatalogLocation.in_folder(Path(folder, "catalog"))
        cold = CatalogStore(location, class_names=titles.copy)
        load_frames(cold, list(titles), options.frames)
        hot = CatalogStore(location, snapshot_memory_mb=options.memory_mb, class_names=titles.copy)
        began = time.perf_counter()
        hot.snapshot()
        if hot.memory is None or not hot.memory.wait(600):
            raise SystemExit("the snapshot does not fit into --memory-mb")
        print(f"{options.frames:,} frames; into memory in {time.perf_counter() - began:.1f} s")
        ours = [Framesift("Framesift, in memory", hot),
                Framesift("Framesift, Parquet", cold)]  # fmt: skip
        data = Path(folder, "wide.duckdb")
        _write_wide(cold, data)
        table = _Table(list(titles), options.rounds)
        peers = _peers(options.peers, data, Path(folder), list(titles))
        table.add(next(peers))
        for each in (*ours, *peers):
            table.add(each)
        for store in ours:
            print(f"{store.name}, metaocean_view: {_median(options.rounds, store.view):.1f} ms")
            print(f"{store.name}, name and camera: {_median(options.rounds, store.drawn):.1f} ms")


def _peers(names: list[str], data: Path, folder: Path, tags: list[str]) -> Iterator[Any]:
    """The wide table first: it is what the others are compared with."""
    yield query_peers.DuckDbWide(data)
    with duckdb.connect(str(data), read_only=True) as connection:
        every = [row[0] for row in connection.execute("DESCRIBE wide").fetchall()]
    numbers = [tag for tag in every if tag in tags or tag in ("front", "center")]
    if "views" in names:
        yield query_peers.DuckDbViews(data, numbers)
    if "polars" in names and importlib.util.find_spec("polars") is None:
        print("Polars is left out: not installed; make bench-setup puts it into .venv-bench")
    elif "polars" in names:
        from benchmarks.polars_peer import Polars

        yield Polars(data)
    if "sqlite" in names:
        yield query_peers.Sqlite(data, folder)
    if missing_postgres():
        print(f"PostgreSQL is left out: {missing_postgres()}")
        return
    if "postgres" in names:
        yield query_peers.PostgresWide(postgres(), data)
    if "postgres-tags" in names:
        yield query_peers.PostgresPerTag(postgres(), data, numbers)


class _Table:
    """Prints a row for each engine, and holds answers against each other."""

    def __init__(self, tags: list[str], rounds: int) -> None:
        self.tags, self.rounds = tags, rounds
        self.first: dict[str, tuple[float, str]] = {}
        print(f"{'ms (x DuckDB wide)':28}" + "".join(f"{name:>18}" for name in QUESTIONS))

    def add(self, engine: Any) -> None:
        cells = []
        for name in QUESTIONS:
            ask = getattr(engine, name)
            work = partial(ask, self.tags) if name == "classes" else ask
            time_ms, digest = _median(self.rounds, work), _digest(name, work())
            first_ms, first_digest = self.first.setdefault(name, (time_ms, digest))
            if digest != first_digest:
                raise SystemExit(f"{engine.name} answers {name} otherwise than DuckDB wide")
            cells.append(f"{time_ms:10.1f} ({time_ms / first_ms:4.1f})")
        print(f"{engine.name:28}" + "".join(f"{cell:>18}" for cell in cells), flush=True)


def _digest(name: str, rows: Rows) -> str:
    if name == "sample":
        # Rounded: the others' parts of 5,000 do not add up to it.
        counts = Counter(row[1] for row in rows)
        rows = [(camera, round(count, -1)) for camera, count in counts.items()]
    if name == "share":
        rows = [(round(float(rows[0][0]), 6),)]
    text = json.dumps(sorted([list(map(str, row)) for row in rows]))
    return hashlib.sha256(text.encode()).hexdigest()


def _median(rounds: int, work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    # What takes long is not as sensitive to the machine's noise.
    rounds = rounds if time.perf_counter() - began < 5 else min(rounds, 3)
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        times.append(1e3 * (time.perf_counter() - began))
    return statistics.median(times)


def _write_wide(store: CatalogStore, path: Path) -> None:
    """The frames as one wide table, and every file as metaocean has it."""
    with store.reading() as cursor, duckdb.connect(str(path)) as connection:
        tags = ", ".join(f'c."{t.tag}"' for t in tag_columns(cursor) if t.table == CLASS_PIXELS)
        for table, statement in {
            "wide": "SELECT f.fkey, f.platform, f.datasource, f.path, f.filename, f.size, "
            f"t.scene, t.camera, {tags} FROM lake.main.files f "
            "JOIN lake.main.class_pixels c ON c.fkey = f.fkey "
            "JOIN lake.main.tags_frame t ON t.fkey = f.fkey",
            "metaocean": "SELECT * FROM metaocean",
        }.items():
            rows = cursor.execute(statement).to_arrow_reader(100_000)
            connection.register("incoming", rows)
            connection.execute(f"CREATE TABLE {table} AS SELECT * FROM incoming")
            connection.unregister("incoming")


if __name__ == "__main__":
    print(f"{os.cpu_count()} cores")
    main()
