"""What a dataset lacks: every count is what plain SQL counts, every question finds its frames."""

import json
import shlex
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest

from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
from query.frames.select_frames import select_frames
from query.question.label_range import LabelRange
from query.question.question import Question
from query.run.run_sql import run_sql
from query.statistics.gap_report import GapKind
from query.statistics.gaps import Content, find_gaps
from tests.query.spread import CLASSES, SpreadFrame, put, spread, spread_store, with_pixels

FRAMES = spread(120, seed=5)
KINDS: tuple[GapKind, ...] = ("class", "camera", "scene")


@pytest.fixture(scope="module")
def spread_out(tmp_path_factory: pytest.TempPathFactory) -> CatalogStore:
    """The catalog of FRAMES."""
    return spread_store(tmp_path_factory.mktemp("spread"), FRAMES)


def content(
    frames: list[SpreadFrame], others: list[SpreadFrame], split: str | None = "validation"
) -> Content:
    """A dataset of frames in one split and others in another."""
    counts: dict[GapKind, dict[str, int]] = {
        "class": {tag: len(with_pixels(frames, tag)) for tag in CLASSES},
        "camera": Counter(frame.tags["camera"] for frame in frames),
        "scene": Counter(frame.tags["scene"] for frame in frames),
    }
    fkeys = pa.chunked_array([[frame.fkey for frame in [*frames, *others]]], pa.string())
    return Content(dataset="city@1", split=split, frames=len(frames), fkeys=fkeys, counts=counts)


def counted(store: CatalogStore, statement: str) -> int:
    """The number a statement over Discover's views answers."""
    (row,) = run_sql(store, statement).rows.to_pylist()
    return int(next(iter(row.values())))


@cache
def asked(store: CatalogStore, question: str) -> frozenset[str]:
    """The fkeys that a question chooses; most gaps ask again what others asked."""
    selection = select_frames(store, Question.model_validate_json(question))
    return frozenset(selection.frames["fkey"].to_pylist())


@cache
def in_catalog(store: CatalogStore, kind: GapKind, value: str, without: tuple[str, ...]) -> int:
    """Frames that have what is missing, but for some, by plain SQL."""
    condition = {
        "class": f"int(t_{value}.value) > 0",
        "camera": f"t_camera.value = '{value}'",
        "scene": f"t_scene.value = '{value}'",
    }[kind]
    table = f"t_{value}" if kind == "class" else f"t_{kind}"
    left_out = ", ".join(f"'{fkey}'" for fkey in ["none", *without])
    return counted(
        store,
        f"select count(*) from {table} where {condition} and {table}.fkey not in ({left_out})",
    )


@pytest.mark.parametrize("at_least", [1, 3, 1000])
@pytest.mark.parametrize(("here", "there"), [(0, 0), (0, 30), (2, 0), (3, 60), (120, 0)])
def test_counts_are_true(spread_out: CatalogStore, here: int, there: int, at_least: int) -> None:
    """In the dataset, in the catalog and new: as SQL counts them; the questions find them."""
    frames, others = FRAMES[:here], FRAMES[here : here + there]
    dataset = content(frames, others)
    report = find_gaps(spread_out, dataset, at_least=at_least, kinds=KINDS)
    fkeys = tuple(frame.fkey for frame in [*frames, *others])
    values = {*CLASSES, "front", "rear", *(frame.tags["scene"] for frame in FRAMES)}
    lacking = {v for v in values if sum(k.get(v, 0) for k in dataset.counts.values()) < at_least}
    assert {gap.value for gap in report.gaps} == lacking
    assert len(report.gaps) == len(lacking)
    for gap in report.gaps:
        assert gap.frames == dataset.counts[gap.kind].get(gap.value, 0)
        assert gap.catalog_frames == in_catalog(spread_out, gap.kind, gap.value, ())
        assert gap.new_frames == in_catalog(spread_out, gap.kind, gap.value, fkeys)
        if gap.question is None:
            assert gap.catalog_frames == 0
            assert gap.sentence.endswith("the catalog has none either")
            continue
        chosen = asked(spread_out, json.dumps(gap.question))
        assert len(chosen) == gap.catalog_frames
        assert len(chosen - set(fkeys)) == gap.new_frames
    closable = [gap.new_frames > 0 for gap in report.gaps]
    assert closable == sorted(closable, reverse=True)


