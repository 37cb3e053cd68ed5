"""The question of the page's URL: a field is a parameter, so that a link holds a question.

    /?min.car=10000&max.car=20000&camera=front_center&has.bicycle=1&is.weather=rain&where=...

``not.quality=bad`` leaves frames of that value out, and not those of none. ``holding.scene=2018``
asks for nothing: the page lists the scenes whose name has that text.
``question`` holds any other conditions as JSON, for links from other pages. Beside the question
stands how its frames are shown: api.web.find.view.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from api.web.find.view import PARAMETERS, View
from catalog.errors import InvalidInput
from query.question.operators import NOT_KNOWN_TO_BE
from query.question.question import Question
from query.question.wrong_value import input_errors

_MOST = 2_000
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d")
_ENDS = ("min", "max")
_PRESENCE = ("has", "without")
_VALUES = ("is", "not")
_HOLDING = "holding"
"""Of ``holding.scene=TEXT``: the page lists the values that have it; no condition."""

_LONGEST_TEXT = 200
_PLAIN = ("camera", "scene", "where", "question", "dataset", "split", "at", *PARAMETERS)


@dataclass(frozen=True)
class UrlQuestion:
    """Parameters of a URL, those that ask for nothing left out."""

    pairs: tuple[tuple[str, str], ...] = ()
    """Name and value of each, in order."""

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> "UrlQuestion":
        """The parameters that ask for something.

        Raises:
            InvalidInput: One is unknown, or there are too many.
        """
        parameters = tuple((name, value.strip()) for name, value in pairs if value.strip())
        if len(parameters) > _MOST:
            raise InvalidInput(
                f"the URL has {len(parameters):,} parameters, expected at most {_MOST:,}"
            )
        for name, _ in parameters:
            kind, dot, tag = name.partition(".")
            kinds = (*_ENDS, *_PRESENCE, *_VALUES, _HOLDING)
            if name not in _PLAIN and not (dot and tag and kind in kinds):
                raise InvalidInput(
                    f"{name[:80]}: no parameter of this page; expected {', '.join(_PLAIN)}, or "
                    "min.TAG, max.TAG, has.TAG, without.TAG, is.TAG, not.TAG, holding.TAG"
                )
        return cls(parameters)

    @classmethod
    def of_question(cls, question: Question, classes: Collection[str]) -> "UrlQuestion":
        """The parameters that ask a question; a field's where there is one, else as JSON.

        Args:
            classes: Tags that are numbers of pixels.
        """
        rest = question.model_dump(mode="json", exclude_defaults=True)
        written = json.dumps(rest)
        pairs = [
            (f"{end}.{one['tag']}", str(one[name]))
            for one in rest.pop("ranges", [])
            for end, name in zip(_ENDS, ("lowest", "highest"), strict=True)
            if one.get(name) is not None
        ]
        for name, plural in (("camera", "cameras"), ("scene", "scenes")):
            pairs += [(name, value) for value in rest.pop(plural, [])]
        if where := rest.pop("where", None):
            pairs.append(("where", where))
        if rest.get("condition", {}).get("kind") == "all":
            others = []
            for one in rest.pop("condition")["of"]:
                fields = [*_fields_of(one)]
                pairs += fields
                others += [] if fields else [one]
            if others:
                rest["condition"] = others[0] if len(others) == 1 else {"kind": "all", "of": others}
        if rest:
            pairs.append(("question", json.dumps(rest)))
        fields_alone = cls.of(pairs)
        # Two ranges of one class, say, have no fields.
        same = question.model_copy(update={"seed": 0})
        if fields_alone.question(classes).model_dump() == same.model_dump():
            return fields_alone
        return cls.of([("question", written)])

    def get(self, name: str) -> str:
        """The last value of a parameter; "" where it has none."""
        return next((value for key, value in reversed(self.pairs) if key == name), "")

    def all(self, name: str) -> tuple[str, ...]:
        """Every value of a parameter."""
        return tuple(value for key, value in self.pairs if key == name)

    def holding(self, tag: str) -> str:
        """The text that a tag's values have which the page lists; "" where it lists any.

        Raises:
            InvalidInput: It is too long.
        """
        text = self.get(f"{_HOLDING}.{tag}")
        if len(text) > _LONGEST_TEXT:
            raise InvalidInput(
                f"{_HOLDING}.{tag[:80]}: {len(text):,} characters, expected at most {_LONGEST_TEXT}"
            )
        return text

    def tags(self, *kinds: str) -> tuple[str, ...]:
        """The tags that parameters such as ``min.car`` name."""
        split = (name.partition(".") for name, _ in self.pairs)
        return tuple(dict.fromkeys(tag for kind, dot, tag in split if dot and kind in kinds))

    @property
    def url(self) -> str:
        """The page's path with the question."""
        return f"/?{urlencode(self.pairs)}" if self.pairs else "/"

    @property
    def query(self) -> str:
        """The question as a query string."""
        return urlencode(self.pairs)

    def without(self, *names: str, value: str | None = None) -> "UrlQuestion":
        """The same without some parameters, or without one value of them."""
        remaining = tuple(
            pair for pair in self.pairs
            if pair[0] not in names or (value is not None and pair[1] != value)
        )  # fmt: skip
        return replace(self, pairs=remaining)

    def without_column(self, name: str) -> "UrlQuestion":
        """The same where frames are neither sorted by a column nor have its value below them."""
        sorted_by = self.view.order
        parameters = {
            "sort": "" if sorted_by and sorted_by.column[:80] == name else self.view.sort,
            "caption": ",".join(each for each in self.view.captions if each[:80] != name),
        }
        pairs = dict.fromkeys((each, parameters.get(each, value)) for each, value in self.pairs)
        return replace(self, pairs=tuple(pair for pair in pairs if pair[1]))

    @cached_property
    def view(self) -> View:
        """How the frames are shown.

        Raises:
            InvalidInput: A parameter has no meaning.
        """
        return View.of({name: self.get(name) for name in PARAMETERS})

    @property
    def asked_alone(self) -> "UrlQuestion":
        """The same without how its frames are shown."""
        return self.without(*PARAMETERS, *(f"{_HOLDING}.{tag}" for tag in self.tags(_HOLDING)))

    def shown(self, **parameters: str) -> "UrlQuestion":
        """The same with other values of some parameters; "" takes one away."""
        others = self.without(*parameters)
        return replace(others, pairs=(*others.pairs, *((k, v) for k, v in parameters.items() if v)))

    @cached_property
    def at(self) -> int | None:
        """The snapshot that is asked; the newest when None.

        Raises:
            InvalidInput: It is no number.
        """
        text = self.get("at")
        if not text:
            return None
        if not text.isdecimal() or not 0 < int(text) < 2**63:
            raise InvalidInput(f"at={text[:40]}: expected the number of a snapshot")
        return int(text)

    def question(self, classes: Collection[str]) -> Question:
        """The question.

        Args:
            classes: Tags that are numbers of pixels.

        Raises:
            InvalidInput: It cannot be read.
        """
        with input_errors():
            base = Question.model_validate_json(self.get("question") or "{}")
            pixels = [dict(self._range(tag)) for tag in self.tags(*_ENDS) if tag in classes]
            operands = [*self._conditions(classes)]
            if base.condition is not None:
                operands.append(base.condition.model_dump())
            conditions = {
                **base.model_dump(exclude_none=True),
                "ranges": [each.model_dump() for each in base.ranges] + pixels,
                "cameras": (*base.cameras, *self.all("camera")),
                "scenes": (*base.scenes, *self.all("scene")),
                "where": _both(base.where or "", self.get("where")) or None,
                "condition": {"kind": "all", "of": operands} if operands else None,
            }
            return Question.model_validate(conditions)

    def which(self, classes: Collection[str]) -> dict[str, Any]:
        """The frames to answer of, as arguments of a service.

        Args:
            classes: Tags that are numbers of pixels.
        """
        return {
            "question": self.question(classes),
            "dataset": self.get("dataset") or None,
            "split": self.get("split") or None,
            "at": self.at,
        }

    def _range(self, tag: str) -> Iterator[tuple[str, Any]]:
        yield "tag", tag
        for end, name in zip(_ENDS, ("lowest", "highest"), strict=True):
            if text := self.get(f"{end}.{tag}"):
                yield name, int(_number(tag, text))

    def _conditions(self, classes: Collection[str]) -> Iterator[dict[str, Any]]:
        for kind in _PRESENCE:
            for tag in self.tags(kind):
                yield {"kind": kind, "tag": tag}
        for tag in self.tags("is"):
            yield _is(tag, self.all(f"is.{tag}"))
        for tag in self.tags("not"):
            for unwanted in self.all(f"not.{tag}"):
                yield {"kind": "tag", "tag": tag, "op": NOT_KNOWN_TO_BE, "value": unwanted}
        for tag in self.tags(*_ENDS):
            if tag in classes:
                continue
            for end, operator in zip(_ENDS, (">=", "<="), strict=True):
                if text := self.get(f"{end}.{tag}"):
                    value = text if _MOMENT.match(text) else _number(tag, text)
                    yield {"kind": "tag", "tag": tag, "op": operator, "value": value}


