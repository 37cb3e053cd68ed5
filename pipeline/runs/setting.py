"""Settings of orders: each has its words and bounds in one place; others are derived from it.

Request bodies (api.schemas.order_bodies), options of commands (api.cli.options.order_options),
flags of the training program (training.run_settings). Standard library only: GPU nodes import it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cache
from inspect import get_annotations
from typing import Any, get_args, get_origin, get_type_hints

from catalog.errors import InvalidInput

LARGEST = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Metadata of a field of an order: its words, and the values that it may have."""

    help: str
    """Its words as a command's option."""
    body: str | None = None
    """Its words as a request's field, where they are others; empty where requests lack it."""
    flag: str = ""
    """Its words as a flag of the training program; empty where it is none."""
    mode: str = ""
    """Mode of the training program that has the flag; empty for all modes."""
    ge: int | None = None
    """Lowest number."""
    gt: int | None = None
    """Number below all that it may have."""
    le: int | None = None
    """Highest number."""
    unit: str = ""
    """Of its numbers, in messages."""
    largest: int = LARGEST
    """Highest number that a request's field takes where there is no other bound."""
    ranged: bool = True
    """Whether the command's option shows and checks the bounds itself."""
    max_length: int | None = None
    """Of a request's text or list; None for that of a name."""
    examples: tuple[Any, ...] = ()
    """Values in the API's document."""
    option: str | None = None
    """Name of the option, where it is not the field's."""
    after: str | None = None
    """Field whose option the help shows before this one; empty for the first place, None for the
    field's own.
    """
    metavar: str | None = None
    """Placeholder of the option's value."""
    parse: Callable[[str], Any] | None = None
    """Reads the option's text."""
    usual: Any = None
    """Value of the program where an order leaves it open."""

    @property
    def body_words(self) -> str:
        """Its words as a request's field; empty where requests lack it."""
        return self.help if self.body is None else self.body

    @property
    def expected(self) -> str:
        """The numbers that it may have, in words."""
        if self.gt is not None:
            most = "" if self.le is None else f" and at most {self.le}"
            return f"a number above {self.gt}{most}"
        numbers = f"{self.ge} or more" if self.le is None else f"{self.ge} to {self.le}"
        return f"{numbers} {self.unit}".rstrip()

    def takes(self, number: float) -> bool:
        """Return whether a number lies within the bounds."""
        return (
            math.isfinite(number)
            and (self.ge is None or number >= self.ge)
            and (self.gt is None or number > self.gt)
            and (self.le is None or number <= self.le)
        )


@dataclass(frozen=True)
class Row:
    """A field of an order with its setting."""

    name: str
    """The field's."""
    type: Any
    """Its type, such as ``int | None``."""
    default: Any
    """Its default; dataclasses.MISSING where it has none."""
    setting: Setting
    """Its metadata."""

    @property
    def label(self) -> str:
        """The name in messages."""
        return self.name.replace("_", " ")

    @property
    def types(self) -> tuple[Any, ...]:
        """The types that the value may have; those of the elements of a list."""
        return get_args(self.type) or (self.type,)

    @property
    def is_list(self) -> bool:
        """True when the value is a list."""
        return any(get_origin(each) is Sequence for each in (self.type, *self.types))


def _rows(order: Any) -> tuple[Row, ...]:
    hints = get_type_hints(order, include_extras=True)
    known = {field.name: field for field in fields(order)}
    names: dict[str, None] = {}
    for base in reversed(order.__mro__):
        for name in get_annotations(base):
            names.pop(name, None)  # the last declaration has the words
            names[name] = None
    return tuple(
        Row(name, hints[name].__origin__, known[name].default, metadata)
        for name in names
        if name in known
        for metadata in getattr(hints[name], "__metadata__", ())
        if isinstance(metadata, Setting)
    )


rows: Callable[[Any], tuple[Row, ...]] = cache(_rows)
"""Gives the fields of a dataclass that have a setting; a class's own follow its bases'."""


def check_numbers(order: object) -> None:
    """Accept an order whose numbers lie within their bounds.

    Raises:
        InvalidInput: One does not.
    """
    for row in rows(type(order)):
        value = getattr(order, row.name)
        if isinstance(value, int | float) and not row.setting.takes(value):
            raise InvalidInput(f"{row.label} {value:g}: expected {row.setting.expected}")
