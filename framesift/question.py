"""A question, built from keywords."""

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, Protocol

from framesift.errors import InvalidQuestion

PixelRange = tuple[int | None, int | None] | int
"""Lowest and highest pixels, None for an open end; one number means exactly that many."""

ShareRange = tuple[float | None, float | None]
"""Lowest and highest share of a frame's pixels, 0 to 1, None for an open end."""

Names = str | Sequence[str]


class Model(Protocol):
    """A model of pydantic's, such as Framesift's own of a question."""

    def model_dump(self, *, mode: str, exclude_defaults: bool) -> dict[str, Any]:
        """Its data."""


Asked = Mapping[str, Any] | Model
"""A question as data, or as a model of it."""


def data_of(question: Asked) -> dict[str, Any]:
    """A question as JSON has it; of a model what differs from the defaults."""
    if isinstance(question, Mapping):
        return dict(question)
    return question.model_dump(mode="json", exclude_defaults=True)


def question_of(
    *,
    where: str | None = None,
    sql: str | None = None,
    camera: Names | None = None,
    scene: Names | None = None,
    has: Names = (),
    without: Names = (),
    share: Mapping[str, ShareRange] | None = None,
    time: tuple[str | None, str | None] | None = None,
    condition: Mapping[str, Any] | None = None,
    order: Names = (),
    limit: int | None = None,
    sample: int | None = None,
    seed: int = 0,
    model: str | None = None,
    **ranges: PixelRange,
) -> dict[str, Any]:
    """A question as the server takes it; `Client.select` says what the keywords mean.

    Raises:
        InvalidQuestion: A keyword's value is not of its form.
    """
    if sql is not None:
        check_statement(sql)
    return {
        "model": model,
        "sql": sql,
        "ranges": [_pixels(tag, value) for tag, value in ranges.items()],
        "where": where,
        "cameras": some_of("camera", camera),
        "scenes": some_of("scene", scene),
        "order": names_of(order),
        "limit": limit,
        "sample": sample,
        "seed": seed,
        "condition": _all(
            [
                *({"kind": "has", "tag": name} for name in names_of(has)),
                *({"kind": "without", "tag": name} for name in names_of(without)),
                *(
                    {"kind": "share", **_range(name, ends, f"share of {name}")}
                    for name, ends in (share or {}).items()
                ),
                *([] if time is None else [_time(time)]),
                *([] if condition is None else [condition]),
            ]
        ),
    }


def one_question(
    question: Mapping[str, Any] | None, conditions: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """The question that is given as data or by conditions; None where neither is.

    Args:
        question: As a selection has it.
        conditions: Keywords of `Client.select`, in its place.

    Raises:
        TypeError: Both are given, or a keyword that there is not.
    """
    if question is not None and conditions:
        raise TypeError("question: it takes the place of conditions; leave one of them out")
    return question_of(**conditions) if conditions else question


def check_statement(sql: object) -> None:
    """Refuse what is no statement.

    Raises:
        InvalidQuestion: It is empty, or no text.
    """
    if isinstance(sql, str) and sql.strip("; \t\r\n"):
        return
    tag = '; for a tag of that name: condition={"kind": "pixels", "tag": "sql", "lowest": 1}'
    raise InvalidQuestion(
        f"sql={sql!r}: expected a SELECT with a column fkey or filename, such as "
        "'select fkey from metaocean_view where car > 10000'"
        f"{'' if isinstance(sql, str) else tag}"
    )


def names_of(value: Names) -> list[str]:
    """One name or several, as a list."""
    return [value] if isinstance(value, str) else list(value)


def some_of(what: str, value: Names | None) -> list[str]:
    """One name or several that are chosen among others, as a list; empty for all of them.

    Raises:
        InvalidQuestion: The list is empty, which is none of them, and not all.
    """
    names = [] if value is None else names_of(value)
    if value is not None and not names:
        raise InvalidQuestion(
            f"{what}={value!r}: an empty list names none; name one, or leave it out for all"
        )
    return names


def _time(value: tuple[str | None, str | None]) -> Mapping[str, Any]:
    start, end = _ends("time", value, '(first, last), such as ("2018-08", "2018-10-15")')
    return {"kind": "time", "start": start, "end": end}


def _all(conditions: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    return {"kind": "all", "of": conditions}


def _pixels(tag: str, value: PixelRange) -> dict[str, Any]:
    is_exact = isinstance(value, int | Integral) and not isinstance(value, bool)  # NumPy's, too
    return _range(tag, (value, value) if is_exact else value, tag)


def _range(tag: str, value: object, what: str) -> dict[str, Any]:
    lowest, highest = _ends(what, value, "(lowest, highest)")
    return {"tag": tag, "lowest": lowest, "highest": highest}


def _ends(what: str, value: object, form: str) -> Sequence[Any]:
    ends = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(ends, tuple | list) and len(ends) == 2:
        return ends
    raise InvalidQuestion(f"{what}={value!r}: expected {form}, with None for an open end")
