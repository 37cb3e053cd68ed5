"""Facets as they are drawn: paths of SVG, positions of sliders, values to tick.

Heights are logarithms of numbers of frames: beside the many frames without a class the few with
much of it would be flat. Exact numbers stand in each plot's text.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from api.web.find.url_question import UrlQuestion
from query.statistics.facet_report import Facet, FacetReport, FacetSteps
from query.statistics.histogram_report import Bin

HEIGHT = 40
_PLAIN = ("camera", "scene")
MOST_VALUES = 60
"""Values of a text that are shown; those ticked, or left out, are shown always."""

_DRAWN = 40
"""Classes whose histogram is drawn, of those that most frames have; and of those chosen."""

_DRAWN_TAGS = 30
"""So many histograms of other tags are drawn, of the first ones and of those pinned."""

_VALUES_OF_ONE = 15
"""So many values of a text take as much of a page as a histogram."""


@dataclass(frozen=True)
class Plot:
    """A number's histogram."""

    all: str
    """Path of all frames; a bin is 1 wide."""
    within: str
    """Path of the frames that fulfil the other conditions, where the tag's own holds."""
    beyond: str
    """The same, where it does not."""
    bins: int
    """How many."""
    low: tuple[str, ...]
    """The least value of each bin, as a field shows it."""
    high: tuple[str, ...]
    """The greatest."""
    start: int
    """The bin of the lower end."""
    end: int
    """The bin of the upper end."""
    label: str
    """The same in words."""
    zone: str
    """Of its times; empty where its values are none."""


@dataclass(frozen=True)
class Value:
    """A value of a text, to be ticked or left out."""

    text: str
    frames: int | None
    """How many fulfil the other conditions; None where it was not counted."""
    ticked: bool
    left_out: bool


@dataclass(frozen=True)
class Shown:
    """A facet."""

    number: int
    """Tells elements of the page apart."""
    tag: str
    """Its tag."""
    name: str
    """The class's name; the tag else."""
    is_class: bool
    """Whether it counts a class's pixels."""
    plot: Plot | None
    """Of a number; None for texts."""
    values: tuple[Value, ...]
    """Of a text or a boolean."""
    known: str
    """How many values there are, in words, where not all are shown; empty else."""
    field: str
    """The name of a value's parameter."""
    pinned: bool = False
    """Whether it stands before the others."""
    folded: bool = False
    """Whether its histogram or values are left out: there are more tags than a page draws."""
    asked: bool = False
    """Whether the question has a condition on it."""
    holding: str = ""
    """The text that the values shown have in them; they are all values where it is empty."""


@dataclass(frozen=True)
class Groups:
    """The facets, as the page groups them, and the names of classes that no frame has."""

    pinned: tuple[Shown, ...]
    first: tuple[Shown, ...]
    classes: tuple[Shown, ...]
    tags: tuple[Shown, ...]
    absent: tuple[str, ...]

    @property
    def folded_tags(self) -> frozenset[str]:
        """The tags, but those of classes, that are folded."""
        return frozenset(facet.tag for facet in self.tags if facet.folded)

    @property
    def every(self) -> tuple[Shown, ...]:
        """All of them whose numbers are shown."""
        shown = self.pinned + self.first + self.classes + self.tags
        return tuple(facet for facet in shown if not facet.folded)


def groups_of(
    report: FacetReport,
    search: UrlQuestion,
    classes: Collection[str],
    counted: Mapping[str, Mapping[str, int]] | None = None,
) -> Groups:
    """The facets of a report, without those that cannot tell frames apart.

    Args:
        search: What the page's URL asks.
        classes: Tags that count a class's pixels.
        counted: Frames by value of the tags that ``rare_values`` or the URL's ``holding`` name.
    """
    pins, folded = set(search.all("pin")), _folded(report, search, classes)
    pinned: list[Shown] = []
    first: list[Shown] = []
    of_classes: list[Shown] = []
    tags: list[Shown] = []
    absent: list[str] = []
    for number, facet in enumerate(report.facets):
        is_class = facet.tag in classes
        if not facet.asked and not _tells_apart(facet):
            if is_class and not _frames_with(facet):
                absent.append(facet.name)
            continue
        panel = replace(
            _shown(number, facet, search, (counted or {}).get(facet.tag), is_class=is_class),
            pinned=facet.tag in pins,
            folded=facet.tag in folded,
            asked=facet.asked,
        )
        group = first if facet.tag in _PLAIN else of_classes if is_class else tags
        (pinned if panel.pinned else group).append(panel)
    return Groups(tuple(pinned), tuple(first), tuple(of_classes), tuple(tags), tuple(absent))


