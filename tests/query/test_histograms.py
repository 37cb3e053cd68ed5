"""Histograms against numpy: every frame is in one bin, and in the right one."""

import math
from collections import Counter
from datetime import UTC
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog.errors import InvalidInput, UnknownName
from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
from query.question.question import Question
from query.statistics.histogram_report import Axis, AxisRequest, Bin, Histogram
from query.statistics.histograms import histogram
from query.statistics.population import Frames
from tests.query.spread import CLASSES, SpreadFrame, put, spread, spread_store

FRAMES = spread(150, seed=8)
NUMBERS = ("car", "bicycle", "ego", "unknown_pixels", "speed", "gear", "seen", "pixels", "front")
TEXTS = ("weather", "wet", "camera", "scene", "label_file")


@pytest.fixture(scope="module")
def spread_out(tmp_path_factory: pytest.TempPathFactory) -> CatalogStore:
    """The catalog of FRAMES."""
    return spread_store(tmp_path_factory.mktemp("spread"), FRAMES)


def value_of(frame: SpreadFrame, tag: str) -> Any:
    """A tag's value as bins take it."""
    if tag == "front":
        return 0
    if tag == "label_file":
        return frame.fkey.rpartition(":")[2] + "-label"
    value = frame.tags[tag]
    if tag == "seen" and value is not None:
        return value.replace(tzinfo=UTC).timestamp()
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else value


def fits(value: Any, bin_: Bin, axis: Axis) -> bool:
    """Whether a value belongs to a bin, read off the bin's own description."""
    if value is None or bin_.kind == "null":
        return value is None and bin_.kind == "null"
    if bin_.kind in ("value", "other"):
        known = [bin_.value for bin_ in axis.bins if bin_.kind == "value"]
        return value == bin_.value if bin_.kind == "value" else value not in known
    if not math.isfinite(value) or bin_.kind == "not_finite":
        return not math.isfinite(value) and bin_.kind == "not_finite"
    has_zero = any(bin_.kind == "zero" for bin_ in axis.bins)
    if (value == 0 and has_zero) or bin_.kind == "zero":
        return bool(value == 0 and bin_.kind == "zero")
    edges = axis.edges
    if bin_.kind in ("below", "above"):
        if not edges:  # a logarithmic axis without a number above 0
            return bin_.kind == "below"
        return bool(value < edges[0]) if bin_.kind == "below" else bool(value > edges[-1])
    assert bin_.low is not None
    assert bin_.high is not None
    return bool(bin_.low <= value < bin_.high or value == bin_.high == edges[-1])


def check(result: Histogram, frames: list[SpreadFrame]) -> None:
    """Each frame belongs to exactly one bin, or pair of bins, and the counts say so."""
    expected: Counter[tuple[int, ...]] = Counter()
    for frame in frames:
        index = []
        for axis in result.axes:
            value = value_of(frame, axis.tag)
            positions = [i for i, bin_ in enumerate(axis.bins) if fits(value, bin_, axis)]
            assert len(positions) == 1, (axis, value, positions)
            index += positions
        expected[tuple(index)] += 1
    counts = np.array(result.counts).reshape([len(axis.bins) for axis in result.axes])
    assert {key: int(counts[key]) for key in zip(*np.nonzero(counts), strict=True)} == expected
    assert int(counts.sum()) == result.frames == len(frames)


def number_axes(tag: str) -> st.SearchStrategy[AxisRequest]:
    """Axes of a number: equal widths, equal ratios, or edges."""
    edge = st.one_of(
        st.integers(-5, 20).map(float),
        st.floats(-1e6, 1e10, allow_nan=False),
        st.sampled_from([float(value_of(f, tag)) for f in FRAMES if _finite(value_of(f, tag))]),
    )
    edges = st.lists(edge, min_size=2, max_size=9, unique=True).map(sorted).map(tuple)
    return st.one_of(
        st.builds(
            AxisRequest, tag=st.just(tag), bins=st.integers(1, 40), log=st.booleans(),
            zero=st.booleans(),
        ),
        st.builds(AxisRequest, tag=st.just(tag), edges=edges, zero=st.booleans()),
    )  # fmt: skip


def _finite(value: Any) -> bool:
    return value is not None and math.isfinite(value)


AXES = st.one_of(
    st.sampled_from(NUMBERS).flatmap(number_axes),
    st.builds(AxisRequest, tag=st.sampled_from(TEXTS), top=st.integers(1, 30)),
)


@pytest.mark.wide
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(axes=st.lists(AXES, min_size=1, max_size=2))
def test_every_frame_is_in_one_bin(spread_out: CatalogStore, axes: list[AxisRequest]) -> None:
    """Of one tag and of two: nulls, zeros, NaN, what is outside, and each bin's own."""
    check(histogram(spread_out, axes), FRAMES)


@pytest.mark.parametrize(("tag", "bins"), [("car", 7), ("sky", 20), ("unknown_pixels", 3)])
def test_the_bins_are_numpys(spread_out: CatalogStore, tag: str, bins: int) -> None:
    """Equal widths: numpy.histogram's edges and counts, the last edge included."""
    result = histogram(spread_out, [AxisRequest(tag=tag, bins=bins)])
    values = [frame.tags[tag] for frame in FRAMES if frame.tags[tag] is not None]
    counts, edges = np.histogram(values, bins)
    assert result.axes[0].edges == tuple(edges.tolist())
    assert result.counts == (len(FRAMES) - len(values), *counts.tolist())
    assert [bin_.kind for bin_ in result.axes[0].bins] == ["null", *["range"] * bins]


