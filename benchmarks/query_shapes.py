"""Twenty-two shapes of statements, asked of Framesift and of plain DuckDB over equal rows.

    .venv/bin/python -m benchmarks.query_shapes [--frames 1000000] [--rounds 7]
        [--home DIR] [--only NAME ...]

Framesift holds the newest snapshot in memory, and DuckDB the same rows as one wide table and one of
all files. Framesift's statements are Db2's SQL over Spectrum Discover's
views, DuckDB's are what an expert writes by hand over typed columns. A cell is the median of CPU
time (user and system, all threads of the process) of --rounds, both asked in turn, each statement
seen before. The digest of both answers must be the same; where a statement has an order, in that
order.
"""

import argparse
import hashlib
import json
import os
import resource
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from benchmarks.catalog_scale import CLASS_LIST, load_frames
from benchmarks.query_statements import SHARE, SIX_TABLES
from catalog.lake.connection import LAKE
from catalog.lake.schema import CLASS_PIXELS, FILES, FRAME_TAGS
from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
from ingest.labels.class_list import ClassList
from query.run.run_sql import run_sql

_KEYS = 1_000
"""Keys of the shapes that look many up."""

_TEN_COLUMNS = "fkey, filename, size, scene, camera, car, bicycle, pedestrian, truck, sky"


@dataclass(frozen=True)
class Shape:
    """A question in both engines' words.

    Attributes:
        ours: Db2's SQL over the views.
        by_hand: DuckDB's over `wide` (labelled frames) and `files` (every file).
        ordered: The order of the rows is part of the answer.
    """

    name: str
    ours: str
    by_hand: str
    ordered: bool = False


@dataclass(frozen=True)
class Names:
    """Names out of the catalog, which shapes look up."""

    filename: str
    fkey: str
    fkeys: Sequence[str]
    filenames: Sequence[str]
    scenes: Sequence[str]


