"""Portions of what one command can be asked."""

from collections.abc import Iterator, Sequence


def portions(names: Sequence[str], most: int) -> Iterator[Sequence[str]]:
    """The names in their order, at most so many at once."""
    for begin in range(0, len(names), most):
        yield names[begin : begin + most]
