"""All facets of a dragged range at once, beside a query for each facet as peers ask them.

    .venv/bin/python -m benchmarks.facets [--frames 41277 1000000] [--drags 20]

Drawn frames as catalog_scale has them, the newest snapshot in memory. A drag is a range of cars
that moves while conditions on two other classes and two cameras stay. Both ways answer the same
counts, which is checked once; peers' way is timed at three drags. Then the answer that a slider's
move begins with: CPU of this process, and the size of its JSON, also compressed by gzip.
"""

import argparse
import json
import statistics
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from api.web.find.facets import steps_of
from api.web.find.url_question import UrlQuestion
from benchmarks.catalog_scale import CLASS_LIST, load_frames
from catalog.limited_store import LimitedStore
from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
from ingest.labels.class_list import ClassList
from query.question.label_range import LabelRange
from query.question.question import Question
from query.statistics.facet_report import Facet, FacetReport
from query.statistics.facets import facets, facets_by_step
from query.statistics.histogram_report import AxisRequest
from query.statistics.histograms import histogram
from query.statistics.population import Frames

_CAMERAS = ("front_center", "side_left")


def main() -> None:
    """Print the times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, nargs="*", default=[41_277, 1_000_000])
    parser.add_argument("--drags", type=int, default=20)
    parser.add_argument("--memory-mb", type=int, default=8_000)
    options = parser.parse_args()
    palette = ClassList.from_colours(json.loads(CLASS_LIST.read_bytes()))
    titles = dict(zip(palette.tags, palette.classes, strict=True))
    for frames in options.frames:
        with tempfile.TemporaryDirectory() as folder:
            location = CatalogLocation.in_folder(Path(folder, "catalog"))
            load_frames(CatalogStore(location, class_names=titles.copy), list(titles), frames)
            hot = CatalogStore(
                location, snapshot_memory_mb=options.memory_mb, class_names=titles.copy
            )
            hot.snapshot()
            if not hot.memory.wait(600):
                raise SystemExit("the snapshot does not fit into --memory-mb")
            print(f"{frames:,} frames")
            _measure(hot, options.drags)
            _measure_part(hot, options.drags)
            _measure_slider(hot, titles)


def _measure(store: CatalogStore, drags: int) -> None:
    began = time.perf_counter()
    first = facets(store)
    print(f"  first question of a snapshot: {time.perf_counter() - began:.2f} s, "
          f"{len(first.facets)} facets")  # fmt: skip
    _time("  all facets at once", lambda question: facets(store, Frames(question)), drags)
    _time("  a query for each facet", lambda question: _each(store, question), min(3, drags))
    question = next(_drags())
    ours = {facet.tag: facet for facet in facets(store, Frames(question)).facets}
    for facet in _each(store, question):
        if any(bin_.kind == "other" for bin_ in facet.bins):
            continue  # texts that are the most frequent of the other conditions' frames
        assert ours[facet.tag].counts == facet.counts, facet.tag


def _measure_part(store: CatalogStore, drags: int) -> None:
    part = LimitedStore(store, "metaocean.filename NOT LIKE '%rear%'")
    facets(part)
    name = "  all facets at once, of a user of five cameras"
    _time(name, lambda question: facets(part, Frames(question)), drags)


def _measure_slider(store: CatalogStore, titles: dict[str, str]) -> None:
    search = UrlQuestion.of(
        [("min.bicycle", "100"), ("max.truck", "50000"), *(("camera", one) for one in _CAMERAS)]
    )
    (car,) = (facet for facet in facets(store).facets if facet.tag == "car")
    values = [str(int(bin_.low)) for bin_ in car.bins if bin_.kind == "range" and bin_.low]
    steps = [UrlQuestion.of([("min.car", value)]).question(titles) for value in values]
    for title, frames in (("all", UrlQuestion()), ("the conditions", search)):
        taken, wall = [], []
        for _ in range(5):
            began, cpu = time.perf_counter(), time.process_time()
            table = facets_by_step(store, Frames(frames.question(titles)), "car", steps)
            told = steps_of(table, frames, "min.car", values, titles)
            text = json.dumps(told, separators=(",", ":"))
            taken.append(1000 * (time.process_time() - cpu))
            wall.append(1000 * (time.perf_counter() - began))
        sent = len(zlib.compress(text.encode(), 5))
        print(
            f"  a slider's {len(values)} positions under {title}: median "
            f"{statistics.median(taken):.0f} ms of CPU, {statistics.median(wall):.0f} ms; JSON "
            f"{len(text) / 1000:.0f} KB, {sent / 1000:.0f} KB compressed"
        )


def _time(title: str, ask: Callable[[Question], object], drags: int) -> None:
    ask(next(_drags()))
    taken = []
    for question in islice(_drags(), drags):
        began = time.perf_counter()
        ask(question)
        taken.append(1000 * (time.perf_counter() - began))
    print(f"{title}: median {statistics.median(taken):.0f} ms, longest {max(taken):.0f} ms")


def _drags() -> Iterator[Question]:
    lowest = 0
    while True:
        lowest += 137
        yield Question(
            ranges=(
                LabelRange(tag="car", lowest=lowest, highest=60_000),
                LabelRange(tag="bicycle", lowest=100),
                LabelRange(tag="truck", highest=50_000),
            ),
            cameras=_CAMERAS,
        )


def _each(store: CatalogStore, question: Question) -> list[Facet]:
    """Every facet by a query of its own under the other conditions, as peers ask them."""
    whole: FacetReport = facets(store)
    found = []
    for facet in whole.facets:
        ranges = tuple(one for one in question.ranges if one.tag != facet.tag)
        cameras = () if facet.tag == "camera" else question.cameras
        others = question.model_copy(update={"ranges": ranges, "cameras": cameras})
        zero = any(bin_.kind == "zero" for bin_ in facet.bins)
        request = AxisRequest(tag=facet.tag, edges=facet.edges or None, zero=zero, top=200)
        counted = histogram(store, [request], Frames(others))
        by_bin = dict(zip(counted.axes[0].bins, counted.counts, strict=True))
        counts = tuple(int(by_bin.get(bin_, 0)) for bin_ in facet.bins)  # type: ignore[call-overload]
        found.append(facet.model_copy(update={"counts": counts}))
    return found


if __name__ == "__main__":
    main()
