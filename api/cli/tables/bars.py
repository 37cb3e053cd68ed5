"""Bars in tables."""

from collections.abc import Sequence

from api.cli.terminal import stdout

_BAR_WIDTH = 20
_PARTS: tuple[str, ...] = ("", *"\u258f\u258e\u258d\u258c\u258b\u258a\u2589")
"""Left parts of a character cell, of none to seven eighths."""
_HEIGHTS = "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"


def columns_of(counts: Sequence[int]) -> str:
    """A column for each count, the largest one full; of a terminal without such signs nothing."""
    largest = max(counts, default=0)
    if not stdout.encoding.startswith("utf") or not largest:
        return ""
    return "".join(
        _HEIGHTS[-(-count * len(_HEIGHTS) // largest) - 1] if count else " " for count in counts
    )


def bar(value: float, largest: float) -> str:
    """A bar that is full at the largest value."""
    eighths = round(8 * _BAR_WIDTH * value / largest) if largest else 0
    if not stdout.encoding.startswith("utf"):
        return "#" * (eighths // 8)
    return "\N{FULL BLOCK}" * (eighths // 8) + _PARTS[eighths % 8]
