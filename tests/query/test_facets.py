"""Facets against a histogram for each tag under the other conditions, in memory and of files."""

import threading
from pathlib import Path
from typing import Any

import pytest

from catalog.errors import InvalidInput, SqlError, UnknownName
from catalog.lake.snapshot import Facts
from catalog.lake.statement_watch import Cancellation, cancelled_by
from catalog.limited_store import LimitedStore
from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
from query.question.question import Question
from query.run.run_sql import execute
from query.statistics.facet_columns import FacetColumns
from query.statistics.facet_report import FacetReport
from query.statistics.facets import MOST_STEPS, facets, facets_by_step, prepare
from query.statistics.histogram_report import AxisRequest
from query.statistics.histograms import histogram
from query.statistics.population import Frames
from tests.api.servers import wait_until
from tests.query.spread import CLASSES, SpreadFrame, spread, spread_store

FRAMES = spread(150, seed=8)
LIMITS = {"memory_limit": "1GB"}
MINE = "metaocean.datasource = 'first'"
SPEED = {"kind": "tag", "tag": "speed", "op": ">=", "value": 40}
BRIGHT = {"kind": "any", "of": [{"kind": "has", "tag": "sky"}, {"kind": "has", "tag": "Animals"}]}
QUESTIONS: list[dict[str, Any]] = [
    {},
    {"ranges": [{"tag": "car", "lowest": 1000}]},
    {"ranges": [{"tag": "Car", "lowest": 1}, {"tag": "bicycle", "highest": 90_000}],
     "cameras": ["front"]},
    {"ranges": [{"tag": "car", "lowest": 1}, {"tag": "car", "highest": 300_000}],
     "condition": {"kind": "all", "of": [SPEED, BRIGHT]}},
    {"condition": {"kind": "none", "of": [{"kind": "has", "tag": "sky"},
                                          {"kind": "share", "tag": "sky", "lowest": 0.5}]}},
    {"condition": {"kind": "tag", "tag": "gear", "op": "is_null"}, "scenes": ["s0", "s1"]},
    {"condition": {"kind": "tag", "tag": "size", "op": "<", "value": 11},
     "ranges": [{"tag": "car", "highest": 0}]},
    {"condition": {"kind": "without", "tag": "car"}, "cameras": ["rear", "front"]},
]  # fmt: skip
"""Conditions on one facet, on several, on the same one twice, on none, and in groups."""


@pytest.fixture(scope="module")
def cold(tmp_path_factory: pytest.TempPathFactory) -> CatalogStore:
    """The catalog of FRAMES, read from files."""
    return spread_store(tmp_path_factory.mktemp("facets"), FRAMES)


@pytest.fixture(scope="module")
def hot(cold: CatalogStore) -> CatalogStore:
    """The same catalog, held in memory."""
    assert isinstance(cold.location.data, Path)
    location = CatalogLocation.in_folder(cold.location.data.parent)
    store = CatalogStore(location, snapshot_memory_mb=500, class_names=CLASSES.copy)
    store.snapshot()
    assert store.memory.wait(300)
    return store


def without(question: Question, tag: str) -> Question:
    """The question without its conditions on one facet: on the tag, or on nothing else."""

    def on(condition: Any) -> set[str]:
        if condition.kind in ("all", "any", "none"):
            return set().union(*(on(one) for one in condition.of))
        return {condition.kind if condition.kind in ("camera", "scene") else condition.tag.lower()}

    kept = [one for one in question.conditions() if on(one) != {tag}]
    return Question.model_validate(
        {"condition": {"kind": "all", "of": [one.model_dump() for one in kept]}} if kept else {}
    )


def expected(store: CatalogStore, report: FacetReport, question: Question, tag: str) -> list[int]:
    """One facet's counts by a histogram of its own."""
    facet = next(facet for facet in report.facets if facet.tag == tag)
    zero = any(bin_.kind == "zero" for bin_ in facet.bins)
    request = AxisRequest(tag=tag, edges=facet.edges or None, zero=zero, top=200)
    if len(facet.edges) == 2 and facet.edges[0] == facet.edges[1]:
        request = AxisRequest(tag=tag, zero=zero)
    counted = histogram(store, [request], Frames(without(question, tag)))
    by_bin = dict(zip(counted.axes[0].bins, counted.counts, strict=True))
    return [int(by_bin.get(bin_, 0)) for bin_ in facet.bins]  # type: ignore[call-overload]


