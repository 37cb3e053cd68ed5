"""Lists that a page shows in part: the first rows, or those whose name has a text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Generic, TypeVar
from urllib.parse import urlencode

from fastapi import Query

MOST = 100
"""Rows that a page lists; a part of a name finds others."""

Holding = Annotated[str, Query(max_length=200, description="Part of the name.")]

_Row = TypeVar("_Row")


@dataclass(frozen=True)
class Narrowed(Generic[_Row]):
    """The rows of a list that a page shows."""

    rows: Sequence[_Row]
    holding: str
    """The text that their names have; empty for any."""
    are_all: bool
    """Whether no other row has it."""


def narrowed(
    rows: Sequence[_Row], holding: str, names: Callable[[_Row], str], most: int = MOST
) -> Narrowed[_Row]:
    """The first rows whose names have a text, in whatever case.

    Args:
        names: Gives a row's name, or several as one text.
        most: How many rows at most.
    """
    text = holding.casefold()
    of_text = [row for row in rows if text in names(row).casefold()]
    return Narrowed(of_text[:most], holding, are_all=len(of_text) <= most)


def narrowed_path(path: str, holding: str) -> str:
    """The path of a list, narrowed as it was when an action in it was asked for.

    Args:
        path: The list's own, which no request says.
        holding: The text; empty for the whole list.
    """
    return f"{path}?{urlencode({'holding': holding})}" if holding else path
