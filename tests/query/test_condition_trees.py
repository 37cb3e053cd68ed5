"""Generated questions: chosen frames, frames of the SQL shown, and plain Python agree."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from catalog.store import CatalogStore
from query.frames.select_frames import select_frames
from query.question.condition import (
    CameraIn,
    Group,
    Has,
    PixelRange,
    SceneIn,
    ShareRange,
    TagIs,
    TimeRange,
    Without,
)
from query.question.describe import describe
from query.question.label_range import LabelRange
from query.question.operators import OPERATORS, Operator, TagType, type_of
from query.question.question import Question
from query.run.run_sql import run_sql
from sample_data.regenerate import COMMITTED_SET
from tests.query.catalogs import in_memory
from tests.query.tagged_frames import PIXELS, TYPES, TaggedFrame, holds, tagged_frames, tagged_store

FRAMES = tagged_frames()
CLASSES = ("car", "bicycle", "pedestrian", "sky", "rain_dirt", "rd_normal_street", "Traffic sign")
TYPE_OF: dict[str, TagType] = {
    **{tag: type_of(kind) for tag, kind in TYPES.items()},
    "scene": "text",
    "camera": "text",
    "car": "number",
    "front": "number",
}
ORDERS = (*TYPE_OF, "pedestrian", "sky", "frame_number", "size", "image_size", "filename")
FEW = settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
MANY = settings(FEW, max_examples=300)


@pytest.fixture(scope="module")
def tagged(catalogued: Path, tmp_path_factory: pytest.TempPathFactory) -> CatalogStore:
    """The drawn frames with tags of every type."""
    return tagged_store(catalogued, tmp_path_factory.mktemp("tagged"))


@pytest.fixture(scope="module", params=["tables", "memory"])
def store(tagged: CatalogStore, request: pytest.FixtureRequest) -> CatalogStore:
    """Their catalog, asked as it lies, and with its snapshot in memory, where it is one table."""
    if request.param == "tables":
        return tagged
    return in_memory(tagged)


def held(tag: str) -> list[Any]:
    """Values of a tag, as JSON has them."""
    values = dict.fromkeys(frame.tags[tag] for frame in FRAMES if frame.tags[tag] is not None)
    return [value.isoformat() if isinstance(value, datetime) else value for value in values]


@st.composite
def tags(draw: st.DrawFn) -> TagIs:
    """Any operator on a tag that it takes, with values that frames have, or nearly."""
    tag = draw(st.sampled_from(sorted(TYPE_OF)))
    taken = [operator for operator in OPERATORS.values() if TYPE_OF[tag] in operator.types]
    operator: Operator = draw(st.sampled_from(taken))
    value = st.sampled_from(held(tag))
    if TYPE_OF[tag] == "number":
        value = value | st.integers(-3, 60_000)
    if TYPE_OF[tag] == "text":
        value = value | st.text("ra in%_!'\\Ä0\n", max_size=4)
    if operator.shape == "none":
        return TagIs(kind="tag", tag=tag, op=operator.name)
    if operator.shape == "one":
        return TagIs(kind="tag", tag=tag, op=operator.name, value=draw(value))
    count = st.lists(value, min_size=2, max_size=2 if operator.shape == "two" else 5)
    values: Sequence[Any] = draw(count)
    if operator.shape == "two":
        values = sorted(values)
    return TagIs(kind="tag", tag=tag, op=operator.name, value=tuple(values))


def made(model: type[BaseModel], **data: Any) -> Any:
    """A condition of that model."""
    return model.model_validate(data)


@st.composite
def leaves(draw: st.DrawFn) -> Any:
    """A condition of any kind."""
    kind = draw(st.sampled_from(("tag", "tag", "pixels", "share", "has", "without", "camera",
                                 "scene", "time")))  # fmt: skip
    if kind == "tag":
        return draw(tags())
    if kind in ("camera", "scene"):
        names = tuple(draw(st.lists(st.sampled_from(held(kind)), min_size=1, max_size=3)))
        return made(CameraIn if kind == "camera" else SceneIn, kind=kind, names=names)
    if kind == "time":
        stamps = sorted(frame.drawn.scene for frame in FRAMES)
        ends = sorted(draw(st.lists(st.sampled_from(stamps), min_size=2, max_size=2)))
        length = draw(st.sampled_from((4, 7, 10, 13, 16, 19)))
        start, end = (
            datetime.strptime(stamp, "%Y%m%d_%H%M%S").isoformat()[:length]  # noqa: DTZ007
            for stamp in ends
        )
        which = draw(st.sampled_from(("start", "end", "both")))
        return TimeRange(
            kind="time",
            start=None if which == "end" else start,
            end=None if which == "start" else end,
        )
    tag = draw(st.sampled_from(CLASSES))
    own = tag.lower().replace(" ", "_")
    bound = st.sampled_from([int(str(frame.tags[own])) for frame in FRAMES])
    if kind in ("has", "without"):
        pixels = draw(st.just(1) | bound.map(lambda condition: max(1, condition)))
        return made(Has if kind == "has" else Without, kind=kind, tag=tag, pixels=pixels)
    low, high = sorted((draw(bound), draw(bound)))
    which = draw(st.sampled_from(("low", "high", "both")))
    bounds = [None if which == "high" else low, None if which == "low" else high]
    if kind == "pixels":
        return PixelRange(kind="pixels", tag=tag, lowest=bounds[0], highest=bounds[1])
    shares = [None if end is None else round(end / PIXELS, 9) for end in bounds]
    return ShareRange(kind="share", tag=tag, lowest=shares[0], highest=shares[1])


def groups(members: st.SearchStrategy[Any]) -> st.SearchStrategy[Group]:
    """A group of up to three."""
    return st.builds(
        Group,
        kind=st.sampled_from(("all", "any", "none")),
        of=st.lists(members, min_size=1, max_size=3).map(tuple),
    )


CONDITIONS = st.recursive(leaves(), groups, max_leaves=8)


@st.composite
def questions(draw: st.DrawFn) -> Question:
    """A tree of conditions with ranges, cameras, an order and a limit beside it."""
    ranges = draw(st.lists(st.sampled_from(("car=1000:", "sky=:900000", "front=1")), max_size=1))
    orders = draw(st.lists(st.sampled_from(ORDERS), max_size=2, unique=True))
    return Question(
        ranges=tuple(LabelRange.parse(text) for text in ranges),
        cameras=tuple(draw(st.lists(st.sampled_from(held("camera")), max_size=2))),
        condition=draw(CONDITIONS),
        where=draw(st.sampled_from((None, None, "car > 10 or weather = 'rain' -- so"))),
        order=tuple(name + draw(st.sampled_from(("", " desc", " ASC"))) for name in orders),
        limit=draw(st.none() | st.integers(1, 12)),
    )


def wanted(question: Question) -> list[TaggedFrame]:
    """The frames that a question without order wants."""
    frames = [
        frame
        for frame in FRAMES
        if all(holds(condition, frame) for condition in question.conditions())
    ]
    if question.where is None:
        return frames
    return [
        frame for frame in frames
        if int(str(frame.tags["car"])) > 10 or str(frame.tags["weather"]).rstrip(" ") == "rain"
    ]  # fmt: skip


def value_of(name: str, frame: TaggedFrame) -> Any:
    """What a frame is ordered by."""
    if name == "frame_number":
        return int(Path(frame.drawn.key).stem.rpartition("_")[2])
    if name in ("size", "image_size"):
        return (COMMITTED_SET / frame.drawn.key).stat().st_size
    return frame.drawn.key if name == "filename" else frame.tags[name]


def in_order(question: Question, frames: list[TaggedFrame]) -> list[str]:
    """The frames' names as the order and limit have them; unknown values last."""
    ordered = sorted(frames, key=lambda frame: frame.fkey)
    for item in reversed(question.order):
        name, _, direction = item.partition(" ")
        falling = direction.lower() == "desc"
        known = [frame for frame in ordered if value_of(name, frame) is not None]
        unknown = [frame for frame in ordered if value_of(name, frame) is None]
        known.sort(key=partial(value_of, name), reverse=falling)
        ordered = known + unknown
    return [frame.fkey for frame in ordered][: question.limit]