def shapes(names: Names) -> list[Shape]:
    """Every shape."""
    fkeys = ", ".join(f"'{fkey}'" for fkey in names.fkeys)
    filenames = ", ".join(f"'{filename}'" for filename in names.filenames)
    scenes = ", ".join(f"'{scene}'" for scene in names.scenes)
    prefix = names.filename[: names.filename.rindex("/") + 1]
    return [
        Shape(
            "ranges, six tables", SIX_TABLES,
            "select platform, datasource, filename from wide where front = 1 and center = 1 and "
            "car between 10000 and 20000 and bicycle between 3000 and 5000 and "
            "pedestrian between 5000 and 6000",
        ),
        Shape(
            "ranges, the view",
            "select fkey from metaocean_view where front=1 and center=1 and bicycle>=900 and "
            "car<=1000",
            "select fkey from wide where front = 1 and center = 1 and bicycle >= 900 and "
            "car <= 1000",
        ),
        Shape(
            "share of a class", SHARE,
            "select sum(rd_normal_street) / (count(rd_normal_street) * 1920.0 * 1208 / 100) "
            "from wide",
        ),
        Shape(
            "fkey = one",
            f"select fkey, filename, size from metaocean where fkey = '{names.fkey}'",
            f"select fkey, filename, size from files where fkey = '{names.fkey}'",
        ),
        Shape(
            "fkey = one or another",
            f"select fkey, size from metaocean where fkey = '{names.fkey}' or "
            f"fkey = '{names.fkeys[1]}'",
            f"select fkey, size from files where fkey = '{names.fkey}' or "
            f"fkey = '{names.fkeys[1]}'",
        ),
        Shape(
            "filename in two",
            f"select fkey, size from metaocean where filename in ('{names.filename}', "
            f"'{names.filenames[1]}')",
            f"select fkey, size from files where filename in ('{names.filename}', "
            f"'{names.filenames[1]}')",
        ),
        Shape(
            "a frame by fkey, all of it",
            f"select * from metaocean_view where fkey = '{names.fkey}'",
            f"select * from wide where fkey = '{names.fkey}'",
        ),
        Shape(
            "fkey in 1,000",
            f"select fkey, size from metaocean where fkey in ({fkeys})",
            f"select fkey, size from files where fkey in ({fkeys})",
        ),
        Shape(
            "filename = one",
            f"select fkey, size from metaocean where filename = '{names.filename}'",
            f"select fkey, size from files where filename = '{names.filename}'",
        ),
        Shape(
            "filename in 1,000",
            f"select fkey, size from metaocean where filename in ({filenames})",
            f"select fkey, size from files where filename in ({filenames})",
        ),
        Shape(
            "filename like a prefix",
            f"select fkey, size from metaocean where filename like '{prefix}%'",
            f"select fkey, size from files where filename like '{prefix}%'",
        ),
        Shape(
            "scene in twenty",
            f"select fkey, camera from metaocean_view where scene in ({scenes}) and "
            "camera = 'front_center'",
            f"select fkey, camera from wide where scene in ({scenes}) and "
            "camera = 'front_center'",
        ),
        Shape(
            "top 100",
            "select fkey, int(car) as car from metaocean_view where car is not null "
            "order by int(car) desc, fkey fetch first 100 rows only",
            "select fkey, car from wide where car is not null order by car desc, fkey limit 100",
            ordered=True,
        ),
        Shape(
            "top 3 of each scene",
            "select scene, car from (select scene, int(car) as car, row_number() over "
            "(partition by scene order by int(car) desc) as place from metaocean_view "
            "where car is not null) as ranked where place <= 3",
            "select scene, car from (select scene, car, row_number() over "
            "(partition by scene order by car desc) as place from wide "
            "where car is not null) as ranked where place <= 3",
        ),
        Shape(
            "a list in order",
            "select fkey, car, scene from metaocean_view where car between 90000 and 100000 and "
            "bicycle > 0 order by int(car), fkey",
            "select fkey, car, scene from wide where car between 90000 and 100000 and "
            "bicycle > 0 order by car, fkey",
            ordered=True,
        ),
        Shape(
            "a page of ten columns",
            f"select {_TEN_COLUMNS} from metaocean_view where car between 10000 and 20000 "
            "order by fkey fetch first 100 rows only",
            f"select {_TEN_COLUMNS} from wide where car between 10000 and 20000 "
            "order by fkey limit 100",
            ordered=True,
        ),
        Shape(
            "a page of every column",
            "select * from metaocean_view where car between 10000 and 20000 order by fkey "
            "fetch first 100 rows only",
            "select * from wide where car between 10000 and 20000 order by fkey limit 100",
            ordered=True,
        ),
        Shape(
            "by camera",
            "select camera, count(*), sum(int(car)), max(int(car)) from metaocean_view "
            "where labelled = 1 group by camera",
            "select camera, count(*), sum(car), max(car) from wide where labelled = 1 "
            "group by camera",
        ),
        Shape(
            "scenes with many",
            "select scene, count(*) as frames from metaocean_view where pedestrian > 5000 "
            "group by scene having count(*) > 70 order by scene",
            "select scene, count(*) as frames from wide where pedestrian > 5000 group by scene "
            "having count(*) > 70 order by scene",
            ordered=True,
        ),
        Shape(
            "a histogram",
            "select case when int(value) = 0 then 'none' when int(value) < 10000 then 'few' else "
            "'many' end as cars, count(*) from t_car group by case when int(value) = 0 then "
            "'none' when int(value) < 10000 then 'few' else 'many' end",
            "select case when car = 0 then 'none' when car < 10000 then 'few' else 'many' end as "
            "cars, count(*) from wide where car is not null group by 1",
        ),
        Shape(
            "median and quantiles",
            "select median(int(value)), percentile_disc(0.1) within group (order by int(value)), "
            "percentile_disc(0.9) within group (order by int(value)) from t_car",
            "select quantile_cont(car, 0.5), quantile_disc(car, 0.1), quantile_disc(car, 0.9) "
            "from wide",
        ),
        Shape(
            "frames of scenes that have",
            "select count(*), sum(size) from metaocean_view where labelled = 1 and scene in "
            "(select scene from metaocean_view where truck > 100000 and bicycle > 80000)",
            "select count(*), sum(size) from wide where scene in (select scene from wide where "
            "truck > 100000 and bicycle > 80000)",
        ),
    ]  # fmt: skip


class Framesift:
    """The catalog, with its newest snapshot in memory."""

    def __init__(self, store: CatalogStore) -> None:
        self.store = store

    def rows(self, shape: Shape) -> pa.Table:
        """The answer."""
        return run_sql(self.store, shape.ours).rows


class PlainDuckDb:
    """DuckDB over the same rows, asked by hand."""

    def __init__(self, store: CatalogStore) -> None:
        self.connection = duckdb.connect()
        self._copy(store)

    def rows(self, shape: Shape) -> pa.Table:
        """The answer."""
        return self.connection.execute(shape.by_hand).to_arrow_table()

    def _copy(self, store: CatalogStore) -> None:
        with store.reading() as snapshot:
            for table, statement in {
                "wide": _WIDE.format(columns=_columns(store)),
                "files": f"SELECT * FROM {LAKE}.main.{FILES}",
            }.items():
                rows = snapshot.execute(
                    statement.replace(" main.", f" {LAKE}.main.")
                ).to_arrow_reader(100_000)
                self.connection.register("incoming", rows)
                self.connection.execute(f"CREATE TABLE {table} AS FROM incoming")
                self.connection.unregister("incoming")


_WIDE = (
    "SELECT {columns} FROM main.files f JOIN main.class_pixels c ON c.fkey = f.fkey "
    "JOIN main.tags_frame t ON t.fkey = f.fkey"
)