def test_sentences(spread_out: CatalogStore) -> None:
    """They say what is missing where, and what there is; their numbers are the report's."""
    bikes = with_pixels(FRAMES, "bicycle")
    rest = [frame for frame in FRAMES if frame not in bikes]
    total = len(bikes)
    gap = find_gaps(spread_out, content(rest[:9], []), kinds=["class"]).gaps[0]
    assert gap.sentence == (
        f"no Bicycle in split validation of city@1; {total} frames of the catalog have it"
    )
    gap = find_gaps(spread_out, content(rest[:9], bikes[:4]), kinds=["class"]).gaps[0]
    assert gap.sentence.endswith(
        f"{total} frames of the catalog have it, 4 of them in the dataset already"
    )
    gap = find_gaps(spread_out, content(rest[:9], bikes), kinds=["class"]).gaps[0]
    assert gap.sentence.endswith("frames of the catalog have it, all in the dataset already")
    dataset = content([*rest[:9], bikes[0]], [], split=None)
    gaps = find_gaps(spread_out, dataset, at_least=2, kinds=["class"]).gaps
    assert next(gap.sentence for gap in gaps if gap.value == "bicycle").startswith(
        "Bicycle in 1 of 10 frames of city@1, wanted 2; "
    )
    ego = next(gap for gap in gaps if gap.value == "ego")
    assert ego.sentence == "no Ego car in city@1; the catalog has none either"
    assert (ego.question, ego.command) == (None, None)


def test_commands(spread_out: CatalogStore) -> None:
    """The command line asks the same question, of the same snapshot."""
    report = find_gaps(spread_out, content([], []), kinds=KINDS)
    for gap in report.gaps:
        if gap.command is None:
            continue
        program, select, option, value, *at = shlex.split(gap.command)
        assert [program, select, *at] == ["framesift", "select", "--at", str(report.snapshot)]
        parsers = {
            "--range": lambda text: Question(ranges=(LabelRange.parse(text),)),
            "--camera": lambda text: Question(cameras=(text,)),
            "--scene": lambda text: Question(scenes=(text,)),
        }[option](value)
        question = Question.model_validate(gap.question)
        assert question == parsers.model_copy(update={"snapshot": report.snapshot})


def test_names_that_a_shell_would_take_apart(tmp_path: Path) -> None:
    """A camera with blanks and quotes stays one word of the command."""
    frames = spread(2, seed=3)
    frames[0].tags["camera"] = "it's; rm -rf $HOME"
    store = spread_store(tmp_path, frames)
    gaps = find_gaps(store, content([], []), kinds=["camera"]).gaps
    commands = [shlex.split(gap.command or "") for gap in gaps]
    assert "it's; rm -rf $HOME" in [words[3] for words in commands]


def test_what_only_the_dataset_has(spread_out: CatalogStore) -> None:
    """A camera and a scene that the catalog lost are gaps too, where more frames are wanted."""
    dataset = content(FRAMES[:3], [])
    counts = dict(dataset.counts)
    counts["camera"] = {**counts["camera"], "nose": 2}
    counts["scene"] = {**counts["scene"], "lost": 2}
    dataset = replace(dataset, counts=counts)
    report = find_gaps(spread_out, dataset, at_least=3, kinds=KINDS)
    lost = [gap for gap in report.gaps if gap.value in ("nose", "lost")]
    assert [(gap.kind, gap.frames, gap.catalog_frames, gap.question) for gap in lost] == [
        ("camera", 2, 0, None),
        ("scene", 2, 0, None),
    ]
    assert lost[0].sentence == (
        "camera nose in 2 of 3 frames of split validation of city@1, wanted 3; the catalog has none"
    )
    gap_report = find_gaps(spread_out, dataset, at_least=2, kinds=KINDS)
    assert not {"nose", "lost"} & {gap.value for gap in gap_report.gaps}


@pytest.mark.wide
def test_an_old_snapshot(tmp_path: Path) -> None:
    """Compared with the catalog as it was."""
    store = spread_store(tmp_path, FRAMES[:10])
    before = store.snapshot()
    put(store, FRAMES[10:40])
    for at, frames in ((before, FRAMES[:10]), (None, FRAMES[:40])):
        report = find_gaps(store, content([], []), kinds=["class"], at=at)
        assert report.snapshot == (at or store.snapshot())
        assert {gap.value: gap.catalog_frames for gap in report.gaps} == {
            tag: len(with_pixels(frames, tag)) for tag in CLASSES
        }


def test_an_empty_catalog(tmp_path: Path) -> None:
    """There is nothing to find; what a dataset held before the catalog lost it is no gap."""
    store = CatalogStore(CatalogLocation.in_folder(tmp_path), threads=1, class_names=CLASSES.copy)
    report = find_gaps(store, content(FRAMES, []), kinds=KINDS)
    assert [gap.value for gap in report.gaps] == ["ego"]
    assert report.gaps[0].sentence.endswith("; the catalog has none either")
    assert find_gaps(store, content([], []), kinds=KINDS[1:]).gaps == ()
