"""A question to a selection of frames."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from catalog.errors import InvalidInput, SqlError, UnknownName
from catalog.store import CatalogStore
from query.frames import select_frames as module
from query.frames.sampling import random_keys
from query.frames.select_frames import select_frames, select_rows
from query.frames.selection import Selection
from query.question.label_range import LabelRange
from query.question.question import Question
from sample_data.regenerate import COMMITTED_SET
from tests.query.catalogs import DrawnFrame, class_names


@pytest.fixture(scope="module")
def store(stored: CatalogStore) -> CatalogStore:
    """Read from Parquet."""
    return stored


def asked(store: CatalogStore, **question: Any) -> Selection:
    """The answer to a question."""
    if "ranges" in question:
        question["ranges"] = tuple(LabelRange.parse(text) for text in question["ranges"])
    return select_frames(store, Question(**question))


def fkeys(selection: Selection) -> list[str]:
    """The frames' names, in order."""
    keys: list[str] = selection.frames["fkey"].to_pylist()
    return keys


def test_every_labelled_frame(store: CatalogStore, frames: list[DrawnFrame]) -> None:
    """No condition chooses the labelled camera images, and no other file, by fkey."""
    selection = asked(store)
    assert fkeys(selection) == sorted(frame.fkey for frame in frames)
    assert len(selection) == len(frames)
    assert selection.snapshot == store.snapshot()


def test_rows_hold_what_a_job_needs(store: CatalogStore, frames: list[DrawnFrame]) -> None:
    """Keys, sizes, scene, camera and every class's pixels agree with the files on disk."""
    selection = asked(store)
    by_fkey = {frame.fkey: frame for frame in frames}
    for row in selection.frames.to_pylist():
        frame = by_fkey[row["fkey"]]
        assert row["image_file"] == row["filename"] == frame.key
        assert row["label_file"] == frame.label
        assert (row["platform"], row["cluster"], row["datasource"]) == ("IBM COS", "local", "a2d2")
        assert row["path"] == "a2d2/"
        assert (row["camera"], row["scene"]) == (frame.camera, frame.scene)
        assert row["frame_number"] == int(Path(frame.key).stem.rpartition("_")[2])
        assert (row["image_width"], row["image_height"]) == (1920, 1208)
        assert row["image_size"] == (COMMITTED_SET / frame.key).stat().st_size
        assert row["label_size"] == (COMMITTED_SET / frame.label).stat().st_size
        assert {tag: row[tag] for tag in selection.classes} == {
            tag: frame.tags[tag] for tag in class_names()
        }
    assert selection.classes == tuple(class_names())
    assert select_rows(store, Question()).class_pixels() == {
        tag: sum(frame.tags[tag] for frame in frames) for tag in class_names()
    }