@pytest.mark.parametrize("asked", QUESTIONS)
def test_each_facet_is_the_histogram_under_the_other_conditions(
    cold: CatalogStore, hot: CatalogStore, asked: dict[str, Any]
) -> None:
    """From memory and from files; no bin is left out."""
    question = Question.model_validate(asked)
    report, of_files = facets(hot, Frames(question)), facets(cold, Frames(question))
    assert report.in_memory
    assert not of_files.in_memory
    assert report.facets == of_files.facets
    assert [facet.tag for facet in report.facets][:7] == ["camera", "scene", *CLASSES]
    assert report.frames == len(FRAMES)
    assert report.matching == histogram(cold, [AxisRequest(tag="camera")], Frames(question)).frames
    for facet in report.facets:
        assert sum(facet.of_all) == len(FRAMES), facet.tag
        if not facet.asked:
            assert sum(facet.counts) == report.matching, facet.tag
    tags = ("camera", "scene", "car", "bicycle", "sky", "speed", "gear", "weather", "wet", "ego")
    for tag in tags:
        (facet,) = (facet for facet in report.facets if facet.tag == tag)
        assert list(facet.counts) == expected(hot, report, question, tag), tag


SLIDERS: list[tuple[str, str, list[Any]]] = [
    ("car", ">=", [0, 1, 50_000, 200_000, 399_999]),
    ("car", "<=", [300_000, 1000, 0]),
    ("speed", ">=", [-3.5, 40, 1e9]),
    ("seen", "<=", ["2020-01-10T00:00:00", "2020-01-02T03:04:05"]),
]
"""Tag, comparison, and its values from the open end on: nulls, not finite ones, and moments."""


@pytest.mark.parametrize(("tag", "op", "values"), SLIDERS)
def test_each_position_of_a_slider_is_counted_as_a_question_of_its_own(
    cold: CatalogStore, hot: CatalogStore, tag: str, op: str, values: list[Any]
) -> None:
    """Every facet's counts at every position, of a dataset, too; in memory as from files."""
    from pyarrow import chunked_array

    listed = chunked_array([[frame.fkey for frame in FRAMES[::3]]])
    steps = [step_of(tag, op, value) for value in values]
    seen = set[int]()
    for asked, fkeys in ((QUESTIONS[0], None), (QUESTIONS[2], None), (QUESTIONS[3], listed),
                         (QUESTIONS[6], None)):  # fmt: skip
        question = Question.model_validate(asked)
        told = facets_by_step(hot, Frames(question, fkeys), tag, steps)
        assert told.report == facets(hot, Frames(question, fkeys))
        for position in range(len(values) + 1):
            narrower = question
            if position:
                step = steps[position - 1].condition
                both = [one.model_dump() for one in (*question.conditions(), step) if one]
                narrower = Question.model_validate({"condition": {"kind": "all", "of": both}})
            report = facets(hot, Frames(narrower, fkeys))
            assert sum(told.matching[position:]) == report.matching
            for facet, rows in zip(report.facets, told.counts, strict=True):
                counts = tuple(map(sum, zip(*rows[position:], strict=True)))
                assert counts == facet.counts, (asked, position, facet.tag)
            seen.add(report.matching)
    assert len(seen) > 4
    of_files = facets_by_step(cold, Frames(question), tag, steps)
    assert (of_files.matching, of_files.counts) == (told.matching, told.counts)


def step_of(tag: str, op: str, value: Any) -> Question:
    """The condition of a slider's position."""
    condition = {"kind": "tag", "tag": tag, "op": op, "value": value}
    return Question.model_validate({"condition": condition})


def test_steps_that_are_none_of_a_slider_are_refused(hot: CatalogStore) -> None:
    """Too many, of a tag without a facet, and of frames that the question does not ask about."""
    step = step_of("car", ">=", 1)
    with pytest.raises(InvalidInput, match="25 steps of a slider, expected at most 24"):
        facets_by_step(hot, Frames(), "car", [step] * (MOST_STEPS + 1))
    with pytest.raises(UnknownName, match="carr"):
        facets_by_step(hot, Frames(), "carr", [step])
    labelled = [step_of("labelled", ">=", 1)]
    with pytest.raises(InvalidInput, match="labelled ask of other frames"):
        facets_by_step(hot, Frames(), "car", labelled)
    every = Frames(Question(where="labelled in (0, 1)"))
    assert sum(facets_by_step(hot, every, "car", labelled).matching) == len(FRAMES)


