"""Differences between the clocks of ranks, each within bounds that a round trip proves.

The first rank reads its clock, all meet, every rank reads its own, all meet again, and the first
reads once more. Whoever meets cannot have gone on before the first was there: each reading lies
between the first rank's two.

Source: Cristian, Probabilistic clock synchronization, 1989; Marzullo's intersection of RFC 5905
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Reading:
    """One round, by the clocks of two ranks [ns since 1970]."""

    before: int
    """Of the first rank, before the other's."""
    other: int
    after: int
    """Of the first rank, after the other's."""


@dataclass(frozen=True)
class ClockDifference:
    """How far another rank's clock is ahead of the first rank's."""

    ahead_s: float
    """The middle of what can be [s]; below 0 where it is behind."""
    bound_s: float
    """Half the width of what can be [s]."""

    @property
    def least_s(self) -> float:
        """The smallest difference that can be, without sign [s]; 0 where there may be none."""
        return max(0.0, abs(self.ahead_s) - self.bound_s)


def clock_difference(readings: Sequence[Reading]) -> ClockDifference:
    """The difference that all rounds allow; that of the shortest where no one is in all of them.

    A clock that is set, or runs faster than the other by more than the bounds, leaves none.

    Args:
        readings: Rounds with one rank, at least one.
    """
    lowest = max(each.other - each.after for each in readings)
    highest = min(each.other - each.before for each in readings)
    if lowest > highest:
        shortest = min(readings, key=lambda each: each.after - each.before)
        lowest, highest = shortest.other - shortest.after, shortest.other - shortest.before
    return ClockDifference((lowest + highest) / 2e9, (highest - lowest) / 2e9)
