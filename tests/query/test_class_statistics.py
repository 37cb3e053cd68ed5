"""Class statistics against plain Python and numpy, in every place a catalog can be read from."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from catalog.errors import NotFound, SqlError, UnknownName
from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
from query.frames.select_frames import select_frames
from query.question.label_range import LabelRange
from query.question.question import Question
from query.statistics.class_quantiles import FrameQuantiles, frame_quantiles
from query.statistics.class_report import ClassStatistics, Grouping
from query.statistics.class_statistics import class_report
from query.statistics.population import Frames
from tests.postgres_server import postgres
from tests.query.catalogs import DrawnFrame
from tests.query.spread import (
    CLASSES,
    SpreadFrame,
    grouped,
    put,
    spread,
    spread_store,
    with_pixels,
)

FRAMES = spread(120, seed=5)
QUANTILES = (0, 0.05, 0.25, 0.5, 0.75, 0.95, 1)


@pytest.fixture(scope="module")
def spread_out(tmp_path_factory: pytest.TempPathFactory) -> CatalogStore:
    """The catalog of FRAMES."""
    return spread_store(tmp_path_factory.mktemp("spread"), FRAMES)


def expected(frames: list[SpreadFrame], tag: str, *, quantiles: bool) -> ClassStatistics:
    """One class's statistics, from the frames themselves."""
    having = with_pixels(frames, tag)
    known = [frame for frame in frames if frame.tags.get(tag) is not None]
    pixels = [frame.tags[tag] for frame in having]
    shares = [frame.tags[tag] / frame.pixels for frame in having]
    around = sum(frame.pixels for frame in having)
    names = ("min", "p5", "p25", "p50", "p75", "p95", "max")
    of_pixels, of_shares = (
        dict(zip(names, np.quantile(values, QUANTILES, method="inverted_cdf"), strict=True))
        if quantiles and values
        else None
        for values in (pixels, shares)
    )
    return ClassStatistics.model_validate(
        {
            "tag": tag,
            "name": CLASSES[tag],
            "frames": len(having),
            "pixels": sum(pixels),
            "share": sum(pixels) / (sum(frame.pixels for frame in known) or 1),
            "share_where_present": sum(pixels) / (around or 1),
            "presence": len(having) / (len(known) or 1),
            "pixel_quantiles": of_pixels,
            "share_quantiles": of_shares,
        }
    )


def all_expected(frames: list[SpreadFrame], *, quantiles: bool) -> tuple[ClassStatistics, ...]:
    return tuple(expected(frames, tag, quantiles=quantiles) for tag in CLASSES)


@pytest.mark.parametrize("quantiles", [False, True])
@pytest.mark.parametrize("by", [None, "camera", "scene"])
def test_reports(spread_out: CatalogStore, by: Grouping | None, quantiles: bool) -> None:
    """Classes that a source lacks, pixels of no class, labels of many sizes, by group and whole."""
    report = class_report(spread_out, by=by, quantiles=quantiles)
    assert report.snapshot == spread_out.snapshot()
    assert (report.frames, report.pixels) == (len(FRAMES), sum(f.pixels for f in FRAMES))
    assert report.classes == all_expected(FRAMES, quantiles=quantiles)
    assert report.by == by
    if by is None:
        assert report.groups is None
        return
    groups = grouped(FRAMES, lambda frame: frame.tags[by])
    assert report.groups is not None
    assert [group.value for group in report.groups] == list(groups)
    for group in report.groups:
        frames = groups[group.value or ""]
        assert (group.frames, group.pixels) == (len(frames), sum(f.pixels for f in frames))
        assert group.classes == all_expected(frames, quantiles=quantiles)


def test_all_frames_are_counted_once(spread_out: CatalogStore) -> None:
    """The measures of a snapshot are kept; the classes' names are the records', asked each time."""
    first = class_report(spread_out)
    names = spread_out.class_names
    spread_out.class_names = lambda: dict(reversed([(t, f"{n} 2") for t, n in names().items()]))
    try:
        second = class_report(spread_out)
    finally:
        spread_out.class_names = names
    assert [one.model_copy(update={"name": f"{one.name} 2"}) for one in first.classes][::-1] == [
        *second.classes
    ]
    with spread_out.reading() as snapshot:
        assert snapshot.once(f"class measures {', '.join(names())}", lambda: None) is not None


def test_frames_of_one_size(store: CatalogStore, frames: list[DrawnFrame]) -> None:
    """Quantiles of shares where all labels have one size."""
    report = class_report(store, quantiles=True)
    for entry in report.classes:
        pixels = [f.tags[entry.tag] for f in frames if f.tags[entry.tag]]
        if not pixels:
            assert entry.pixel_quantiles is None
            assert entry.share_quantiles is None
            continue
        assert entry.pixel_quantiles is not None
        assert entry.share_quantiles is not None
        expected = np.quantile(pixels, QUANTILES, method="inverted_cdf")
        assert list(entry.pixel_quantiles.model_dump().values()) == expected.tolist()
        assert list(entry.share_quantiles.model_dump().values()) == [
            value / (1920 * 1208) for value in expected
        ]


