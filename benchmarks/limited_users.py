"""CPU of users limited to collections beside that of one who sees all, and memory of fifty of them.

    .venv/bin/python -m benchmarks.limited_users [--frames 1000000] [--catalog FOLDER] [--users 50]

Drawn frames as catalog_scale has them, or those of a catalog's folder, which is not written; the
newest snapshot in memory. Each question is asked in turns, CPU is the least of --times (user and
system, all threads), and a ratio is to the CPU of who sees all. The users: half of the cameras (as
every other row or so, the worst case for marks), a part of the scenes, and a rule that holds for
every file. Fifty more each see one scene and ask every question three times.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from benchmarks.catalog_scale import CLASS_LIST, load_frames
from catalog.lake.catalog import Catalog
from catalog.limited_store import LimitedStore
from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
from ingest.labels.class_list import ClassList
from query.frames.select_frames import select_frames
from query.question.label_range import LabelRange
from query.question.question import Question
from query.run.run_sql import run_sql

_TIMES_PLANNED = 3
"""A statement that comes so often is answered by its plan, which is kept."""

_STATEMENTS = (
    "select count(*) from metaocean",
    "select count(*) from t_car where int(value) between 10000 and 20000",
    """select m.filename from metaocean m, t_car c, t_front f where c.fkey = m.fkey
    and f.fkey = m.fkey and int(f.value) = 1 and int(c.value) between 10000 and 20000""",
    "select sum(int(t_car.value)) / ((count(t_car.value)*1920*1208)/100) from t_car",
    "select scene, count(*), sum(int(car)) from metaocean_view where car > 100 group by scene",
    "select filename from metaocean where size > 100 order by size desc fetch first 10 rows only",
    "select * from metaocean_view where int(car) > 200000 fetch first 100 rows only",
    """select count(*) from metaocean m, t_car c where c.fkey = m.fkey
    and 1000 / (int(c.value) + 1) > 2""",
)


def main() -> None:
    """Print the table and the memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--catalog", type=Path)
    parser.add_argument("--users", type=int, default=50)
    parser.add_argument("--times", type=int, default=7)
    parser.add_argument("--memory-mb", type=int, default=8_000)
    options = parser.parse_args()
    palette = ClassList.from_colours(json.loads(CLASS_LIST.read_bytes()))
    titles = dict(zip(palette.tags, palette.classes, strict=True))
    with ExitStack() as stack:
        folder = options.catalog
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()), "catalog")
            location = CatalogLocation.in_folder(folder)
            load_frames(
                CatalogStore(location, class_names=titles.copy), list(titles), options.frames
            )
        store = CatalogStore(
            CatalogLocation.in_folder(folder),
            snapshot_memory_mb=options.memory_mb,
            class_names=titles.copy,
        )
        if not store.memory.wait(600):
            raise SystemExit("the snapshot does not fit into --memory-mb")
        _measure(store, options.times)
        _measure_memory(store, options.users)


def _measure(store: CatalogStore, times: int) -> None:
    catalogs: dict[str, Catalog] = {
        "all rows": store,
        "half of the cameras": LimitedStore(
            store, "regexp_matches(metaocean.filename, 'cam_?(front|side)_?[lc]')"
        ),
        "a part of the scenes": LimitedStore(store, "metaocean.filename LIKE '%/20180807_14%'"),
        "a rule for all": LimitedStore(store, "metaocean.fkey IS NOT NULL"),
    }
    for name, catalog in catalogs.items():
        began = time.process_time()
        run_sql(catalog, _STATEMENTS[0])
        print(f"first question, {name}: {time.process_time() - began:.2f} s of CPU")
    print(" | ".join(["question", *catalogs]))
    for text, ask in _questions(store).items():
        least = dict.fromkeys(catalogs, float("inf"))
        for _ in range(times):
            for name, catalog in catalogs.items():
                began = time.process_time()
                ask(catalog)
                least[name] = min(least[name], time.process_time() - began)
        of_all = least["all rows"]
        cells = [f"{1000 * each:.1f} ms ({each / of_all:.2f})" for each in least.values()]
        print(" | ".join([" ".join(text.split())[:60], *cells]))


def _questions(store: CatalogStore) -> dict[str, Callable[[Catalog], object]]:
    names = "select fkey, filename from metaocean_view where camera = 'front_center'"
    one, other = run_sql(store, f"{names} fetch first 2 rows only").rows.to_pylist()

    def statement(text: str) -> Callable[[Catalog], object]:
        return lambda catalog: run_sql(catalog, text)

    def selection(question: Question) -> Callable[[Catalog], object]:
        return lambda catalog: select_frames(catalog, question)

    by_fkey, by_name = f"fkey = '{one['fkey']}'", f"filename = '{one['filename']}'"
    of_two = f"{by_fkey} or fkey = '{other['fkey']}'"
    cars = LabelRange(tag="car", lowest=10_000, highest=20_000)
    return {
        **{text: statement(text) for text in _STATEMENTS},
        "a file of an fkey": statement(f"select size from metaocean where {by_fkey}"),
        "files of two fkeys": statement(f"select size from metaocean where {of_two}"),
        "a file of a name": statement(f"select size from metaocean where {by_name}"),
        "selection of 100 frames of a range": selection(Question(ranges=(cars,), limit=100)),
        "selection of an fkey": selection(Question(where=by_fkey)),
        "selection of two fkeys": selection(Question(where=of_two)),
        "selection of a name": selection(Question(where=by_name)),
    }


def _measure_memory(store: CatalogStore, users: int) -> None:
    scenes = run_sql(store, "select distinct scene from metaocean_view where car > 0").rows
    questions = _questions(store)
    before = _resident_mb()
    names = scenes["scene"].to_pylist()[:users]
    for number, scene in enumerate(names, 1):
        limited = LimitedStore(store, f"metaocean.filename LIKE '%/{scene}/%'")
        began = time.process_time()
        run_sql(limited, _STATEMENTS[0])
        first_s = time.process_time() - began
        for ask in questions.values():
            for _ in range(_TIMES_PLANNED):
                ask(limited)
        if number in (1, len(names)):
            print(
                f"{number} users: {_resident_mb() - before} MB more than none of them; the first "
                f"question of the last one took {first_s:.2f} s of CPU"
            )


def _resident_mb() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) // 1024


if __name__ == "__main__":
    main()
