"""Lists page by page: ``limit``, ``cursor``, and the cursor of the page that follows.

A cursor is where the page before ended, not how many were passed over: what is added or removed
meanwhile shifts nothing.
"""

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar

from fastapi import Depends, Query

from catalog.errors import InvalidInput

MOST = 1000
"""Entries of a page."""

Key = tuple[str | int, ...]
"""Sort key of a list's entry, unique in the list."""

_T = TypeVar("_T")


@dataclass(frozen=True)
class Paging:
    """The page that a request asks for."""

    limit: int
    """Entries of it."""
    cursor: str | None
    """As the page before gave it."""

    def after(self, what: str, *kinds: type) -> Key | None:
        """Key of the last entry of the page before; None for the first page.

        Args:
            what: Name of the list, which the cursor must be of.
            kinds: What the key is made of.

        Raises:
            InvalidInput: It is no cursor of this list.
        """
        if self.cursor is None:
            return None
        try:
            padded = self.cursor + "=" * (-len(self.cursor) % 4)
            of, *key = json.loads(base64.b64decode(padded, b"-_", validate=True))
        except (ValueError, TypeError, RecursionError, binascii.Error):
            of, key = None, []
        fits = [type(value) for value in key] == list(kinds)
        # Numbers beyond what a database holds, and half characters, are in none of our cursors.
        if of != what or not fits or not all(_can_be(value) for value in key):
            raise InvalidInput(
                f"cursor: expected the 'next' of an earlier page of {what}, as it was; begin "
                "without one"
            )
        return tuple(key)

    def number_after(self, what: str) -> int | None:
        """`after` of a list in order of a number."""
        key = self.after(what, int)
        return None if key is None else int(key[0])

    def page(
        self, what: str, entries: Sequence[_T], key: Callable[[_T], Key]
    ) -> tuple[list[_T], str | None]:
        """The page, and the cursor of the one that follows.

        Args:
            what: Name of the list.
            entries: What comes after the cursor: one more than ``limit`` where more follow.
            key: Of an entry.
        """
        page = list(entries[: self.limit])
        if len(entries) <= self.limit:
            return page, None
        text = json.dumps([what, *key(page[-1])])
        return page, base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    def page_of_all(
        self, what: str, entries: Sequence[_T], key: Callable[[_T], Key], *kinds: type
    ) -> tuple[list[_T], str | None]:
        """`page` of a list that is at hand as a whole; in order of its keys."""
        after = self.after(what, *kinds)
        ordered = sorted(entries, key=key)
        if after is not None:
            ordered = [entry for entry in ordered if key(entry) > after]
        return self.page(what, ordered, key)


def _can_be(value: str | int) -> bool:
    if isinstance(value, int):
        return abs(value) < 2**31
    return value == value.encode("utf-8", "replace").decode()


async def _paging(
    limit: Annotated[int, Query(ge=1, le=MOST, description="At most so many entries.")] = 100,
    cursor: Annotated[
        str | None,
        Query(max_length=4_000, description="`next` of the page before; other parameters stay."),
    ] = None,
) -> Paging:
    return Paging(limit, cursor)


CurrentPage = Annotated[Paging, Depends(_paging)]
"""Page that a request selects."""
