"""A table on the terminal."""

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap
from typing import Any

from rich.cells import cell_len

from api.cli.terminal import stdout
from catalog.text.visible_text import visible


def emit_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str = "") -> None:
    """Print a table; numbers stand to the right.

    What does not fit is wrapped between the words of sentences. A name stays whole, also where the
    table is then wider than the terminal: a name with a line end in it cannot be copied.
    """
    # Not by Rich's own table: of 200 rows that takes a tenth of a second.
    lines = [[_cell(value) for value in row] for row in rows]
    widths = _widths([columns, *lines], stdout.width)
    numbers = [
        bool(lines) and all(_is_number(line[index]) for line in lines)
        for index in range(len(columns))
    ]
    if title:
        stdout.out(title, style="italic", highlight=False)
    if any(columns):
        stdout.out(*_laid_out(columns, widths, numbers), sep="\n", style="bold", highlight=False)
    printed = [text for line in lines for text in _laid_out(line, widths, numbers)]
    if printed:
        stdout.out("\n".join(printed), highlight=False)


def _laid_out(
    cells: Sequence[str], widths: Sequence[int], numbers: Sequence[bool]
) -> Iterator[str]:
    """The lines of a row."""
    parts = [
        [text] if "\n" not in text and cell_len(text) <= width else _wrapped(text, width)
        for text, width in zip(cells, widths, strict=True)
    ]
    for number in range(max(map(len, parts), default=0)):
        line = []
        for cell, width, right in zip(parts, widths, numbers, strict=True):
            text = cell[number] if number < len(cell) else ""
            blanks = " " * (width - cell_len(text))
            line.append(blanks + text if right else text + blanks)
        yield (" " * _GAP).join(line).rstrip()


def _wrapped(text: str, width: int) -> list[str]:
    return [
        piece
        for line in text.splitlines()
        for piece in wrap(line, width, break_long_words=False, break_on_hyphens=False) or [""]
    ]


_GAP = 2
"""Blanks between two columns."""

_SENTENCE_WORDS = 5
"""Words of a text that is a sentence: "IBM COS" and "Traffic guide obj." are names."""


def _widths(lines: Sequence[Sequence[str]], room: int) -> list[int]:
    """Each column's width: as its longest text, less where sentences can be wrapped to fit."""
    columns = list(zip(*lines, strict=True))
    widths = [max(map(_widest_line, column), default=0) for column in columns]
    least = [max(map(_unbroken, column), default=0) for column in columns]
    while sum(widths) + _GAP * (len(widths) - 1) > room:
        widest = max(range(len(widths)), key=lambda i: widths[i] if widths[i] > least[i] else -1)
        if widths[widest] <= least[widest]:
            break
        widths[widest] -= 1
    return [max(width, 1) for width in widths]


def _widest_line(text: str) -> int:
    return max(map(cell_len, text.splitlines()), default=0)


def _unbroken(text: str) -> int:
    """Width of what must stay on one line."""
    words = text.split()
    return max(map(cell_len, words)) if len(words) >= _SENTENCE_WORDS else _widest_line(text)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else visible(str(value))


def _is_number(text: str) -> bool:
    return bool(text) and text.replace(",", "").replace(".", "", 1).lstrip("-").isdigit()