@pytest.mark.parametrize(
    ("question", "test"),
    [
        ({"ranges": ["car=10000:20000"]}, lambda f: 10_000 <= f.tags["car"] <= 20_000),
        ({"ranges": ["car=10000:"]}, lambda f: f.tags["car"] >= 10_000),
        ({"ranges": ["CAR=:20000"]}, lambda f: f.tags["car"] <= 20_000),
        ({"ranges": ["bicycle=0"]}, lambda f: f.tags["bicycle"] == 0),
        (
            {"ranges": ["RD normal street=500000:"]},
            lambda f: f.tags["rd_normal_street"] >= 500_000,
        ),
        ({"ranges": ["Obstacles / trash=1:"]}, lambda f: f.tags["obstacles_trash"] > 0),
        ({"ranges": ["front=1:"]}, lambda f: f.tags["front"] == 1),
        (
            {"ranges": ["car=1:", "bicycle=1:", "pedestrian=:9999999999999"]},
            lambda f: f.tags["car"] > 0 and f.tags["bicycle"] > 0,
        ),
        ({"cameras": ("front_center",)}, lambda f: f.camera == "front_center"),
        (
            {"cameras": ("side_left", "front_right")},
            lambda f: f.camera in ("side_left", "front_right"),
        ),
        ({"scenes": ("20260616_094856",)}, lambda f: f.scene == "20260616_094856"),
        (
            {"where": "car >= 10000 and scene like '20260%'"},
            lambda f: f.tags["car"] >= 10_000 and f.scene.startswith("20260"),
        ),
        ({"where": "Car * 2 > 100000 -- half"}, lambda f: f.tags["car"] * 2 > 100_000),
        (
            {"where": "front * 100 + front * 100 > 199"},
            lambda f: f.tags["front"] == 1,
        ),
        ({"where": "car > '50000' or bicycle > 0"}, lambda f: f.tags["car"] > 50_000
         or f.tags["bicycle"] > 0),
        (
            {"where": "fkey in (select fkey from t_car where value > 50000)"},
            lambda f: f.tags["car"] > 50_000,
        ),
        (
            {"where": "int(car) / 100000 = 1 and filename like '%center%'"},
            lambda f: f.tags["car"] // 100_000 == 1 and "center" in f.key,
        ),
        (
            {
                "where": "sky > 0 or car > 0",
                "ranges": ["car=1000:300000"],
                "cameras": ("front_center", "front_left"),
                "sample": 1000,
                "seed": 3,
            },
            lambda f: (f.tags["sky"] > 0 or f.tags["car"] > 0)
            and 1000 <= f.tags["car"] <= 300_000
            and f.camera in ("front_center", "front_left"),
        ),
    ],
    ids=lambda value: repr(value) if isinstance(value, dict) else "holds",
)  # fmt: skip
def test_conditions(
    store: CatalogStore,
    frames: list[DrawnFrame],
    question: dict[str, Any],
    test: Callable[[DrawnFrame], bool],
) -> None:
    """Ranges by tag or class title, cameras, scenes and WHERE bodies, alone and together."""
    expected = sorted(frame.fkey for frame in frames if test(frame))
    assert expected
    assert fkeys(asked(store, **question)) == expected


def test_order_and_limit(store: CatalogStore, frames: list[DrawnFrame]) -> None:
    """Rising and falling order, then fkey; the limit takes the first of it."""
    falling = sorted(frames, key=lambda f: (-f.tags["car"], f.fkey))
    assert fkeys(asked(store, order=("car desc",))) == [f.fkey for f in falling]
    two = sorted(frames, key=lambda f: (f.scene, -f.tags["sky"], f.fkey))
    assert fkeys(asked(store, order=("Scene", "sky DESC"))) == [f.fkey for f in two]
    limited = asked(store, order=("car desc",), limit=5)
    assert fkeys(limited) == [f.fkey for f in falling[:5]]


def test_sample(store: CatalogStore, frames: list[DrawnFrame]) -> None:
    """A seed means one sample; another seed another; a larger sample holds the smaller one."""
    first = fkeys(asked(store, sample=7, seed=1))
    assert first == fkeys(asked(store, sample=7, seed=1))
    assert first == sorted(first)
    assert len(set(first)) == 7
    assert first != fkeys(asked(store, sample=7, seed=2))
    assert set(first) < set(fkeys(asked(store, sample=8, seed=1)))
    assert len(asked(store, sample=10_000, seed=1)) == len(frames)
    ordered = asked(store, sample=7, seed=1, order=("car",), limit=3)
    cars = {frame.fkey: frame.tags["car"] for frame in frames}
    assert fkeys(ordered) == sorted(first, key=lambda fkey: (cars[fkey], fkey))[:3]
    halves = [int.from_bytes(hashlib.md5(fkey.encode()).digest()[8:], "little") for fkey in cars]
    drawn = np.argsort(random_keys(np.array(halves, np.uint64), 1))
    assert first == sorted(list(cars)[position] for position in drawn[:7])


def test_samples_of_conditions(store: CatalogStore, frames: list[DrawnFrame]) -> None:
    """A sample is drawn from what the conditions leave, whatever their bound values."""
    cars = {frame.fkey for frame in frames if frame.tags["car"] >= 50_000}
    keys = fkeys(asked(store, ranges=["car=50000:"], cameras=("front_center",), sample=3, seed=9))
    assert len(keys) == 3
    assert set(keys) <= cars


