"""Questions about a class group of three classes, beside the same about a class.

    .venv/bin/python -m benchmarks.class_groups [--frames 1000000] [--rounds 7] [--home DIR]

A row is a question, a column what it is about: a class; the same in a copy of the catalog that has
no group; the group; the sum written by hand, where a statement can have it. A cell is the median of
CPU time (user and system, all threads of the process) of --rounds, all asked in turn, each seen
before. From files and from memory. Then the load of the snapshot into memory, without the group and
with it.
"""

import argparse
import json
import resource
import shutil
import statistics
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.catalog_scale import CLASS_LIST, load_frames
from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
from catalog.tags.class_groups import define_group
from ingest.labels.class_list import ClassList
from query.frames.select_frames import select_frames
from query.question.label_range import LabelRange
from query.question.question import Question
from query.run.run_sql import run_sql
from query.statistics.histogram_report import AxisRequest
from query.statistics.histograms import histogram

_CLASSES = ("car", "truck", "bicycle")
_BY_HAND = "int(car) + int(truck) + int(bicycle)"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--home", type=Path, help="a home whose catalog is copied in place of drawn frames"
    )
    options = parser.parse_args()
    palette = ClassList.from_colours(json.loads(CLASS_LIST.read_bytes()))
    titles = dict(zip(palette.tags, palette.classes, strict=True))
    with tempfile.TemporaryDirectory() as folder:
        location = CatalogLocation.in_folder(Path(folder, "catalog"))
        if options.home is not None:
            shutil.copytree(options.home / "catalog", Path(folder, "catalog"))
        cold = CatalogStore(location, class_names=titles.copy)
        if options.home is None:
            load_frames(cold, list(titles), options.frames)
        shutil.copytree(Path(folder, "catalog"), Path(folder, "plain"))
        plain = CatalogLocation.in_folder(Path(folder, "plain"))
        without = _load_s(location)
        define_group(cold, "three", _CLASSES)
        loads = without, _load_s(location)
        print("| CPU ms | class | no group | group | by hand | class / no group | group / class |")
        print("|---|---|---|---|---|---|---|")
        for place, memory_mb in (("files", 0), ("memory", 8_000)):
            stores = [
                CatalogStore(each, class_names=titles.copy, snapshot_memory_mb=memory_mb)
                for each in (location, plain)
            ]
            for store in stores:
                store.snapshot()
                if memory_mb and not store.memory.wait(600):
                    raise SystemExit("the snapshot does not fit into memory")
            without_group = _questions(stores[1])
            for name, each in _questions(stores[0]).items():
                asked = {**each, "plain": without_group[name]["car"]}
                _compare(f"{name}, {place}", asked, options.rounds)
            for store in stores:
                store.close()
        print(f"load into memory: {loads[0]:.1f} s of CPU, with the group {loads[1]:.1f}")


def _questions(store: CatalogStore) -> Mapping[str, Mapping[str, Callable[[], object]]]:
    """What is asked: by its name, of a class, of the group and of the sum by hand."""

    def count(column: str) -> Callable[[], object]:
        statement = f"select count(*) from metaocean_view where {column} between 20000 and 40000"
        return lambda: run_sql(store, statement).rows.to_pylist()

    def total(column: str) -> Callable[[], object]:
        return lambda: run_sql(store, f"select sum({column}) from metaocean_view").rows.to_pylist()

    def first(tag: str) -> Callable[[], object]:
        ranges = (LabelRange(tag=tag, lowest=20_000, highest=40_000),)
        return lambda: len(select_frames(store, Question(ranges=ranges, limit=100)))

    def bins(tag: str) -> Callable[[], object]:
        return lambda: histogram(store, [AxisRequest(tag=tag, log=True)]).counts

    return {
        "range, counted": {"car": count("int(car)"), "three": count("int(three)"),
                           "sum": count(f"({_BY_HAND})")},
        "sum": {"car": total("int(car)"), "three": total("int(three)"), "sum": total(_BY_HAND)},
        "range, 100 frames": {"car": first("car"), "three": first("three")},
        "histogram": {"car": bins("car"), "three": bins("three")},
    }  # fmt: skip


def _compare(name: str, asked: Mapping[str, Callable[[], object]], rounds: int) -> None:
    answers = {key: ask() for key, ask in asked.items()}
    if "sum" in answers and answers["sum"] != answers["three"]:
        raise SystemExit(f"{name}: the group answers otherwise than the sum by hand")
    if answers["plain"] != answers["car"]:
        raise SystemExit(f"{name}: the class answers otherwise where no group is defined")
    times: dict[str, list[float]] = {key: [] for key in asked}
    for ask in asked.values():
        ask()
    for _ in range(rounds):
        for key, ask in asked.items():
            began = _cpu_s()
            ask()
            times[key].append((_cpu_s() - began) * 1000)
    medians = {key: statistics.median(each) for key, each in times.items()}
    cells = [f"{medians[key]:.1f}" for key in ("car", "plain", "three")]
    cells.append(f"{medians['sum']:.1f}" if "sum" in medians else "")
    cells.append(f"{medians['car'] / medians['plain']:.2f}")
    cells.append(f"{medians['three'] / medians['car']:.2f}")
    print(f"| {name} | {' | '.join(cells)} |")


def _load_s(location: CatalogLocation) -> float:
    began = _cpu_s()
    store = CatalogStore(location, snapshot_memory_mb=8_000)
    store.snapshot()
    if not store.memory.wait(600):
        raise SystemExit("the snapshot does not fit into memory")
    spent = _cpu_s() - began
    store.close()
    return spent


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
