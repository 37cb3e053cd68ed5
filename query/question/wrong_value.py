"""Messages for values that pydantic refuses: given and expected, on one line."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from catalog.errors import InvalidInput

if TYPE_CHECKING:
    from pydantic import BaseModel

_Model = TypeVar("_Model", bound="BaseModel")
_Error = Mapping[str, Any]

_KINDS = {
    "tuple": "a list", "list": "a list", "dict": "an object", "model": "an object",
    "string": "text", "int": "a whole number", "float": "a number", "bool": "true or false",
}  # fmt: skip
"""Expected value, by the beginning of pydantic's error type."""

_SHOWN = 80
"""Characters of what was given."""


def checked(kind: type[_Model], /, **values: Any) -> _Model:
    """A model of these values.

    Raises:
        InvalidInput: It refuses one of them.
    """
    with input_errors():
        return kind(**values)


@contextmanager
def input_errors(before: str = "", text: str = "") -> Iterator[None]:
    """Translate pydantic's errors, and other ValueErrors, of the block.

    Args:
        before: What the message begins with.
        text: See `validation_message`.

    Raises:
        InvalidInput: The block raised one.
    """
    try:
        yield
    except ValueError as error:
        raise InvalidInput(f"{before}{validation_message(error, text)}") from error


def validation_message(error: ValueError, text: str = "") -> str:
    """The fault, on one line.

    Args:
        error: pydantic's, or any other, whose own text it then is.
        text: The text that the value was read from, named where the message would not.
    """
    errors = getattr(error, "errors", None)
    if errors is None:
        return " ".join(str(error).split())
    details: list[_Error] = errors()
    first = details[0]
    if first["type"] == "value_error":  # our own words, which name the value
        return str(first["msg"]).removeprefix("Value error, ")
    before = f"'{text}': " if text else ""
    return before + _foreign(details)


def _foreign(errors: Sequence[_Error]) -> str:
    """The message of faults that pydantic itself found."""
    first = errors[0]
    loc, message = first["loc"], _fault(first)
    kinds = _of_union(errors)
    if kinds:
        loc, message = loc[:-1], f"got {_input_text(first)}, expected {' or '.join(kinds)}"
    path = ".".join(str(key) for key in loc)
    return f"{path}: {message}" if path else message


def _of_union(errors: Sequence[_Error]) -> list[str]:
    """The kinds that a union expected; pydantic reports each by itself."""
    first = errors[0]["loc"]
    members = [one for one in errors if one["loc"][:-1] == first[:-1] and one["loc"] != first]
    kinds = [_kind(one) for one in (errors[0], *members)]
    same_value = all(one["input"] == errors[0]["input"] for one in members)
    return [*dict.fromkeys(filter(None, kinds))] if members and same_value else []


def _fault(error: _Error) -> str:
    """The fault of the value at its path."""
    kind, context = str(error["type"]), error.get("ctx", {})
    if kind in _WORDS:
        return _WORDS[kind](error, context)
    expected = _kind(error) or str(error["msg"]).removeprefix("Input should be ")
    return f"got {_input_text(error)}, expected {expected}"


def _kind(error: _Error) -> str:
    return _KINDS.get(str(error["type"]).partition("_")[0], "")


def _expected_message(words: str) -> Callable[[_Error, Mapping[str, Any]], str]:
    def message(error: _Error, context: Mapping[str, Any]) -> str:
        limits = {
            name: int(limit) if isinstance(limit, float) and limit.is_integer() else limit
            for name, limit in context.items()
        }
        return f"got {_input_text(error)}, expected {words.format(**limits)}"

    return message


_WORDS: Mapping[str, Callable[[_Error, Mapping[str, Any]], str]] = {
    "greater_than_equal": _expected_message("{ge} or more"),
    "greater_than": _expected_message("more than {gt}"),
    "less_than_equal": _expected_message("{le} or less"),
    "less_than": _expected_message("less than {lt}"),
    "literal_error": _expected_message("{expected}"),
    "enum": _expected_message("{expected}"),
    "missing": lambda *_: "is missing",
    "extra_forbidden": lambda *_: "there is no such field",
    "too_short": lambda *_: "is empty",
    "too_long": lambda error, context: (
        f"got {len(error['input']):,} of them, expected at most {context['max_length']:,}"
    ),
    "string_too_long": lambda error, context: (
        f"got {len(str(error['input'])):,} characters, expected at most {context['max_length']:,}"
    ),
    "string_too_short": lambda *_: "is empty",
    "json_invalid": lambda _, context: f"expected JSON: {context['error']}",
    "union_tag_not_found": lambda _, context: f"{context['discriminator']} is missing",
    "union_tag_invalid": lambda _, context: (
        f"unknown {context['discriminator'].strip(chr(39))} '{context['tag'][:_SHOWN]}': there are "
        f"{context['expected_tags'].replace(chr(39), '')}"
    ),
}
"""pydantic's name of an error -> our words."""


def _input_text(error: _Error) -> str:
    value = error.get("input")
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, str):
        return f"'{value[:_SHOWN]}'"
    return json.dumps(value, default=str)[:_SHOWN]