@pytest.mark.parametrize("order", [(), ("car desc",), ("camera", "size desc")])
@pytest.mark.parametrize("ranges", [["car=1000:"], ["car=2000000:"]])
def test_first_frames_are_those_of_all(
    store: CatalogStore, ranges: list[str], order: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by their names first, or in one statement: the first of the whole answer."""
    whole = asked(store, ranges=ranges, order=order).frames
    assert asked(store, ranges=ranges, order=order, limit=5).frames.equals(whole.slice(0, 5))
    assert asked(store, ranges=ranges, order=order, limit=10_000).frames.equals(whole)
    monkeypatch.setattr(module, "_FEW", 0)
    assert asked(store, ranges=ranges, order=order, limit=5).frames.equals(whole.slice(0, 5))


def test_only_some_columns(store: CatalogStore) -> None:
    """Columns of a selection and others, in the order asked for; the rows are the same."""
    question = Question(ranges=(LabelRange.parse("car=1000:"),), order=("bicycle",))
    columns = ["sky", "FKEY", "size", "label_size", "sky"]
    few = select_rows(store, question, columns=columns, only=True).rows.table()
    whole = select_frames(store, question, columns=columns).frames
    assert few.column_names == ["sky", "fkey", "size", "label_size"]
    assert few.equals(whole.select(few.column_names))
    assert len(few) > 3
    with pytest.raises(UnknownName, match="unknown column 'skies'"):
        select_rows(store, question, columns=["skies"], only=True)


def test_empty_result_keeps_columns(store: CatalogStore) -> None:
    """No frame is an answer too, with the same columns and types."""
    empty, full = asked(store, ranges=["car=2000000:"]), asked(store)
    assert len(empty) == 0
    assert empty.frames.schema == full.frames.schema
    none = select_rows(store, empty.question)
    assert none.class_pixels() == dict.fromkeys(class_names(), 0)


@pytest.mark.parametrize(
    ("question", "kind", "nearest"),
    [
        ({"ranges": ["carr=1:"]}, "class", "car"),
        ({"ranges": ["bycicle=1:"]}, "class", "bicycle"),
        ({"cameras": ("front_centre",)}, "camera", "front_center"),
        ({"scenes": ("20260616_094857",)}, "scene", "20260616_094856"),
        ({"order": ("carr",)}, "column", "car"),
        ({"order": ("",)}, "column", None),
        ({"order": ('car"; drop table files',)}, "column", "car"),
    ],
)
def test_unknown_names(
    store: CatalogStore, question: dict[str, Any], kind: str, nearest: str | None
) -> None:
    """A class, camera, scene or column that is not there is named, with the nearest that is."""
    with pytest.raises(UnknownName) as error:
        asked(store, **question)
    assert error.value.kind == kind
    assert nearest is None or nearest in error.value.nearest


@pytest.mark.parametrize(
    "question",
    [
        {"ranges": ["scene=1:"]},
        {"order": ("car sideways",)},
        {"order": ("car desc, fkey",)},
    ],
)
def test_values_that_cannot_be_used(store: CatalogStore, question: dict[str, Any]) -> None:
    """A range of text and an unknown direction are refused with what was expected."""
    with pytest.raises(InvalidInput):
        asked(store, **question)


@pytest.mark.parametrize(
    ("where", "sqlcode"),
    [
        ("carr > 1", -206),
        ("car >", -104),
        ("car > 'many'", -420),
        ("car / 0 > 1", -801),
        ("nothing(car) > 1", -440),
        ("fkey in (select fkey from t_carr)", -204),
    ],
)
def test_wrong_where_bodies(store: CatalogStore, where: str, sqlcode: int) -> None:
    """A wrong WHERE body is answered as a wrong statement is."""
    with pytest.raises(SqlError) as error:
        asked(store, where=where)
    assert error.value.sqlcode == sqlcode


def test_real_frames(real_store: CatalogStore) -> None:
    """Real A2D2 frames, which have no camera JSON, are found with all their pixels."""
    selection = asked(real_store)
    assert len(selection) == 4
    for row in selection.frames.to_pylist():
        pixels = sum(row[tag] for tag in selection.classes)
        assert pixels == row["image_width"] * row["image_height"] == 1920 * 1208
