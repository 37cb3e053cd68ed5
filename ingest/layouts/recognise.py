"""Which layout a source has, by its names."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from ingest.layouts.draft import draft
from ingest.layouts.layout import FrameName, Layout
from ingest.layouts.read_layout import presets

LAYOUT_FILE = "layout.toml"
"""A source's own layout, at its root."""

LOOKED_AT = 2_000
"""Names that tell which layout a source has."""

_PARTNERS = 500
"""Names that are looked at in the folder where a file's partner would lie."""

_NEAR = 0.05
"""Shares of names that differ by less say the same."""

_OTHER_ENDINGS = (".txt", ".md", ".csv", ".pdf", ".toml", ".yaml", ".yml")

ListNames = Callable[[str], Iterable[str]]
"""Names below a folder (ends in a slash; "" for all), in order."""


@dataclass(frozen=True)
class Fit:
    """Layout that pairs an image of a source with a label."""

    name: str
    layout: Layout
    names: int
    """Names that follow it, of those looked at."""
    looked_at: int

    @property
    def share(self) -> float:
        """Share of the names that follow it (0 to 1)."""
        return self.names / self.looked_at

    def __str__(self) -> str:
        return f"{self.name} ({self.names:,} of {self.looked_at:,} names)"


@dataclass(frozen=True)
class Recognition:
    """Layouts that fit a source's names."""

    fits: Sequence[Fit]
    """Best first."""
    names: Sequence[str]
    """Names looked at."""
    own: Layout | None = None
    """The source's own layout, the only one that was looked at; None where it has none."""

    @property
    def layout(self) -> Layout | None:
        """The layout that alone fits, or fits best; None where none does, or several alike."""
        if not self.fits:
            return None
        best = [fit for fit in self.fits if fit.share > self.fits[0].share - _NEAR]
        alike = [fit for fit in best if _letters(fit.layout) == _letters(best[0].layout)]
        return alike[0].layout if len(alike) == 1 else None

    def summary(self, root: str) -> str:
        """Which layout a source looks like, or which fit alike.

        Args:
            root: What to call the source.
        """
        if self.own and self.fits:
            return f"has its own layout: {self.fits[0]}"
        if self.layout is not None:
            other_fits = ", ".join(map(str, self.fits[1:]))
            lacks = f"; {how_to_say_classes(self.layout)}" if self.layout.lacks_classes else ""
            also = f"; others fit, too: {other_fits}" if other_fits else ""
            return f"looks like {self.fits[0]}{also}{lacks}"
        if self.fits:
            some = ", ".join(map(str, self.fits))
            return f"several layouts fit: {some}; choose one by --layout NAME"
        if not self.names:
            return f"{root}: no file is there"
        if self.own:
            return (
                f"{root}: its {LAYOUT_FILE} pairs no image with a label, of {len(self.names):,} "
                f"names such as {', '.join(self.names[:3])}; framesift layout check ROOT says "
                "which pattern each fails"
            )
        return (
            f"{root}: no preset pairs its images with labels, of {len(self.names):,} names such as "
            f"{', '.join(self.names[:3])}; write a layout file (docs/own-labels.md) and give it by "
            "--layout FILE to source add or source set"
        )

    @property
    def draft(self) -> str:
        """A layout file to begin with where none fits; empty where one does, or is there."""
        return "" if self.fits or self.own or not self.names else draft(self.names)


def recognised(
    list_names: ListNames, layouts: Sequence[tuple[str, Layout]] | None = None
) -> Recognition:
    """The layouts that fit a source: those that pair one of its first images with a label.

    Images and labels may lie in two trees, so that the first names are all of one kind: then the
    folder is looked into where the partners of the first of them would be.

    Args:
        layouts: Name and layout of each; the presets when None.
    """
    names = [
        name for name in islice(list_names(""), LOOKED_AT) if not name.endswith(_OTHER_ENDINGS)
    ]
    fits = [
        Fit(name, layout, number, len(names))
        for name, layout in (presets() if layouts is None else layouts)
        if (number := _paired_names(layout, names, list_names))
    ]
    fitting = {fit.name for fit in fits}
    # A data set often has its labels in several forms: the one that is no variant is meant.
    fits = [fit for fit in fits if fit.layout.document.get("variant_of") not in fitting]
    fits.sort(key=lambda fit: (-round(fit.share / _NEAR), -_letters(fit.layout), fit.name))
    return Recognition(fits, names)


def how_to_say_classes(layout: Layout) -> str:
    """What to do where a layout says no classes, and the data set has no file of them."""
    return (
        f"layout {layout.name} has no classes: write them into a layout file, as [[classes]] with "
        f"key and name (framesift layout show {layout.name} --toml > layout.toml makes one to "
        "begin with); lay it at the source's root, or give it by --layout layout.toml to "
        "source add or source set"
    )


def _letters(layout: Layout) -> int:
    """Letters and digits of its patterns that are no field: of two that fit, more say more."""
    return sum(pattern.letters for _, pattern in layout.patterns)


def _paired_names(layout: Layout, names: Sequence[str], list_names: ListNames) -> int:
    """Names that follow a layout; 0 where it pairs none of them."""
    parsed = [(key, name) for key in names if (name := layout.parse(key)) is not None]
    if not parsed:
        return 0
    every = [name for _, name in parsed]
    if not _is_paired(every):
        for folder in layout.folders_of(parsed[0][0]):
            below = (layout.parse(key) for key in islice(list_names(folder), _PARTNERS))
            every += [name for name in below if name is not None]
    return len(parsed) if _is_paired(every) else 0


def _is_paired(names: Iterable[FrameName]) -> bool:
    frames: dict[str, set[tuple[object, ...]]] = {"image": set(), "label": set()}
    for name in names:
        frames.setdefault(name.kind, set()).add(name.frame)
    return not frames["image"].isdisjoint(frames["label"])