def check(store: CatalogStore, question: Question) -> None:
    """One question, three ways."""
    expected = in_order(question, wanted(question))
    selection = select_frames(store, question)
    assert selection.frames["fkey"].to_pylist() == expected
    told = describe(store, question)
    assert told.sql.note == ""
    assert run_sql(store, told.sql.text).rows["fkey"].to_pylist() == expected, told.sql.text
    assert told.sentence.splitlines() == [told.sentence]
    again = Question.model_validate_json(selection.question.model_dump_json(exclude_defaults=True))
    assert again == selection.question


@pytest.mark.parametrize("which", ["start", "end", "both"])
def test_the_ends_of_a_time_belong_to_it(store: CatalogStore, which: str) -> None:
    """A scene that begins in the very second of an end is within."""
    for scene in held("scene"):
        second = datetime.strptime(scene, "%Y%m%d_%H%M%S").isoformat()  # noqa: DTZ007
        times = {end: second for end in ("start", "end") if which in (end, "both")}
        check(store, Question(condition=TimeRange(kind="time", **times)))


@pytest.mark.wide
@FEW
@given(question=questions())
def test_generated_questions(store: CatalogStore, question: Question) -> None:
    """A few of them at every run."""
    check(store, question)


@pytest.mark.slow
@MANY
@given(question=questions())
def test_many_generated_questions(store: CatalogStore, question: Question) -> None:
    """Some hundreds."""
    check(store, question)