def values_of(
    number: int, facet: Facet, search: UrlQuestion, counted: Mapping[str, int] | None
) -> Shown:
    """A text's facet alone, as the page shows it.

    Args:
        number: Tells its elements of the page apart.
        search: What the page's fields say.
        counted: Frames by value, of those that the field ``holding`` finds.
    """
    return _shown(number, facet, search, counted, is_class=False)


def rare_values(report: FacetReport, search: UrlQuestion) -> dict[str, list[str]]:
    """By tag, the values that are ticked or left out and have no bin of their own."""
    rare = {}
    for facet in report.facets:
        if facet.type == "VARCHAR":
            counts = _counts(facet)
            if values := [text for text in _chosen(facet, search) if text not in counts]:
                rare[facet.tag] = values
    return rare


def moved_of(report: FacetReport, search: UrlQuestion, classes: Collection[str]) -> dict[str, Any]:
    """The values that change while a slider moves: a tenth of `groups_of`'s work.

    Args:
        search: What the page's fields say.
        classes: Tags that count a class's pixels.

    Returns:
        ``matching``: number of frames, as text; ``plots``: of each number's facet the two paths;
        ``numbers``: of each value of a text its frames, as text.
    """
    plots: dict[int, tuple[str, str]] = {}
    numbers: dict[str, str] = {}
    folded = _folded(report, search, classes)
    for number, facet in enumerate(report.facets):
        if facet.tag in folded or (not facet.asked and not _tells_apart(facet)):
            continue
        if facet.scale == "categories":
            for index, value in enumerate(_values(facet, search)):
                if value.frames is not None:
                    numbers[f"{number}-{index}"] = f"{value.frames:,}"
        else:
            drawn = _drawn(facet)
            plots[number] = _paths(facet, drawn, *_range(facet, drawn, search))
    return {"matching": f"{report.matching:,}", "plots": plots, "numbers": numbers}


def steps_of(
    steps: FacetSteps,
    search: UrlQuestion,
    field: str,
    values: Sequence[str],
    classes: Collection[str],
) -> dict[str, Any]:
    """What `moved_of` says of every position of a slider, as numbers to be summed and drawn.

    Args:
        search: What the page's fields say, but for that of the slider.
        field: The field's name.
        values: What it says at each position but the open one.
        classes: Tags that count a class's pixels.

    Returns:
        ``snapshot``; ``matching``: frames by position; ``plots``: of each number's facet ``most``,
        the height of its plot [frames], ``ranges``, the first and last bin of what is asked for,
        by position or once, and ``counts``, frames by bin and position; ``numbers``: of each value
        of a text its frames by position. Frames are told at the last position that they fulfil.
    """
    plots: dict[int, dict[str, Any]] = {}
    numbers: dict[str, Sequence[int]] = {}
    positions = [search, *(search.shown(**{field: value}) for value in values)]
    folded = _folded(steps.report, search, classes)
    for number, (facet, counts) in enumerate(zip(steps.report.facets, steps.counts, strict=True)):
        is_moved = field.partition(".")[2] == facet.tag
        if not is_moved and (facet.tag in folded or not (facet.asked or _tells_apart(facet))):
            continue
        by_bin = [*zip(*counts, strict=True)]
        if facet.scale == "categories":
            bin_of = {bin_.value: by_bin[index] for index, bin_ in enumerate(facet.bins)}
            for index, value in enumerate(_values(facet, search)):
                if value.text in bin_of:
                    numbers[f"{number}-{index}"] = bin_of[value.text]
        else:
            drawn = _drawn(facet)
            plots[number] = {
                "most": _most(facet, drawn),
                "ranges": [_range(facet, drawn, at) for at in positions[: None if is_moved else 1]],
                "counts": [by_bin[index] for index in drawn],
            }
    report, matching = steps.report, steps.matching
    return {
        "snapshot": report.snapshot, "matching": matching, "plots": plots, "numbers": numbers
    }  # fmt: skip


def _tells_apart(facet: Facet) -> bool:
    return sum(count > 0 for count in facet.of_all) > 1


