"""The table of operators, walked: every operator on every type of tag."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from catalog.errors import InvalidInput, UnknownName
from catalog.store import CatalogStore
from query.frames.select_frames import select_frames
from query.question.condition import TagIs
from query.question.describe import describe
from query.question.operators import (
    OPERATORS,
    SHAPES,
    TYPES,
    TagType,
    operators_of,
    type_of,
)
from query.question.question import Question
from query.run.run_sql import run_sql
from sample_data.regenerate import COMMITTED_SET
from tests.query import tagged_frames
from tests.query.catalogs import in_memory
from tests.query.tagged_frames import holds

FRAMES = tagged_frames.tagged_frames()
TAGS: dict[TagType, tuple[str, ...]] = {
    "number": ("visibility", "lanes", "odometer", "near-miss"),
    "text": ("weather", "scene"),
    "boolean": ("is_wet",),
    "time": ("seen",),
}
PATTERNS = ("%", "rain%", "_ain", "%a_n%", "100%", "a\\%", "")


@pytest.fixture(scope="module")
def stored(catalogued: Path, tmp_path_factory: pytest.TempPathFactory) -> CatalogStore:
    """The drawn frames with tags of every type."""
    return tagged_frames.tagged_store(catalogued, tmp_path_factory.mktemp("tagged"))


@pytest.fixture(scope="module")
def store(stored: CatalogStore) -> CatalogStore:
    """The same in memory; `test_condition_trees` asks Parquet, too."""
    return in_memory(stored)


def asked(tag: str, op: str, value: object = None) -> TagIs:
    """The condition."""
    return TagIs.model_validate({"kind": "tag", "tag": tag, "op": op, "value": value})


def given_as(value: object) -> object:
    """A value as JSON has it."""
    return value.isoformat() if isinstance(value, datetime) else value


def questions(op: str, tag: str) -> Iterator[TagIs]:
    """The operator with values that some frame has."""
    values = [given_as(value) for value in dict.fromkeys(frame.tags[tag] for frame in FRAMES)
            if value is not None]  # fmt: skip
    shape = OPERATORS[op].shape
    if shape == "none":
        yield asked(tag, op)
    elif shape == "one":
        few = values[: 4 if isinstance(values[0], str) else 2]
        for value in few if op != "like" else PATTERNS:
            yield asked(tag, op, value)
    elif shape == "two":
        ends = sorted(values)  # type: ignore[type-var]
        for low, high in ((1, len(ends) // 2), (0, 0)):
            pair = (ends[min(low, len(ends) - 1)], ends[high])
            if pair[0] <= pair[1]:  # type: ignore[operator]
                yield asked(tag, op, pair)
    else:
        for count in (1, 3):
            yield asked(tag, op, tuple(values[:count]))


TAKEN = [
    (op, tag)
    for op, operator in OPERATORS.items()
    for tag_type in operator.types
    for tag in TAGS[tag_type]
]
REFUSED = [
    (op, tag_type)
    for op, operator in OPERATORS.items()
    for tag_type in TYPES
    if tag_type not in operator.types
]


@pytest.mark.parametrize(("op", "tag"), TAKEN)
def test_every_operator_on_every_type_it_takes(store: CatalogStore, op: str, tag: str) -> None:
    """Frames chosen, and frames of the SQL shown, are those that plain Python chooses."""
    seen = 0
    for condition in questions(op, tag):
        seen += 1
        question = Question(condition=condition)
        expected = [frame.fkey for frame in FRAMES if holds(condition, frame)]
        fkeys = select_frames(store, question).frames["fkey"].to_pylist()
        assert fkeys == expected, condition
        told = describe(store, question)
        assert told.sql.note == ""
        assert run_sql(store, told.sql.text).rows["fkey"].to_pylist() == expected, told.sql.text
    assert seen


@pytest.mark.parametrize(("op", "tag_type"), REFUSED)
def test_every_operator_on_every_type_it_does_not_take(
    store: CatalogStore, op: str, tag_type: TagType
) -> None:
    """The error names the tag, its type, and the operators that there are for it."""
    values = {"one": "1", "two": ("1", "2"), "many": ("1",)}
    condition = asked(TAGS[tag_type][0], op, values[OPERATORS[op].shape])
    with pytest.raises(InvalidInput) as error:
        select_frames(store, Question(condition=condition))
    assert f"tag {condition.tag} is a {tag_type}: '{op}' takes a" in str(error.value)
    assert ", ".join(operators_of(tag_type)) in str(error.value)


@pytest.mark.parametrize("op", OPERATORS)
def test_another_number_of_values_is_refused(op: str) -> None:
    """What the operator takes is said, whatever the tag is."""
    wrong = {"none": 1, "one": (1, 2), "two": 1, "many": ()}[OPERATORS[op].shape]
    with pytest.raises(ValueError, match=f"takes {SHAPES[OPERATORS[op].shape]}, got"):
        asked("lanes", op, wrong)


@pytest.mark.parametrize("hours", [0, 5.5, -11])
def test_a_time_with_an_offset_is_that_moment_in_utc(store: CatalogStore, hours: float) -> None:
    """As an import keeps it: the same frames, and the same SQL is shown."""
    seen = sorted(frame.tags["seen"] for frame in FRAMES if frame.tags["seen"])[5]
    there = seen.replace(tzinfo=UTC).astimezone(timezone(timedelta(hours=hours)))
    for op in ("=", "!=", ">=", "<"):
        plain, zoned = (
            Question(condition=asked("seen", op, value.isoformat())) for value in (seen, there)
        )
        fkeys = select_frames(store, zoned).frames["fkey"].to_pylist()
        assert fkeys == select_frames(store, plain).frames["fkey"].to_pylist()
        assert fkeys
        assert describe(store, zoned).sql.text == describe(store, plain).sql.text


@pytest.mark.parametrize(
    ("tag", "value", "expected"),
    [
        ("lanes", "many", "a number"),
        ("lanes", True, "a number"),
        ("lanes", float("nan"), "a number"),
        ("lanes", 2**63, "a number"),
        ("weather", 12, "a text"),
        ("weather", "a\0b", "a text"),
        ("is_wet", "yes", "true or false"),
        ("is_wet", 1, "true or false"),
        ("seen", "yesterday", "a time"),
        ("seen", "9999-12-31T23:59-01:00", "a time"),
        ("seen", 5, "a time"),
    ],
)
def test_values_of_another_type_are_refused(
    store: CatalogStore, tag: str, value: object, expected: str
) -> None:
    """What was given and what is expected."""
    condition = asked(tag, "=", value)
    with pytest.raises(InvalidInput, match=f"tag {tag} is a .*expected {expected}"):
        select_frames(store, Question(condition=condition))


def test_text_is_read_as_the_tags_type(store: CatalogStore) -> None:
    """As a command line gives it."""
    for tag, text, value in (
        ("lanes", " 3", 3),
        ("visibility", "0.1", 0.1),
        ("is_wet", "TRUE", True),
        ("odometer", str(2**53 + 1), 2**53 + 1),
    ):
        answers = [
            select_frames(
                store, Question(condition=TagIs(kind="tag", tag=tag, op="=", value=v))
            ).frames["fkey"].to_pylist()
            for v in (text, value)
        ]  # fmt: skip
        assert answers[0] == answers[1] != []


def test_unknown_tags_and_reversed_values(store: CatalogStore) -> None:
    """The nearest tag is named; the ends of 'between' are to be swapped."""
    with pytest.raises(UnknownName, match="unknown tag 'lames': did you mean lanes"):
        select_frames(store, Question(condition=TagIs(kind="tag", tag="lames", op="=", value=1)))
    condition = asked("lanes", "between", (5, 1))
    with pytest.raises(InvalidInput, match="between 5 and 1 holds for nothing; swap them"):
        select_frames(store, Question(condition=condition))


def test_columns_of_the_file(store: CatalogStore) -> None:
    """The file's own columns can be asked as tags can, image_size and image_file too."""
    sizes = sorted((COMMITTED_SET / frame.drawn.key).stat().st_size for frame in FRAMES)
    for tag, op, value, count in (
        ("image_size", "<", sizes[5], 5),
        ("size", ">=", sizes[5], len(FRAMES) - 5),
        ("image_file", "contains", "front_center", None),
        ("filetype", "=", "png", len(FRAMES)),
        ("group", "is_null", None, None),
        ("mtime", ">", "2001-01-01", len(FRAMES)),
    ):
        question = Question(condition=asked(tag, op, value))
        fkeys = select_frames(store, question).frames["fkey"].to_pylist()
        assert count is None or len(fkeys) == count
        told = describe(store, question).sql
        assert told.note == ""
        assert run_sql(store, told.text).rows["fkey"].to_pylist() == fkeys


