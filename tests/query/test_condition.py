"""Conditions as data: what is refused, what is stored, how a command line writes them."""

from datetime import datetime
from typing import Any

import pytest
from pydantic import ValidationError

from catalog.errors import InvalidInput
from query.question.condition import (
    MAX_DEPTH,
    MAX_LEAVES,
    Group,
    Has,
    ShareRange,
    TagIs,
    TimeRange,
    earliest,
    latest,
)
from query.question.condition_text import parse_share, parse_tag, parse_time
from query.question.question import Question

HAS_CAR: dict[str, Any] = {"kind": "has", "tag": "car"}


def nested(depth: int) -> dict[str, Any]:
    """Groups inside each other."""
    condition: dict[str, Any] = HAS_CAR
    for _ in range(depth):
        condition = {"kind": "none", "of": [condition]}
    return condition


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ({"kind": "nearby"}, "does not match any of the expected tags"),
        ({"tag": "car"}, "Unable to extract tag using discriminator 'kind'"),
        ({"kind": "all", "of": []}, "at least 1 item"),
        ({"kind": "has", "tag": "car", "pixels": 0}, "greater than or equal to 1"),
        ({"kind": "has", "tag": "car", "pixel": 1}, "Extra inputs are not permitted"),
        ({"kind": "pixels", "tag": "car"}, "give a lowest or a highest number of pixels"),
        ({"kind": "pixels", "tag": "car", "lowest": 2, "highest": 1}, "swap them"),
        ({"kind": "share", "tag": "car"}, "give a lowest or a highest share, 0 to 1"),
        ({"kind": "share", "tag": "car", "lowest": 0.2, "highest": 0.1}, "swap them"),
        ({"kind": "share", "tag": "car", "lowest": 20}, "less than or equal to 1"),
        ({"kind": "share", "tag": "car", "lowest": 1 / 3}, "has more than 9 decimals"),
        ({"kind": "camera", "names": []}, "at least 1 item"),
        ({"kind": "time"}, "give a start or an end"),
        ({"kind": "time", "start": "2019", "end": "2018"}, "start 2019 is after end 2018; swap"),
        ({"kind": "time", "start": "yesterday"}, "expected YYYY-MM-DDThh:mm:ss"),
        ({"kind": "time", "start": "2018-13"}, "month must be in 1..12"),
        ({"kind": "time", "end": "2018-02-30"}, "day"),
        ({"kind": "tag", "tag": "car", "op": "~", "value": 1}, "unknown operator '~'; known: ="),
        (nested(MAX_DEPTH + 1), f"groups are {MAX_DEPTH + 1} deep or more"),
        (nested(900), "recursion|deep"),
        ({"kind": "any", "of": [HAS_CAR] * (MAX_LEAVES + 1)}, f"{MAX_LEAVES + 1} conditions"),
    ],
)
def test_what_is_no_condition_is_refused(condition: dict[str, Any], message: str) -> None:
    """With what was given and what is expected."""
    with pytest.raises(ValidationError, match=message):
        Question.model_validate({"condition": condition})


def test_the_deepest_and_widest_are_taken() -> None:
    """The limits are included."""
    assert Question.model_validate({"condition": nested(MAX_DEPTH)}).condition is not None
    wide = {"kind": "any", "of": [HAS_CAR] * MAX_LEAVES}
    assert len(Question.model_validate({"condition": wide}).conditions()) == 1


def test_stored_questions_load_and_mean_the_same() -> None:
    """Questions as datasets keep them, splits and all."""
    stored = {
        "ranges": [{"tag": "car", "lowest": 10000}],
        "where": "bicycle > 0",
        "cameras": ["front_center"],
        "scenes": ["20260616_094856"],
        "order": ["car desc"],
        "limit": 5,
        "sample": 9,
        "seed": 3,
        "split": {"train": "4/5", "validation": "1/5"},
        "split_by": "scene",
        "split_seed": 0,
    }
    question = Question.of_dataset(stored)
    assert (question.condition, question.snapshot) == (None, None)
    fields = {key: value for key, value in stored.items() if not key.startswith("split")}
    fields["ranges"] = [{"tag": "car", "lowest": 10000}]
    assert question.model_dump(mode="json", exclude_defaults=True) == fields


