"""Statements that differ in compared numbers only have one shape.

Clients ask ``int(car) >= 10000`` and then ``int(car) >= 12000``: what is found out of the one
holds for the other. Only a whole number that is all of one side of a comparison is left out of the
shape, so that nothing else is: no position in ORDER BY, no length, no scale, no LIMIT.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

_PARTS = re.compile(
    r"""
      '(?:[^']|'')*' (?!['\w]) | "(?:[^"]|"")*" (?!["\w])   # as they are
    | (?P<between> \bbetween \s+) (?P<low> [0-9]{1,9}) (?P<and> \s+ and \s+)
      (?P<high> [0-9]{1,9}) (?P<end> \s* (?:\Z|[);]) | \s+ (?:and|or|group|order|then)\b)
    | (?P<operator> (?<![=<>!:|]) (?:>=|<=|<>|!=|=|<|>) \s*) (?P<number> [0-9]{1,9})
      (?= \s* (?:\Z|[);]) | \s+ (?:and|or|group|order|then)\b)
    | \w['"] | -- | /\* | [^\w\s.,()*+\-/<>=!;:%|?]         # texts, comments, names of other kinds
    """,
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)

LONGEST = 100_000
"""Longest statement whose numbers are left out and whose shape is cached [characters]."""

_SHORT = 4_000
"""Statements of up to so many characters are kept with their shapes: each is asked for the shape
two to five times, at 20 to 100 microseconds, and many come again."""


@dataclass(frozen=True)
class Shape:
    """A statement without the numbers that are compared."""

    parts: tuple[str, ...]
    """What is between the numbers, before the first and after the last: the same for all statements
    of this shape, and for no others.
    """
    numbers: tuple[str, ...]
    """The numbers, of 1 to 9 digits, as they are written."""

    def with_numbers(self, numbers: Sequence[str]) -> str:
        """The statement with other numbers, one for each."""
        return "".join(
            text + number for text, number in zip(self.parts, (*numbers, ""), strict=True)
        )


def shape_of(statement: str) -> Shape:
    """The shape of a statement in DuckDB's or Db2's SQL.

    All of the statement where it has more than the plainest of both: comments, texts with a letter
    before them, quotes that do not end.
    """
    if len(statement) > LONGEST:
        return Shape((statement,), ())
    return _of_short(statement) if len(statement) <= _SHORT else _of(statement)


def _of(statement: str) -> Shape:
    parts: list[str] = []
    numbers: list[str] = []
    since = 0
    for match in _PARTS.finditer(statement):
        group = match.lastgroup
        if group is None:
            if match[0][0] in "'\"" and len(match[0]) > 1:
                continue
            return Shape((statement,), ())
        for name in ("number",) if group == "number" else ("low", "high"):
            parts.append(statement[since : match.start(name)])
            numbers.append(match[name])
            since = match.end(name)
    parts.append(statement[since:])
    return Shape(tuple(parts), tuple(numbers))


_of_short = lru_cache(maxsize=512)(_of)
