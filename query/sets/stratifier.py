"""Stratifiers: what frames are divided by, as users write it."""

import math
import re
from dataclasses import dataclass

from catalog.errors import InvalidInput


@dataclass(frozen=True)
class Stratifier:
    """One thing that frames are divided by."""

    tag: str
    """Column or tag."""
    edges: tuple[float, ...] = ()
    """Rising lower ends of bins, after a first one without lower end; a bin holds its lower end and
    not the next one's. Empty: every value is a stratum of its own, and of a class tag its
    absence and its presence are.
    """

    @classmethod
    def parse(cls, text: str) -> "Stratifier":
        """The stratifier written as ``camera`` or ``car:0,1000,10000``.

        Raises:
            InvalidInput: It is not written so, or the edges do not rise.
        """
        tag, colon, rest = text.strip().partition(":")
        try:
            edges = tuple(float(edge) for edge in rest.split(",")) if colon else ()
        except ValueError:
            edges = (math.nan,)
        if not tag or not all(map(math.isfinite, edges)) or sorted(set(edges)) != list(edges):
            raise InvalidInput(
                f"stratum '{text}': expected a tag, or a tag with rising edges of bins, such as "
                "camera or car:0,1000,10000"
            )
        return cls(tag.strip().lower(), edges)

    def to_text(self) -> str:
        """The stratifier as `parse` reads it."""
        return self.tag + (
            ":" + ",".join(f"{edge:.12g}" for edge in self.edges) if self.edges else ""
        )


def parse_stratifiers(text: str) -> tuple[Stratifier, ...]:
    """Stratifiers separated by commas: ``camera,car:0,1000,scene`` are three."""
    parts: list[str] = []
    for piece in text.split(","):
        is_edge = re.fullmatch(r"\s*[-+]?[0-9.]+(e[-+]?[0-9]+)?\s*", piece)
        if is_edge and parts and ":" in parts[-1]:
            parts[-1] += "," + piece
        else:
            parts.append(piece)
    return tuple(Stratifier.parse(piece) for piece in parts)