def _folded(report: FacetReport, search: UrlQuestion, classes: Collection[str]) -> set[str]:
    """Tags whose histograms or values are left out."""
    pins = set(search.all("pin"))
    of_classes = [facet for facet in report.facets if facet.tag in classes]
    others = [facet for facet in report.facets if facet.tag not in {*classes, *_PLAIN}]
    frequent = sorted(of_classes, key=_frames_with, reverse=True)
    # What a text is asked for stands in its values alone: these are never left out.
    drawn = {facet.tag for facet in others if facet.asked}
    asked = [facet for facet in of_classes if facet.asked]
    pinned = [facet for facet in of_classes if facet.tag in pins]
    drawn.update(_fitting([*asked, *pinned], _DRAWN))
    drawn.update(_fitting(frequent, _DRAWN))
    drawn.update(_fitting([facet for facet in others if facet.tag in pins], _DRAWN_TAGS))
    drawn.update(_fitting([facet for facet in others if _tells_apart(facet)], _DRAWN_TAGS))
    return {facet.tag for facet in (*of_classes, *others)} - drawn


def _fitting(facets: Sequence[Facet], histograms: int) -> Iterator[str]:
    """The tags of the first facets, each once, in the place of so many histograms."""
    place: float = histograms
    for tag, facet in {facet.tag: facet for facet in facets}.items():
        values = min(len(facet.bins), MOST_VALUES) if facet.scale == "categories" else 0
        place -= max(1, values / _VALUES_OF_ONE)
        if place < 0:
            return
        yield tag


def _frames_with(facet: Facet) -> int:
    """The frames that have any of a class."""
    return sum(
        count
        for bin_, count in zip(facet.bins, facet.of_all, strict=True)
        if bin_.kind not in ("null", "zero")
    )


def _shown(
    number: int,
    facet: Facet,
    search: UrlQuestion,
    counted: Mapping[str, int] | None,
    *,
    is_class: bool,
) -> Shown:
    field = _field(facet)
    if facet.scale == "categories":
        values, holding = _values(facet, search, counted), search.holding(facet.tag)
        own_bins = len(_counts(facet))
        are_more = any(
            bin_.kind == "other" and frames
            for bin_, frames in zip(facet.bins, facet.of_all, strict=True)
        )
        known = f"more than {own_bins:,}" if are_more else f"{own_bins:,}"
        if not are_more and own_bins <= MOST_VALUES:
            known = ""
        return Shown(
            number, facet.tag, facet.name, is_class, None, values, known, field, holding=holding
        )
    plot = _plot(facet, search)
    return Shown(number, facet.tag, facet.name, is_class, plot, (), "", field)


def _field(facet: Facet) -> str:
    """The name of the parameter that asks for one of a facet's values."""
    return facet.tag if facet.tag in _PLAIN else f"is.{facet.tag}"


def _counts(facet: Facet) -> dict[str, int]:
    """Frames by value, of the values that have a bin of their own; the most frequent first."""
    return {
        bin_.value: count
        for bin_, count in zip(facet.bins, facet.counts, strict=True)
        if bin_.kind == "value" and bin_.value is not None
    }


def _chosen(facet: Facet, search: UrlQuestion) -> dict[str, None]:
    """The values that are ticked or left out, each once."""
    return dict.fromkeys((*search.all(_field(facet)), *search.all(f"not.{facet.tag}")))


def _values(
    facet: Facet, search: UrlQuestion, counted: Mapping[str, int] | None = None
) -> tuple[Value, ...]:
    """The values that are listed: the most frequent, or those found, and all that are chosen."""
    ticked, left_out = search.all(_field(facet)), search.all(f"not.{facet.tag}")
    chosen, counts = _chosen(facet, search), _counts(facet)
    if search.holding(facet.tag):
        counts = dict(counted or {})
        # What is chosen comes first: a list that is narrowed takes no condition away.
        listed = [*chosen, *[text for text in counts if text not in chosen][:MOST_VALUES]]
    else:
        listed = [text for at, text in enumerate(counts) if at < MOST_VALUES or text in chosen]
        listed += [text for text in chosen if text not in counts]
        counts = {**(counted or {}), **counts}
    return tuple(Value(text, counts.get(text), text in ticked, text in left_out) for text in listed)