def _columns(store: CatalogStore) -> str:
    """metaocean_view's columns of files and tags, typed: what `select *` gives, but its nulls."""
    with store.reading() as snapshot:
        aliases = {CLASS_PIXELS: "c", FRAME_TAGS: "t"}
        tags = {name: aliases[tag.table] for name, tag in snapshot.tags.items()
                if tag.table in aliases}  # fmt: skip
        view = [name for name in snapshot.schema["metaocean_view"] if name not in _NOT_FILLED]
    return ", ".join(f'{tags.get(name, "f")}."{name}"' for name in view)


_NOT_FILLED = ("nodename", "filespace", "mgmtclass")
"""Columns that the product has and no source fills."""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument(
        "--home", type=Path, help="a home whose catalog is asked in place of drawn frames"
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", nargs="*", default=(), help="shapes whose names begin so")
    options = parser.parse_args()
    palette = ClassList.from_colours(json.loads(CLASS_LIST.read_bytes()))
    titles = dict(zip(palette.tags, palette.classes, strict=True))
    with tempfile.TemporaryDirectory() as folder:
        catalog = (options.home or Path(folder)) / "catalog"
        location = CatalogLocation.in_folder(catalog)
        cold = CatalogStore(location, class_names=titles.copy)
        if options.home is None:
            load_frames(cold, list(titles), options.frames)
        theirs = PlainDuckDb(cold)
        store = CatalogStore(location, snapshot_memory_mb=8_000, class_names=titles.copy)
        store.snapshot()
        if store.memory is None or not store.memory.wait(600):
            raise SystemExit("the snapshot does not fit into memory")
        names = _names(theirs.connection)
        _compare(Framesift(store), theirs, shapes(names), options)


def _names(connection: duckdb.DuckDBPyConnection) -> Names:
    drawn = connection.execute(
        f"SELECT fkey, filename FROM files ORDER BY hash(fkey) LIMIT {_KEYS}"
    ).fetchall()
    scenes = connection.execute(
        "SELECT scene FROM wide GROUP BY scene ORDER BY hash(scene) LIMIT 20"
    ).fetchall()
    (frame,) = connection.execute("SELECT fkey FROM wide ORDER BY hash(fkey) LIMIT 1").fetchall()
    return Names(
        drawn[0][1],
        frame[0],
        [fkey for fkey, _ in drawn],
        [filename for _, filename in drawn],
        [scene for (scene,) in scenes],
    )


def _compare(
    ours: Framesift, theirs: PlainDuckDb, asked: Sequence[Shape], options: argparse.Namespace
) -> None:
    print("| CPU ms | Framesift | DuckDB | ratio (least to greatest of the rounds) | rows |")
    print("|---|---|---|---|---|")
    ratios = []
    for shape in asked:
        if options.only and not shape.name.startswith(tuple(options.only)):
            continue
        digests = {_digest(engine.rows(shape), shape.ordered) for engine in (ours, theirs)}
        if len(digests) > 1:
            raise SystemExit(f"{shape.name}: Framesift answers otherwise than DuckDB")
        rows = ours.rows(shape).num_rows  # once more: templates are made at the second sight
        times: tuple[list[float], list[float]] = [], []
        for _ in range(options.rounds):
            times[0].append(_cpu_ms(ours, shape))
            times[1].append(_cpu_ms(theirs, shape))
        one, other = map(statistics.median, times)
        ratios.append(one / other)
        each = [one_ms / other_ms for one_ms, other_ms in zip(*times, strict=True)]
        ratio = f"{one / other:.2f} ({min(each):.2f} to {max(each):.2f})"
        print(f"| {shape.name} | {one:.1f} | {other:.1f} | {ratio} | {rows:,} |", flush=True)
    print(f"\ngeometric mean of {len(ratios)} ratios: {statistics.geometric_mean(ratios):.2f}")


def _cpu_ms(engine: Framesift | PlainDuckDb, shape: Shape) -> float:
    """CPU time of one answer, of several where one is too short to be measured alone."""
    began, times = _used_s(), 0
    while times < 1 or (_used_s() - began < 0.02 and times < 20):
        engine.rows(shape)
        times += 1
    return 1e3 * (_used_s() - began) / times


def _used_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _digest(rows: pa.Table, ordered: bool) -> str:
    """Of the rows' texts: Framesift's tags are texts, as Spectrum Discover has them."""
    filled = [name for name in rows.column_names if name not in _NOT_FILLED]
    columns = [rows[name].to_pylist() for name in filled]
    lines = [json.dumps([_plain(value) for value in row]) for row in zip(*columns, strict=True)]
    text = "\n".join(lines if ordered else sorted(lines))
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> str | None:
    """A value as a text: a whole number without its fraction, another with nine digits."""
    if value is None:
        return None
    if isinstance(value, float | Decimal):
        return f"{value:.0f}" if value == int(value) else f"{value:.9g}"
    return str(value)


if __name__ == "__main__":
    print(f"{os.cpu_count()} cores")
    main()
