"""Tables of Markdown, and text that Markdown leaves as it is."""

import re
from collections.abc import Iterable, Sequence

_CODE = re.compile(r"(`[^`]*`)")
_SIGNS = re.compile(r"([\\*]|(?<!\w)_|_(?!\w)|\](?=[(\[]))")
"""Of emphasis and links; an underscore inside a word is none."""


def escaped(text: str) -> str:
    """Text in which Markdown sees no signs but those of code in backticks."""
    pieces = _CODE.split(text)
    pieces[::2] = [_SIGNS.sub(r"\\\1", piece).replace("<", "&lt;") for piece in pieces[::2]]
    return "".join(pieces)


def code(text: str) -> str:
    """Text as code; nothing where there is none."""
    return f"`{text}`" if text else ""


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(_cell(cell) for cell in line)} |\n" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