def test_logarithmic_pixels(spread_out: CatalogStore) -> None:
    """Equal ratios of the values above 0; zero and null have bins of their own."""
    result = histogram(spread_out, [AxisRequest(tag="Bicycle", bins=4, log=True)])
    values = [frame.tags["bicycle"] for frame in FRAMES]
    above = [value for value in values if value]
    (axis,) = result.axes
    assert (axis.tag, axis.type, axis.scale) == ("bicycle", "INTEGER", "log")
    assert axis.edges == tuple(np.geomspace(min(above), max(above), 5).tolist())
    counts = np.histogram(above, axis.edges)[0].tolist()
    assert result.counts == (values.count(None), values.count(0), 0, *counts, 0)


def test_whole_numbers_have_a_bin_each(spread_out: CatalogStore) -> None:
    """Where there are few of them; edges are whole numbers, too."""
    result = histogram(spread_out, [AxisRequest(tag="gear", bins=10)])
    gears = Counter(frame.tags["gear"] for frame in FRAMES)
    assert result.axes[0].edges == tuple(range(11))
    assert result.counts == (gears[None], *(gears[gear] for gear in range(10)))
    assert histogram(spread_out, [AxisRequest(tag="gear", bins=9)]).axes[0].edges[1] == 1.0


def test_most_frequent_texts(spread_out: CatalogStore) -> None:
    """By frames, equals by name; the rest together; an empty text is a value, null is not."""
    result = histogram(spread_out, [AxisRequest(tag="weather", top=2)])
    weather = Counter(frame.tags["weather"] for frame in FRAMES)
    none = weather.pop(None)
    first = sorted(weather, key=lambda text: (-weather[text], text))[:2]
    rest = weather.total() - sum(weather[text] for text in first)
    assert [bin_.value for bin_ in result.axes[0].bins] == [None, *first, None]
    assert [bin_.kind for bin_ in result.axes[0].bins] == ["null", "value", "value", "other"]
    assert result.counts == (none, *(weather[text] for text in first), rest)
    all_ = histogram(spread_out, [AxisRequest(tag="weather")])
    assert "other" not in [bin_.kind for bin_ in all_.axes[0].bins]
    assert "" in [bin_.value for bin_ in all_.axes[0].bins]


def test_of_a_question_and_in_memory(spread_out: CatalogStore) -> None:
    """Only the question's frames; a snapshot held in memory says the same."""
    axes = [AxisRequest(tag="car", log=True), AxisRequest(tag="camera")]
    some = [frame for frame in FRAMES if frame.tags["weather"] == "dry"]
    frames = Frames(Question(where="weather = 'dry'"))
    result = histogram(spread_out, axes, frames)
    check(result, some)
    hot = CatalogStore(
        spread_out.location, threads=1, snapshot_memory_mb=200, class_names=CLASSES.copy
    )
    hot.snapshot()
    assert hot.memory is not None
    assert hot.memory.wait(300)
    assert histogram(hot, axes, frames) == result


def test_no_frames(tmp_path: Path) -> None:
    """An empty catalog: no edges, no values, and counts of 0."""
    store = CatalogStore(CatalogLocation.in_folder(tmp_path), threads=1, class_names=CLASSES.copy)
    for tag in ("front", "camera", "size", "mtime"):
        result = histogram(store, [AxisRequest(tag=tag)])
        assert (result.frames, result.axes[0].edges, set(result.counts)) == (0, (), {0})
    with pytest.raises(UnknownName):
        histogram(store, [AxisRequest(tag="car")])


def test_numbers_that_no_edges_fit_between(tmp_path: Path) -> None:
    """Values too far apart are refused; those too close have as many bins as there are numbers."""
    frames = spread(2, seed=1)
    for frame, speed in zip(frames, (-1.7e308, 1.7e308), strict=True):
        frame.tags |= {"speed": speed, "pixels": 7}
    store = spread_store(tmp_path, frames)
    with pytest.raises(InvalidInput, match="give edges"):
        histogram(store, [AxisRequest(tag="speed")])
    check(histogram(store, [AxisRequest(tag="speed", edges=(0, 1))]), frames)
    for frame, speed in zip(frames, (1.0, np.nextafter(1.0, 2.0)), strict=True):
        frame.tags["speed"] = float(speed)
    put(store, frames)
    result = histogram(store, [AxisRequest(tag="speed", bins=5)])
    assert len(result.axes[0].edges) == 2
    check(result, frames)


@pytest.mark.parametrize(
    ("axis", "kind", "message"),
    [
        ({"tag": "carr"}, UnknownName, "unknown tag 'carr': did you mean car"),
        ({"tag": "fkey_hash"}, UnknownName, "fkey_hash"),
        ({"tag": "camera", "log": True}, InvalidInput, "type varchar"),
        ({"tag": "wet", "zero": True}, InvalidInput, "type boolean"),
        ({"tag": "weather", "edges": (0, 1)}, InvalidInput, "type varchar"),
    ],
)
def test_wrong_axes(
    spread_out: CatalogStore, axis: dict[str, Any], kind: type[Exception], message: str
) -> None:
    """Named, with the nearest tag or what to leave out."""
    with pytest.raises(kind, match=message):
        histogram(spread_out, [AxisRequest(**axis)])


@pytest.mark.parametrize(
    "axis",
    [
        {"edges": (1,)}, {"edges": ()}, {"edges": (2, 1)}, {"edges": (1, 1)},
        {"edges": (0, math.inf)}, {"edges": (math.nan, 1)}, {"edges": (1, 2), "log": True},
        {"bins": 0}, {"bins": 1001}, {"top": 0}, {"edges": tuple(range(1002))},
    ],
)  # fmt: skip
def test_axes_that_cannot_be(axis: dict[str, Any]) -> None:
    """Refused before the catalog is asked."""
    with pytest.raises(ValueError, match=r"edges|bins|top"):
        AxisRequest(tag="car", **axis)