def _plot(facet: Facet, search: UrlQuestion) -> Plot:
    drawn = _drawn(facet)
    of_all = [facet.of_all[index] for index in drawn]
    counts = [facet.counts[index] for index in drawn]
    ends = [*_ends([facet.bins[index] for index in drawn], facet)]
    start, end = _range(facet, drawn, search)
    within, beyond = _paths(facet, drawn, start, end)
    return Plot(
        all=_bars(of_all, max(of_all, default=0)),
        within=within,
        beyond=beyond,
        bins=len(drawn),
        low=tuple(_said(low, facet) for low, _ in ends),
        high=tuple(_said(high, facet) for _, high in ends),
        start=start,
        end=end,
        label=_plot_label(facet, ends, of_all, counts),
        zone=_zone(facet),
    )


def _drawn(facet: Facet) -> list[int]:
    """Positions of the bins that a number's plot shows."""
    return [index for index, bin_ in enumerate(facet.bins) if bin_.kind in ("zero", "range")]


def _range(facet: Facet, drawn: Sequence[int], search: UrlQuestion) -> tuple[int, int]:
    """The first and the last bin of what is asked for, among those that are drawn."""
    low = search.get(f"min.{facet.tag}") or ("1" if search.get(f"has.{facet.tag}") else "")
    high = search.get(f"max.{facet.tag}") or ("0" if search.get(f"without.{facet.tag}") else "")
    if not low and not high:
        return 0, max(0, len(drawn) - 1)
    return _marked([*_ends([facet.bins[index] for index in drawn], facet)], low, high)


def _paths(facet: Facet, drawn: Sequence[int], start: int, end: int) -> tuple[str, str]:
    """Paths of the frames that fulfil the other conditions, within a range and beyond it."""
    most = _most(facet, drawn)
    counts = [facet.counts[index] for index in drawn]
    inside = [n if start <= index <= end else 0 for index, n in enumerate(counts)]
    outside = [0 if start <= index <= end else n for index, n in enumerate(counts)]
    return _bars(inside, most), _bars(outside, most)


def _most(facet: Facet, drawn: Sequence[int]) -> int:
    """The frames of the highest bar."""
    return max((facet.of_all[index] for index in drawn), default=0)


def _ends(bins: Sequence[Bin], facet: Facet) -> Iterator[tuple[float, float]]:
    """The least and the greatest value of each bin."""
    is_integer = facet.type.upper() not in ("FLOAT", "DOUBLE")
    ranges = [index for index, bin_ in enumerate(bins) if bin_.kind == "range"]
    for index, bin_ in enumerate(bins):
        low, high = bin_.low or 0, bin_.high or 0
        if bin_.kind == "range" and is_integer:
            is_last = index == ranges[-1]
            yield math.ceil(low), math.floor(high) if is_last else math.ceil(high) - 1
        else:
            yield low, high


def _marked(ends: Sequence[tuple[float, float]], low: str, high: str) -> tuple[int, int]:
    """The bins at the ends of what is asked for."""
    last = len(ends) - 1
    start = next((at for at, (_, top) in enumerate(ends) if top >= _at(low)), last) if low else 0
    end = last
    if high:
        end = next((at for at in range(last, -1, -1) if ends[at][0] <= _at(high)), 0)
    return start, max(start, end)


def _at(text: str) -> float:
    """A number, or a moment's seconds."""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return 0.0


def _zone(facet: Facet) -> str:
    return "UTC" if facet.scale == "time" else ""


def _said(value: float, facet: Facet) -> str:
    if facet.scale == "time":
        return datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    if float(value).is_integer():
        return str(int(value))
    return f"{value:.6g}"


def _bars(counts: Sequence[int], most: int) -> str:
    """A path of lines that stand on the plot's floor: the style makes bars of them."""
    scale = HEIGHT / math.log1p(most) if most else 0
    parts = []
    for index, count in enumerate(counts):
        if count > 0:
            height = max(1.0, math.log1p(count) * scale)
            parts.append(f"M{index}.5 {HEIGHT}v-{height:.1f}")
    return "".join(parts)


def _plot_label(
    facet: Facet, ends: Sequence[tuple[float, float]], of_all: Sequence[int], counts: Sequence[int]
) -> str:
    if not ends:
        return f"{facet.name}: no frame has a value"
    most = max(range(len(counts)), key=counts.__getitem__)
    low, high = _said(ends[0][0], facet), _said(ends[-1][1], facet)
    name = f"{facet.name}, {_zone(facet)}" if _zone(facet) else facet.name
    return (
        f"{name}: {low} to {high}; {sum(counts):,} of {sum(of_all):,} frames fulfil the "
        f"other conditions, most of them ({counts[most]:,}) with {_said(ends[most][0], facet)} to "
        f"{_said(ends[most][1], facet)}"
    )
