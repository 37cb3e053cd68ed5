"""Request bodies derived from orders: what a field means and may hold, its setting says."""

from collections.abc import Callable
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any, TypeVar, Union, get_type_hints

from pydantic import BaseModel, Field, create_model

from catalog.text.bounded import Name
from pipeline.runs.setting import Row, rows

_Body = TypeVar("_Body", bound=BaseModel)

_ROWS: dict[str, tuple[Row, ...]] = {}
"""The settings of each derived body, by the body's name."""


@dataclass(frozen=True)
class SimpleField:
    """A field of a body whose value one line of text gives."""

    name: str
    """The field's."""
    label: str
    """Words before it in a form."""
    description: str
    """What it means."""
    example: str
    """A value that it may have; empty where none is given."""
    usual: str
    """The value that it has where none is given; empty where that depends on others."""
    is_list: bool
    """Whether the text has names with commas between."""
    is_choice: bool
    """Whether it is yes or no."""
    is_only: bool
    """Whether the example is the one value that it may have."""


def simple_fields(body: type[BaseModel]) -> list[SimpleField]:
    """The fields of a derived body that one line of text gives."""
    return [
        SimpleField(
            row.name,
            row.label.capitalize(),
            row.setting.body_words,
            _text_of(row.setting.examples[0]) if row.setting.examples else "",
            _text_of(row.default if row.setting.usual is None else row.setting.usual),
            row.is_list,
            bool in row.types,
            row.setting.metavar in row.setting.examples,
        )
        for row in _ROWS[body.__name__]
        if row.is_list or {str, int, float, bool} & {*row.types}
    ]


def _text_of(value: Any) -> str:
    """A value as a line of text; empty for none."""
    if value is None or value is MISSING:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def body_of(order: type) -> Callable[[type[_Body]], type[_Body]]:
    """Give a body the fields of an order whose setting has words for requests.

    A field that the body itself annotates keeps that type, which is narrower than the order's.
    """

    def derived(body: type[_Body]) -> type[_Body]:
        narrower = get_type_hints(body, include_extras=True)
        _ROWS[body.__name__] = tuple(row for row in rows(order) if row.setting.body_words)
        added: dict[str, Any] = {
            row.name: (narrower.get(row.name) or _type_of(row), _field_of(row))
            for row in _ROWS[body.__name__]
        }
        return create_model(
            body.__name__, __base__=body, __module__=body.__module__, __doc__=body.__doc__, **added
        )

    return derived


def _types(row: Row) -> tuple[Any, ...]:
    """The types that a field may have; a request names no path."""
    types = (row.type,) if row.is_list else row.types
    return tuple(each for each in types if each is not Path)


def _type_of(row: Row) -> Any:
    text = Name if row.setting.max_length is None else str
    return Union[tuple(text if each is str else each for each in _types(row))]  # noqa: UP007


def _field_of(row: Row) -> Any:
    setting, types = row.setting, _types(row)
    bounded = setting.ge is not None or setting.gt is not None
    largest = setting.largest if int in types and bounded and setting.le is None else setting.le
    bounds: dict[str, Any] = {
        "ge": setting.ge,
        "gt": setting.gt,
        "le": largest,
        "max_length": setting.max_length,
        "allow_inf_nan": False if float in types else None,
        "examples": list(setting.examples) or None,
    }
    return Field(
        default=... if row.default is MISSING else row.default,
        description=setting.body_words,
        **{name: value for name, value in bounds.items() if value is not None},
    )
