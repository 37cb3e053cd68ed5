"""Conditions as a command line writes them."""

import re

from catalog.errors import InvalidInput
from query.question.condition import ShareRange, TagIs, TimeRange
from query.question.operators import OPERATORS
from query.question.wrong_value import input_errors

_SHARE = re.compile(r"(?P<tag>.+)=(?P<low>[0-9.]*)(?P<colon>:?)(?P<high>[0-9.]*)", re.DOTALL)
_MOMENT = r"\d{4}(?:-\d\d(?:-\d\d(?:[T ]\d\d(?::\d\d(?::\d\d)?)?)?)?)?"
_TIMES = re.compile(rf"(?P<only>{_MOMENT})|(?P<start>{_MOMENT})?:(?P<end>{_MOMENT})?", re.ASCII)
_SIGNS = sorted((name for name in OPERATORS if not name[0].isalpha()), key=len, reverse=True)
_WORDS = [name for name in OPERATORS if name[0].isalpha()]
_TAG = re.compile(
    r"(?P<tag>[^\s=!<>]+)"
    rf"(?:\s*(?P<sign>{'|'.join(map(re.escape, _SIGNS))})|\s+(?P<word>{'|'.join(_WORDS)})(?=\s|$))"
    r"\s*(?P<value>.*)",
    re.DOTALL,
)


def parse_share(text: str) -> ShareRange:
    """The share written as ``car=0.01:0.2``, either end open, or ``car=0.2``.

    Raises:
        InvalidInput: It is not written so, or is no share.
    """
    match = _SHARE.fullmatch(text.strip())
    if match is None or not (match["low"] or match["high"]):
        raise InvalidInput(
            f"share '{text}': expected CLASS=LOWEST:HIGHEST of the frame's pixels, 0 to 1, such as "
            "car=0.01:0.2; either end may be left out"
        )
    with input_errors(text=text):
        low = float(match["low"]) if match["low"] else None
        high = float(match["high"]) if match["high"] else (None if match["colon"] else low)
        return ShareRange(kind="share", tag=match["tag"].strip(), lowest=low, highest=high)


def parse_time(text: str) -> TimeRange:
    """The time written as ``2018-08-07T14:50:2018-08``, either end open, or ``2018-08``.

    Raises:
        InvalidInput: It is not written so, or there is no such time.
    """
    match = _TIMES.fullmatch(text.strip())
    if match is None or not any(match.groups()):
        raise InvalidInput(
            f"time '{text}': expected FROM:TO, such as 2018-08-07T14:50:2018-08-08; either end may "
            "be left out, and of a time what comes after the year"
        )
    start, end = (match[name] or match["only"] for name in ("start", "end"))
    with input_errors(text=text):
        return TimeRange(kind="time", start=start, end=end)


def parse_tag(text: str) -> TagIs:
    """The condition written as ``speed>=30``, ``weather in rain,fog`` or ``weather is_null``.

    Raises:
        InvalidInput: It is not written so, or the operator takes another number of values.
    """
    match = _TAG.fullmatch(text.strip())
    if match is None:
        raise InvalidInput(
            f"tag '{text}': expected TAG, one of {', '.join(OPERATORS)}, and the value, such as "
            "speed>=30 or 'weather in rain,fog'"
        )
    name, value = match["sign"] or match["word"], match["value"]
    shape = OPERATORS[name].shape
    operand: str | tuple[str, ...] | None = value
    if shape in ("two", "many"):
        operand = tuple(element.strip() for element in value.split(",") if element.strip())
    elif not value:
        operand = None if shape == "none" else ""
    with input_errors(text=text):
        return TagIs(kind="tag", tag=match["tag"], op=name, value=operand)
