"""The redbook's questions: over the plain views, rewritten, held in memory, and by hand.

    .venv/bin/python -m benchmarks.query_speed [--frames 1000000] [--hot-mb 4000]

Drawn frames as catalog_scale has them. Each cell is the median of --rounds, in ms of wall time, the
statement seen before. "views" is the statement over Discover's views as they are; "rewritten" and
"in memory" are run_sql, without and with a hot snapshot; "by hand" is plain DuckDB, in memory, over
one wide table that holds every file's columns and every tag as an integer.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa

from benchmarks.catalog_scale import CLASS_LIST, load_frames
from catalog.frames import class_shares
from catalog.location import CatalogLocation
from catalog.store import CatalogStore
from ingest.palette import Palette
from query import read_only
from query.db2_semantics import to_duckdb
from query.prepared import discover_schema
from query.run_sql import run_sql

SIX_TABLES = (
    "select platform,datasource,filename from metaocean,t_front,t_center,t_car,t_bicycle,"
    "t_pedestrian where t_front.fkey=metaocean.fkey and int(t_front.value)=1 and "
    "t_center.fkey=metaocean.fkey and int(t_center.value)=1 and t_car.fkey=metaocean.fkey and "
    "int(t_car.value)>=10000 and int(t_car.value)<=20000 and t_bicycle.fkey=metaocean.fkey and "
    "int(t_bicycle.value)>=3000 and int(t_bicycle.value)<=5000 and "
    "t_pedestrian.fkey=metaocean.fkey and int(t_pedestrian.value)>=5000 and "
    "int(t_pedestrian.value)<=6000"
)
SHARE = (
    "select sum(int(t_rd_normal_street.value)) / "
    "((count(t_rd_normal_street.value)*1920*1208)/100) from t_rd_normal_street with ur"
)
VIEW = "select fkey from metaocean_view where front=1 and center=1 and bicycle>=900 and car<=1000"
STATEMENTS = {"six-table join": SIX_TABLES, "share": SHARE, "metaocean_view": VIEW}
BY_HAND = {
    "six-table join": "SELECT platform, datasource, filename FROM wide WHERE front = 1 AND "
    "center = 1 AND car BETWEEN 10000 AND 20000 AND bicycle BETWEEN 3000 AND 5000 AND "
    "pedestrian BETWEEN 5000 AND 6000",
    "share": "SELECT sum(rd_normal_street) / (count(*) * 1920 * 1208 / 100) FROM wide "
    "WHERE rd_normal_street IS NOT NULL",
    "metaocean_view": "SELECT fkey FROM wide WHERE front = 1 AND center = 1 AND bicycle >= 900 "
    "AND car <= 1000",
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--hot-mb", type=int, default=4_000)
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    palette = Palette.from_class_list(json.loads(CLASS_LIST.read_bytes()))
    names = dict(zip(palette.tags, palette.classes, strict=True))
    with tempfile.TemporaryDirectory() as folder:
        location = CatalogLocation.in_folder(Path(folder, "catalog"))
        cold = CatalogStore(location)
        load_frames(cold, list(names), given.frames)
        hot = CatalogStore(location, hot_memory_mb=given.hot_mb)
        began = time.perf_counter()
        hot.snapshot()
        if hot.hot is None or not hot.hot.wait(600):
            raise SystemExit("the snapshot does not fit into --hot-mb")
        print(f"{given.frames:,} frames; into memory in {time.perf_counter() - began:.1f} s")
        wide = _wide(cold)
        print(f"{'ms':16}{'views':>10}{'rewritten':>11}{'in memory':>11}{'by hand':>10}")
        for name, text in STATEMENTS.items():
            times = [
                _median(given.rounds, partial(_plain, cold, text)),
                _median(given.rounds, partial(run_sql, cold, text)),
                _median(given.rounds, partial(run_sql, hot, text)),
                _median(given.rounds, partial(_by_hand, wide, BY_HAND[name])),
            ]
            _row(name, times)
        shares = [
            _median(given.rounds, partial(class_shares, store, names)) for store in (cold, hot)
        ]
        print(f"{'38 classes':16}{'':10}{shares[0]:11.1f}{shares[1]:11.1f}")


def _row(name: str, times: list[float]) -> None:
    print(f"{name:16}{times[0]:10.1f}{times[1]:11.1f}{times[2]:11.1f}{times[3]:10.1f}", flush=True)


def _median(rounds: int, work: Callable[[], object]) -> float:
    work()
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        times.append(1e3 * (time.perf_counter() - began))
    return statistics.median(times)


def _plain(store: CatalogStore, text: str) -> pa.Table:
    with store.reading() as cursor:
        query = read_only.parse(text)
        return cursor.execute(to_duckdb(query, discover_schema(cursor))).to_arrow_table()


def _wide(store: CatalogStore) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    with store.reading() as cursor:
        rows = cursor.execute(
            "SELECT f.*, c.* EXCLUDE (fkey) FROM lake.main.files f "
            "LEFT JOIN lake.main.class_pixels c ON c.fkey = f.fkey"
        ).to_arrow_reader(100_000)
        connection.register("incoming", rows)
        connection.execute("CREATE TABLE wide AS SELECT * FROM incoming")
        connection.unregister("incoming")
    return connection


def _by_hand(connection: duckdb.DuckDBPyConnection, text: str) -> pa.Table:
    return connection.execute(text).to_arrow_table()


if __name__ == "__main__":
    main()
