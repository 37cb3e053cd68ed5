"""Ranges of label pixels as text."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from catalog.errors import InvalidInput
from query.question.label_range import LabelRange
from query.question.question import Question
from query.question.wrong_value import validation_message

TAGS = st.text(min_size=1, max_size=20).map(str.strip).filter(bool)
PIXELS = st.none() | st.integers(0, 10**17)


@given(tag=TAGS, low=PIXELS, high=PIXELS)
def test_text_round_trip(tag: str, low: int | None, high: int | None) -> None:
    """What to_text writes, parse reads; what has no end or is upside down is refused."""
    if (low is None and high is None) or (low is not None and high is not None and low > high):
        with pytest.raises(ValidationError):
            LabelRange(tag=tag, lowest=low, highest=high)
        return
    label_range = LabelRange(tag=tag, lowest=low, highest=high)
    assert LabelRange.parse(label_range.to_text()) == label_range


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("car=10000:20000", 10_000, 20_000),
        ("car=10000:", 10_000, None),
        ("car=:20000", None, 20_000),
        ("car=0", 0, 0),
        (" car =5:5 ", 5, 5),
    ],
)
def test_forms(text: str, low: int | None, high: int | None) -> None:
    """Closed, open at either end, and one number."""
    assert LabelRange.parse(text) == LabelRange(tag="car", lowest=low, highest=high)


@pytest.mark.parametrize(
    "text",
    ["", "car", "car=", "car=:", "=1:2", " =1:2", "car=a", "car=-1", "car=1:2:3", "car=1.5",
     "car=2:1", "car=1-2", "car=" + "9" * 5000, "car=\u0661"],
)  # fmt: skip
def test_bad_ranges_say_how_to_write_one(text: str) -> None:
    """Anything else is InvalidInput on one line."""
    with pytest.raises(InvalidInput) as error:
        LabelRange.parse(text)
    assert "\n" not in str(error.value)


@given(text=st.text(max_size=40) | st.text("car=:09 \n", max_size=12))
@example(text="a\nb")
@example(text="car\r=1\u2028")
def test_garbage_is_invalid_input(text: str) -> None:
    """Random text is a range, which its own text says again, or InvalidInput on one line."""
    try:
        label_range = LabelRange.parse(text)
    except InvalidInput as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017 (either outcome is right)
        return
    assert LabelRange.parse(label_range.to_text()) == label_range


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": 2**63}, "limit"),
        ({"sample": 0}, "sample"),
        ({"seed": -1}, "seed"),
        ({"ranges": [{"tag": "car"}]}, "car"),
        ({"ranges": [{"tag": "", "lowest": 1}]}, "tag"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_question_validation(values: dict[str, object], word: str) -> None:
    """A question with a wrong value is refused, and the message names the value."""
    with pytest.raises(ValidationError) as error:
        Question.model_validate(values)
    message = validation_message(error.value)
    assert word in message
    assert "\n" not in message
