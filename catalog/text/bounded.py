"""Texts and lists that come from outside, each with a limit.

Lists end at their first wrong element: one with half a million of them took ten seconds and a
gigabyte to say that each is wrong.
"""

from typing import Annotated, Any, TypeVar

from pydantic import Field, SecretStr

_T = TypeVar("_T")

MOST_FEW = 1_000
MOST_MANY = 10_000

Name = Annotated[str, Field(max_length=256)]
"""Name, or a word of a list; most kinds of names have a lower limit."""

Text = Annotated[str, Field(max_length=4_096)]
"""A path, a pattern, a value, a description."""

Sql = Annotated[str, Field(max_length=1 << 20)]
"""A condition or a statement; what is too long for Db2 is refused in Db2's words."""

Few = Annotated[tuple[_T, ...], Field(max_length=MOST_FEW, fail_fast=True)]
"""A list whose elements people write."""

Many = Annotated[tuple[_T, ...], Field(max_length=MOST_MANY, fail_fast=True)]
"""A list whose elements a program may write: scenes, values."""

Secret = Annotated[SecretStr, Field(max_length=4_096)]
"""A password or key."""

Content = Annotated[dict[str, Any], Field(max_length=MOST_FEW)]
"""An object whose reader knows what it may hold."""