def test_quantiles_of_groups() -> None:
    """Of a group without a name, one without the class, and values that occur several times."""
    rows = [("a", 7, 10), (None, 3, 4), ("b", 0, 9), ("a", 7, 7), ("b", None, 8), (None, 1, 2)]
    rows += [("a", value, 100) for value in range(100, 0, -1)]
    groups, pixels, sizes = zip(*rows, strict=True)
    table = pa.table({"scene": groups, "car": pixels, "size": sizes})
    of_all, of_groups = frame_quantiles(table, ["car"], "size", "scene")
    # Of 104 values that are there: the 1st, 6th, 26th, 52nd, 78th, 99th and last.
    assert of_all.pixels == [[1, 4, 22, 48, 74, 95, 100]]
    assert of_all.shares == [[0.01, 0.06, 0.26, 0.51, 0.75, 0.96, 1.0]]
    assert of_groups["b"] == FrameQuantiles([None], [None])
    assert of_groups[None] == FrameQuantiles([[1, 1, 1, 1, 3, 3, 3]], [[0.5] * 4 + [0.75] * 3])
    assert of_groups["a"].pixels == [[1, 6, 24, 49, 75, 95, 100]]
    assert list(of_groups) == ["a", None, "b"]


@pytest.mark.parametrize(
    "question",
    [
        Question(ranges=(LabelRange(tag="Car", lowest=1000),)),
        Question(where="weather = 'dry' or speed > 60"),
        Question(cameras=("rear",), scenes=("s0", "s3")),
        Question(ranges=(LabelRange(tag="car", highest=0),), where="sky > 0", cameras=("front",)),
        Question(where="car < 0"),
    ],
)
def test_of_a_question(spread_out: CatalogStore, question: Question) -> None:
    """The frames that a selection of the same question has; none of them are no error."""
    chosen = set(select_frames(spread_out, question).frames["fkey"].to_pylist())
    frames = [frame for frame in FRAMES if frame.fkey in chosen]
    report = class_report(spread_out, Frames(question), by="camera", quantiles=bool(frames))
    assert report.frames == len(frames)
    assert report.classes == all_expected(frames, quantiles=bool(frames))
    assert [g.value for g in report.groups or ()] == sorted({f.tags["camera"] for f in frames})


def test_of_listed_frames(spread_out: CatalogStore) -> None:
    """A dataset's frames, in any order, with and without a question."""
    listed = FRAMES[10:50]
    fkeys = pa.chunked_array([[frame.fkey for frame in reversed(listed)] + ["c1:first:gone"]])
    report = class_report(spread_out, Frames(fkeys=fkeys), quantiles=True)
    assert report.classes == all_expected(listed, quantiles=True)
    front = [frame for frame in listed if frame.tags["camera"] == "front"]
    both = class_report(spread_out, Frames(Question(cameras=("front",)), fkeys))
    assert both.classes == all_expected(front, quantiles=False)
    none = class_report(spread_out, Frames(fkeys=pa.chunked_array([], pa.string())))
    assert (none.frames, none.classes) == (0, all_expected([], quantiles=False))


@pytest.mark.wide
def test_an_old_snapshot(tmp_path: Path) -> None:
    """Its frames and classes, whatever came later; a number that never was is named."""
    store = spread_store(tmp_path, FRAMES[:20])
    before = store.snapshot()
    put(store, FRAMES[20:40])
    assert class_report(store).classes == all_expected(FRAMES[:40], quantiles=False)
    old = class_report(store, Frames(at=before), quantiles=True)
    assert (old.snapshot, old.classes) == (before, all_expected(FRAMES[:20], quantiles=True))
    with pytest.raises(NotFound, match="no snapshot named '99'"):
        class_report(store, Frames(at=99))


@pytest.mark.parametrize("names", [{}, CLASSES])
def test_an_empty_catalog(tmp_path: Path, names: dict[str, str]) -> None:
    """No frames, no classes: nothing divided by nothing."""
    store = CatalogStore(CatalogLocation.in_folder(tmp_path), threads=1, class_names=names.copy)
    for by in (None, "scene"):
        report = class_report(store, by=by, quantiles=True)
        assert (report.frames, report.pixels, report.classes) == (0, 0, ())
        assert not report.groups


def test_no_frame_in_a_catalog_with_classes(tmp_path: Path) -> None:
    """Classes without a frame have zeros."""
    report = class_report(spread_store(tmp_path, []), by="camera", quantiles=True)
    assert report.classes == all_expected([], quantiles=True)
    assert report.groups == ()


@pytest.mark.wide
def test_memory_and_postgresql_say_the_same(spread_out: CatalogStore, tmp_path: Path) -> None:
    """A snapshot held in memory, and a catalog whose metadata is in PostgreSQL."""
    expected = class_report(spread_out, by="camera", quantiles=True)
    hot = CatalogStore(
        spread_out.location, threads=1, snapshot_memory_mb=200, class_names=CLASSES.copy
    )
    hot.snapshot()
    assert hot.memory is not None
    assert hot.memory.wait(300)
    assert class_report(hot, by="camera", quantiles=True) == expected
    location = CatalogLocation(postgres().new(), tmp_path / "data")
    team = CatalogStore(location, threads=1, class_names=CLASSES.copy)
    put(team, FRAMES)
    report = class_report(team, by="camera", quantiles=True)
    assert report.model_copy(update={"snapshot": expected.snapshot}) == expected


def test_wrong_questions(spread_out: CatalogStore) -> None:
    """Refused as a selection refuses them."""
    with pytest.raises(UnknownName, match="unknown camera 'nose'"):
        class_report(spread_out, Frames(Question(cameras=("nose",))))
    with pytest.raises(SqlError):
        class_report(spread_out, Frames(Question(where="car >")))