def test_only_the_families_that_are_asked_are_read(stored: CatalogStore) -> None:
    """A family costs a question nothing that does not name one of its tags."""
    with stored.reading() as cursor:
        relation = cursor.relation
    assert "tags_probe" in relation.sql
    assert "tags_probe" not in relation.sql_for('"car" > 1 OR lanes', '"scene"')
    assert "tags_probe" in relation.sql_for('"car" > 1', '"near-miss"')
    frames = [frame for frame in FRAMES if frame.tags["lanes"] == 1]
    for question in (
        Question(condition=asked("lanes", "=", 1)),
        Question(where="Lanes = 1"),
        Question(where="fkey in (select fkey from t_lanes where int(value) = 1)"),
        Question(where="fkey in (select fkey from frames where lanes = 1)"),
        Question(where="lanes = 1", order=("NEAR-MISS",), sample=100),
    ):
        fkeys = select_frames(stored, question).frames["fkey"].to_pylist()
        assert sorted(fkeys) == [frame.fkey for frame in frames] != []


def test_every_engine_type_of_a_tag_has_a_type() -> None:
    """Each type that a tag may have is in the table, once."""
    from catalog.tags.families import TYPES as OF_TAGS

    listed = [kind for kinds in TYPES.values() for kind in kinds]
    assert len(listed) == len(set(listed))
    assert set(OF_TAGS) <= set(listed)
    assert type_of("SMALLINT") == "number"