def test_stored_conditions_keep_their_kinds() -> None:
    """A question's JSON without its defaults is the question."""
    condition = Group(
        kind="any",
        of=(
            Has(kind="has", tag="car"),
            ShareRange(kind="share", tag="sky", highest=0.25),
            TagIs(kind="tag", tag="lanes", op="between", value=(1, 2.5)),
            TagIs(kind="tag", tag="is_wet", op="=", value=True),
            TagIs(kind="tag", tag="weather", op="in", value=("1", "rain")),
            TimeRange(kind="time", start="2018-08-07T14:50"),
        ),
    )
    question = Question(condition=condition, snapshot=7)
    text = question.model_dump_json(exclude_defaults=True)
    again = Question.model_validate_json(text)
    assert again == question
    assert [repr(leaf) for leaf in again.condition.of] == [repr(leaf) for leaf in condition.of]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("moment", "first", "last"),
    [
        ("2018", "2018-01-01T00:00:00", "2018-12-31T23:59:59"),
        ("2018-02", "2018-02-01T00:00:00", "2018-02-28T23:59:59"),
        ("2020-02", "2020-02-01T00:00:00", "2020-02-29T23:59:59"),
        ("2018-08-07", "2018-08-07T00:00:00", "2018-08-07T23:59:59"),
        ("2018-08-07T14", "2018-08-07T14:00:00", "2018-08-07T14:59:59"),
        ("2018-08-07 14:50", "2018-08-07T14:50:00", "2018-08-07T14:50:59"),
        ("2018-08-07T14:50:28", "2018-08-07T14:50:28", "2018-08-07T14:50:28"),
    ],
)
def test_moments(moment: str, first: str, last: str) -> None:
    """What is left out means all of it."""
    assert earliest(moment) == datetime.fromisoformat(first)
    assert latest(moment) == datetime.fromisoformat(last)


@pytest.mark.parametrize(
    ("text", "lowest", "highest"),
    [
        ("car=0.01:0.2", 0.01, 0.2),
        ("car = 0.2".replace(" ", ""), 0.2, 0.2),
        ("car=:0.2", None, 0.2),
        ("Traffic sign=.5:", 0.5, None),
    ],
)
def test_shares_of_a_command_line(text: str, lowest: float, highest: float) -> None:
    """Either end may be open."""
    share = parse_share(text)
    assert (share.lowest, share.highest) == (lowest, highest)
    assert share.tag == text.partition("=")[0]


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("2018-08", "2018-08", "2018-08"),
        ("2018:2019", "2018", "2019"),
        ("2018-08-07T14:50:2018-08-07T15", "2018-08-07T14:50", "2018-08-07T15"),
        ("2018-08-07T14:50:28", "2018-08-07T14:50:28", "2018-08-07T14:50:28"),
        ("2018-08-07T14:50:", "2018-08-07T14:50", None),
        (":2018-08-07 14:50", None, "2018-08-07 14:50"),
    ],
)
def test_times_of_a_command_line(text: str, start: str | None, end: str | None) -> None:
    """A colon parts the ends, and hours from minutes."""
    time = parse_time(text)
    assert (time.start, time.end) == (start, end)


@pytest.mark.parametrize(
    ("text", "tag", "op", "value"),
    [
        ("speed>=30", "speed", ">=", "30"),
        ("speed >= 30", "speed", ">=", "30"),
        ("speed<=-3.5", "speed", "<=", "-3.5"),
        ("speed!=30", "speed", "!=", "30"),
        ("near-miss=1", "near-miss", "=", "1"),
        ("weather = light rain", "weather", "=", "light rain"),
        ("weather=", "weather", "=", ""),
        ("weather in rain, fog", "weather", "in", ("rain", "fog")),
        ("speed between 30,50", "speed", "between", ("30", "50")),
        ("in_town=1", "in_town", "=", "1"),
        ("weather starts_with ra", "weather", "starts_with", "ra"),
        ("weather like r%n", "weather", "like", "r%n"),
        ("weather contains >=", "weather", "contains", ">="),
        ("weather is_null", "weather", "is_null", None),
        ("weather is_not_null", "weather", "is_not_null", None),
    ],
)
def test_tags_of_a_command_line(text: str, tag: str, op: str, value: object) -> None:
    """Signs with or without blanks, words with blanks."""
    parsed = parse_tag(text)
    assert (parsed.tag, parsed.op, parsed.value) == (tag, op, value)


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (parse_share, "car", "expected CLASS=LOWEST:HIGHEST of the frame's pixels"),
        (parse_share, "car=:", "expected CLASS=LOWEST:HIGHEST"),
        (parse_share, "car=20:30", "expected 1 or less"),
        (parse_share, "car=0..1:", "could not convert"),
        (parse_share, "car=0.2:0.1", "swap them"),
        (parse_time, "", "expected FROM:TO"),
        (parse_time, ":", "expected FROM:TO"),
        (parse_time, "August", "expected FROM:TO"),
        (parse_time, "2018-14", "month must be in 1..12"),
        (parse_tag, "speed", "expected TAG, one of ="),
        (parse_tag, "weather sounds_like rain", "expected TAG, one of ="),
        (parse_tag, "speed between 3", "takes two values, got 1"),
        (parse_tag, "weather in", "takes one value or more, got 0"),
        (parse_tag, "weather is_null rain", "takes no value, got 1"),
    ],
)
def test_what_a_command_line_cannot_write(parse: Any, text: str, message: str) -> None:
    """What was given, what is expected."""
    with pytest.raises(InvalidInput, match=message) as error:
        parse(text)
    assert "\n" not in str(error.value)