def _fields_of(condition: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The parameters of a condition; none where no field asks it."""
    kind, tag, value = (condition.get(name) for name in ("kind", "tag", "value"))
    if kind in _PRESENCE:
        yield f"{kind}.{tag}", "1"
    elif kind == "tag":
        match condition.get("op"), value:
            case ("=", str()):
                yield f"is.{tag}", str(value)
            case ("in", [*values]) if all(isinstance(one, str) for one in values):
                yield from ((f"is.{tag}", one) for one in values)
            case (op, str()) if op == NOT_KNOWN_TO_BE:
                yield f"not.{tag}", str(value)
            case (">=" | "<=" as op, int() | float()):
                yield f"{'min' if op == '>=' else 'max'}.{tag}", f"{value}"


def _is(tag: str, values: tuple[str, ...]) -> dict[str, Any]:
    if len(values) == 1:
        return {"kind": "tag", "tag": tag, "op": "=", "value": values[0]}
    if set(values) == {"true", "false"}:  # booleans are no texts, which `in` takes
        return {"kind": "tag", "tag": tag, "op": "is_not_null"}
    return {"kind": "tag", "tag": tag, "op": "in", "value": values}


def _number(tag: str, text: str) -> float | int:
    try:
        number = float(text.replace(",", "").replace("\u202f", ""))
    except ValueError:
        number = float("nan")
    if number != number or abs(number) > 2**53:
        raise InvalidInput(f"{tag}: '{text[:40]}' is no number; expected digits, such as 10000")
    return int(number) if number.is_integer() else number


def _both(one: str, other: str) -> str:
    return f"({one}) and ({other})" if one and other else one or other