@pytest.mark.wide
def test_users_of_a_part_count_in_memory_and_see_no_more(hot: CatalogStore, tmp_path: Path) -> None:
    """As a catalog that holds no more: bins, counts, and the names that an error lists."""
    seen = [frame for frame in FRAMES if ":first:" in frame.fkey]
    reference = spread_store(tmp_path, seen)
    part = LimitedStore(hot, MINE)
    for asked in QUESTIONS:
        frames = Frames(Question.model_validate(asked))
        ours, theirs = facets(part, frames), facets(reference, frames)
        assert ours.in_memory
        assert (ours.frames, ours.matching) == (len(seen), theirs.matching)
        assert ours.facets == theirs.facets, asked
        steps = [step_of("car", ">=", pixels) for pixels in (1, 1000, 100_000)]
        told = [facets_by_step(store, frames, "car", steps) for store in (part, reference)]
        assert told[0].report.facets == told[1].report.facets
        assert (told[0].matching, told[0].counts) == (told[1].matching, told[1].counts)
    nothing = LimitedStore(hot, "false")
    assert (facets(nothing).frames, facets(nothing).matching) == (0, 0)
    with pytest.raises(UnknownName) as refused:
        facets(nothing, Frames(Question(scenes=("s0",))))
    assert "s1" not in str(refused.value)
    # A user's own SQL names the views, which have their rows alone.
    where = Question(where="car > 1 and fkey in (select fkey from metaocean_view)")
    own_sql = facets(part, Frames(where))
    assert own_sql.in_memory
    assert own_sql.matching == facets(reference, Frames(where)).matching


def test_some_facets_of_a_dataset(hot: CatalogStore) -> None:
    """The tags that are asked for, by class name, too; a dataset's frames count as all."""
    from pyarrow import chunked_array

    some: list[SpreadFrame] = FRAMES[::3]
    listed = chunked_array([[frame.fkey for frame in some]])
    question = Question.model_validate(QUESTIONS[2])
    report = facets(hot, Frames(question, listed), ["Bicycle", "camera"])
    assert [facet.tag for facet in report.facets] == ["camera", "bicycle"]
    assert report.frames == len(some)
    assert [sum(facet.of_all) for facet in report.facets] == [len(some)] * 2
    cars = [frame for frame in some if (frame.tags["car"] or 0) >= 1]
    few = [f for f in cars if f.tags["bicycle"] is not None and f.tags["bicycle"] <= 90_000]
    assert sum(report.facets[0].counts) == len(few)
    assert report.matching == len([f for f in few if f.tags["camera"] == "front"])
    with pytest.raises(UnknownName, match="nope"):
        facets(hot, tags=["nope"])


def test_a_client_that_leaves_ends_its_question_and_not_the_bins(
    cold: CatalogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who drags leaves often: bins that one began are there for the next."""
    assert isinstance(cold.location.data, Path)
    store = CatalogStore(
        CatalogLocation.in_folder(cold.location.data.parent),
        snapshot_memory_mb=500,
        class_names=CLASSES.copy,
    )
    store.snapshot()
    assert store.memory.wait(300)
    left, made = Cancellation(), threading.Event()
    of = FacetColumns.of

    def leave_meanwhile(*arguments: Any) -> Any:
        left.cancel()
        made.set()
        return of(*arguments)

    monkeypatch.setattr(FacetColumns, "of", leave_meanwhile)
    with cancelled_by(left), pytest.raises(SqlError, match="cancelled"):
        facets(store)
    assert made.is_set()
    monkeypatch.setattr(FacetColumns, "of", None)  # not found again
    assert facets(store).frames == len(FRAMES)


@pytest.mark.wide
def test_bins_are_found_as_soon_as_a_snapshot_is_in_memory(tmp_path: Path) -> None:
    """Of the first, before anybody asks; of the next, where somebody asked the one before."""
    store = spread_store(tmp_path, FRAMES[:20])
    hot = CatalogStore(store.location, snapshot_memory_mb=500, class_names=CLASSES.copy)
    known: list[bool] = []

    def prepared(before: Facts | None) -> None:
        prepare(hot, before)
        known.append("bins" in " ".join(names_of(hot)))

    hot.memory.prepare_by(prepared)
    hot.snapshot()
    wait_until(lambda: hot.memory.tried)
    assert known == [True]

    def commit() -> None:
        seen = len(known)
        with store.writing("a test") as cursor:
            cursor.execute("UPDATE files SET size = size + 1")
        assert hot.memory.wait(300)
        wait_until(lambda: len(known) > seen)

    commit()
    assert known == [True, False]
    facets(hot)
    commit()
    assert known == [True, False, True]
    hot.close()


def names_of(store: CatalogStore) -> list[str]:
    """What is known of the snapshot in memory."""
    held = store.memory.at(None)
    assert held is not None
    return [*held.facts._found]


@pytest.mark.wide
def test_closing_ends_what_is_prepared(tmp_path: Path) -> None:
    """A store that is closed while bins are being found ends that, and waits for its end."""
    store = spread_store(tmp_path, FRAMES[:20])
    hot = CatalogStore(store.location, snapshot_memory_mb=500, class_names=CLASSES.copy)
    begun, ended = threading.Event(), threading.Event()

    def prepared(_: Facts | None) -> None:
        begun.set()
        try:
            with hot.reading() as snapshot:
                execute(snapshot, "SELECT count(*) FROM range(100000000) a, range(100000000) b")
        finally:
            ended.set()

    hot.memory.prepare_by(prepared)
    hot.snapshot()
    assert begun.wait(300)
    hot.close()
    assert ended.is_set()
