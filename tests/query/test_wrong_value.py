"""What pydantic finds wrong, in our words."""

import pytest
from pydantic import ValidationError

from query.question.question import Question
from query.question.wrong_value import validation_message

PYDANTIC = ("Input should", "Value error", "valid", "permitted", "greater than or", "less than or")


def _leaf(**value: object) -> dict[str, object]:
    return {"condition": value}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"limit": 0}, "limit: got 0, expected 1 or more"),
        (
            {"limit": 2**63},
            "limit: got 9223372036854775808, expected less than 9223372036854775808",
        ),
        ({"limit": "x"}, "limit: got 'x', expected a whole number"),
        ({"cameras": 5}, "cameras: got 5, expected a list"),
        ({"colour": "red"}, "colour: there is no such field"),
        ({"ranges": [{"tag": "", "lowest": 1}]}, "ranges.0.tag: is empty"),
        ({"ranges": [{"lowest": 1}]}, "ranges.0.tag: is missing"),
        (
            {"ranges": [{"tag": "car", "lowest": 5, "highest": 1}]},
            "range of car: lowest 5 is above highest 1; swap them",
        ),
        (
            _leaf(kind="share", tag="car", lowest=2),
            "condition.share.lowest: got 2, expected 1 or less",
        ),
        (_leaf(tag="car"), "condition: 'kind' is missing"),
        (
            _leaf(kind="tog", tag="car"),
            (
                "condition: unknown kind 'tog': there are pixels, share, has, without, camera, "
                "scene, time, tag, all, any, none"
            ),
        ),
        (
            _leaf(kind="tag", tag="car", op="=", value={"a": 1}),
            (
                "condition.tag.value: got an object, expected true or false or a whole number or "
                "a number or text or a list"
            ),
        ),
    ],
)
def test_given_and_expected(document: dict[str, object], message: str) -> None:
    """On one line, once, and none of pydantic's own words."""
    with pytest.raises(ValidationError) as raised:
        Question.model_validate(document)
    assert validation_message(raised.value) == message
    assert not any(words in message for words in PYDANTIC)


def test_the_text_is_named_where_the_message_does_not() -> None:
    """Once: our own messages name it already."""
    with pytest.raises(ValidationError) as raised:
        Question.model_validate({"limit": 0})
    assert validation_message(raised.value, "x=0").startswith("'x=0': limit: got 0")
    with pytest.raises(ValidationError) as raised:
        Question.model_validate(_leaf(kind="time", start="2018-13"))
    assert validation_message(raised.value, "2018-13").count("2018-13") == 1
