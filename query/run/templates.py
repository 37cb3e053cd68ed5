"""Statements rewritten once for all numbers that they may compare with.

Rewriting takes 2 to 4 ms, which is as long as many questions run. It looks at the type of a number
that is compared, never at its value, and whole numbers of up to nine digits have one type.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from catalog.errors import SqlError
from catalog.lake.statement_shape import LONGEST, Shape, shape_of
from catalog.storage.lru import Lru

_FIRST_STAND_IN = 918_273_645
"""First number that stands in for another; it has nine digits, as have those that follow it."""


@dataclass(frozen=True)
class _Template:
    """A rewritten statement with the places of its numbers; ``order[i]`` stands after part i."""

    parts: tuple[str, ...]
    order: tuple[int, ...]

    def filled(self, shape: Shape) -> str:
        numbers = [shape.numbers[index] for index in self.order]
        return Shape(self.parts, tuple(numbers)).with_numbers(numbers)


_Kept = _Template | Literal["once", "never"]
"""Template of a shape, or the reason that there is none: seen once, or with numbers that cannot be
left out."""


class Templates:
    """Rewritten statements, by the shapes of what they were."""

    def __init__(self, most: int) -> None:
        """Keep none yet.

        Args:
            most: Shapes kept; those not asked for longest go first.
        """
        self._kept: Lru[tuple[str, ...], _Kept] = Lru(most)

    def rewritten(self, statement: str, rewrite: Callable[[str], str]) -> str:
        """The statement as ``rewrite`` makes it, from a template where one is known."""
        if len(statement) > LONGEST:
            return rewrite(statement)
        shape = shape_of(statement)
        known = self._kept.get(shape.parts)
        if isinstance(known, _Template):
            return known.filled(shape)
        rewritten = rewrite(statement)
        if not shape.numbers:
            self._kept.put(shape.parts, _Template((rewritten,), ()))
        elif known is None:  # most shapes are seen once
            self._kept.put(shape.parts, "once")
        elif known == "once":
            self._kept.put(shape.parts, _template(shape, rewritten, rewrite) or "never")
        return rewritten


def _template(shape: Shape, expected: str, rewrite: Callable[[str], str]) -> _Template | None:
    """The template of a shape; None where it does not give ``expected`` for its own numbers."""
    text = "".join(shape.parts)
    stand_ins = [
        number
        for number in map(str, range(_FIRST_STAND_IN, _FIRST_STAND_IN + 2 * len(shape.numbers)))
        if number not in text
    ][: len(shape.numbers)]
    if len(stand_ins) < len(shape.numbers):
        return None
    try:
        rewritten = rewrite(shape.with_numbers(stand_ins))
    except SqlError:
        return None
    pieces = re.split(f"(?<![0-9])({'|'.join(stand_ins)})(?![0-9])", rewritten)
    template = _Template(
        tuple(pieces[::2]), tuple(stand_ins.index(number) for number in pieces[1::2])
    )
    complete = set(template.order) == set(range(len(shape.numbers)))
    return template if complete and template.filled(shape) == expected else None
