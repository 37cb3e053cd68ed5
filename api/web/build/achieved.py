"""A dataset's targets against what it is: a bar for each target."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from api.schemas.datasets import DatasetBody
from api.schemas.unmet import off_by
from api.web.build.in_words import Words
from api.web.moments import duration

_MOST = 60
"""Bars of a group; a match to a dataset compares every class."""

_FIRST = 10
"""Bars that are shown at once; the others are folded."""

_NEAR = 0.01
"""Part of the frames by which a split may miss its target share and be as wanted: splits hold whole
scenes."""


@dataclass(frozen=True)
class Bar:
    """A target, and what was achieved of it."""

    name: str
    """A value, a demand, a split."""
    achieved: float
    """Length of the bar [per cent of the group's width]."""
    target: float | None
    """Place of the target's mark [per cent]; None where there was no target."""
    text: str
    """What was achieved, in words."""
    verdict: str
    """"met", or by how much the target is missed; empty where there was no target."""
    detail: str = ""
    """What else is known, such as the frames that there are to choose from."""

    @property
    def short(self) -> bool:
        """Whether it misses its target."""
        return self.verdict not in ("", MET)

    @property
    def label(self) -> str:
        """The same in words."""
        return ", ".join(filter(None, (self.text, self.verdict, self.detail)))


MET = "met"


@dataclass(frozen=True)
class Group:
    """Bars of one scale."""

    title: str
    """What they show."""
    note: str
    """How near it is as a whole; empty where there is nothing to say."""
    all_bars: tuple[Bar, ...]
    """The bars, the worst misses before the largest targets."""
    more: int = 0
    """Bars left out."""
    met: bool = False
    """Whether it is a target that no value of it misses."""

    @property
    def bars(self) -> tuple[Bar, ...]:
        """The first ones."""
        return self.all_bars[:_FIRST]

    @property
    def rest(self) -> tuple[Bar, ...]:
        """The others."""
        return self.all_bars[_FIRST:]


def groups_of(dataset: DatasetBody, words: Words) -> list[Group]:
    """Everything that was wanted of a dataset beside what was achieved."""
    report, method = dataset.report, dataset.question.get("method") or {}
    strata = _strata(report, method.get("stratify") or (), words)
    return [*_whole(report), *_marginals(report, words), *strata, *_demands(report, words)]


def unmet_of(report: Mapping[str, Any], words: Words) -> list[str]:
    """The targets that a set misses, a sentence each, the worst first."""
    return [_sentence(one, words) for one in sorted(report.get("unmet", ()), key=off_by, reverse=True)]


def _sentence(one: Mapping[str, Any], words: Words) -> str:
    if demand := one.get("demand"):
        name, marginal = words.demand(demand), ""
    else:
        marginal = one["marginal"]
        name = words.target(marginal, one["value"])
    reason = one.get("reason") or f"short by {one['short_by']:,} of {one['wanted']:,} frames"
    return f"{name}: {words.reason(marginal, reason)}"


def strata_of(dataset: DatasetBody, words: Words) -> list[dict[str, Any]]:
    """The strata of the splits: of each its name, and its frames in each split."""
    stratifiers = dataset.question.get("stratify_splits") or ()
    return [
        {"stratum": words.stratum(stratifiers, row["stratum"])}
        | {split: frames for split, frames in row.items() if split != "stratum"}
        for row in dataset.report.get("split_strata") or ()
    ]


def splits_of(dataset: DatasetBody) -> Group:
    """The splits: their shares of the frames, and those that were wanted."""
    target_shares = {name: float(Fraction(share)) for name, share in _shares(dataset).items()}
    bars = []
    for name, frames in dataset.splits.items():
        share = frames / dataset.frames if dataset.frames else 0.0
        target = target_shares.get(name)
        text = f"{frames:,} frames, {_per_cent(share)}"
        if target is None:
            bars.append(Bar(name, 100 * share, None, text, ""))
            continue
        is_near = abs(share - target) <= _NEAR or abs(frames - target * dataset.frames) < 1
        verdict = MET if is_near else f"{100 * abs(share - target):.1f} points " + (
            "too few" if share < target else "too many"
        )
        bars.append(Bar(name, 100 * share, 100 * target, text, verdict, f"target {_per_cent(target)}"))
    return Group("Splits", "", tuple(bars))


def leakage_of(report: Mapping[str, Any]) -> str:
    """The distance between the splits; empty where there is one."""
    leakage = report.get("leakage")
    if not leakage:
        return ""
    gap = leakage["smallest_gap_s"]
    shared = f"Splits share {leakage['shared_scenes']:,} scenes"
    if "shared_drives" in leakage:
        shared += f" and {leakage['shared_drives']:,} drives"
    near = "times are not known"
    if gap is not None:
        near = f"their nearest frames are {duration(gap)} apart"
    return f"{shared}; {near}{'' if leakage['guard'] else ' (guard off)'}."


def _shares(dataset: DatasetBody) -> Mapping[str, str]:
    # A question of someone else's, of whose frames the caller sees some, is not told.
    shares: Mapping[str, str] = dataset.question.get("split") or {}
    return shares


def _whole(report: Mapping[str, Any]) -> Iterator[Group]:
    if "wanted" not in report:
        return
    targets, achieved = report["wanted"], report["achieved"]
    note = f"of {report['candidates']:,} that answer the question" if "candidates" in report else ""
    yield Group("Frames", note, (_counted("frames", targets, achieved, max(targets, achieved)),))


def _marginals(report: Mapping[str, Any], words: Words) -> Iterator[Group]:
    for marginal in report.get("marginals", ()):
        name = marginal["marginal"]
        missed = {one["value"]: one for one in report["unmet"] if one["marginal"] == name}
        values = [row for row in marginal["values"] if row["wanted"] or row["frames"]]
        values.sort(key=lambda row: (-off_by(missed.get(row["value"], {})), -row["wanted"]))
        largest = max((max(row["wanted"], row["achieved"]) for row in values), default=1) or 1
        bars = tuple(
            Bar(
                words.value(name, str(row["value"])), 100 * row["achieved"] / largest, 100 * row["wanted"] / largest,
                _per_cent(row["achieved"]), _verdict(missed.get(row["value"])),
                f"target {_per_cent(row['wanted'])}: {row['frames']:,} of "
                f"{row['available']:,} frames",
            )
            for row in values[:_MOST]
        )  # fmt: skip
        note = (
            f"at most {100 * marginal['largest_difference']:.1f} percentage points off a target; "
            f"{_per_cent(marginal['total_variation'])} of the frames are others than targets want"
        )
        yield Group(words.marginal(str(name)), note, bars, max(0, len(values) - _MOST), met=not missed)


def _strata(
    report: Mapping[str, Any], stratifiers: Sequence[str], words: Words
) -> Iterator[Group]:
    rows = report.get("largest_strata") or ()
    if not rows:
        return
    largest = max(row["available"] for row in rows) or 1
    bars = tuple(
        Bar(
            words.stratum(stratifiers, row["stratum"]), 100 * row["frames"] / largest, 100 * row["available"] / largest,
            f"{row['frames']:,} of {row['available']:,} frames", "",
        )
        for row in rows[:_MOST]
    )  # fmt: skip
    note = "the mark is how many there are"
    yield Group("Strata", note, bars, max(0, report["strata"] - len(bars)))


def _demands(report: Mapping[str, Any], words: Words) -> Iterator[Group]:
    rows = report.get("demands") or ()
    if not rows:
        return
    # An extended dataset had some of the frames before.
    achieved = [row["achieved"] if "achieved" in row else row["had"] + row["added"] for row in rows]
    largest = max(*(row["wanted"] for row in rows), *achieved)
    bars = tuple(
        _counted(words.demand(row["demand"]), row["wanted"], has, largest, row.get("available"))
        for row, has in zip(rows[:_MOST], achieved, strict=False)
    )
    bound = report.get("lower_bound")
    smaller = "addition" if report.get("method") == "extend" else "set"
    note = f"no {smaller} that achieves this is smaller than {bound:,} frames" if bound else ""
    yield Group("Demands", note, bars, max(0, len(rows) - _MOST))


def _counted(
    name: str, target: int, achieved: int, largest: int, available: int | None = None
) -> Bar:
    detail = "" if available is None else f"of {available:,} in the catalog"
    verdict = MET if achieved >= target else f"{target - achieved:,} too few"
    scale = 100 / (largest or 1)
    text = f"{achieved:,} frames, target {target:,}"
    return Bar(name, scale * achieved, scale * target, text, verdict, detail)


def _verdict(miss: Mapping[str, Any] | None) -> str:
    """In words, whether a value of a match misses its target."""
    if miss is None:
        return MET
    return f"{off_by(miss):,} frames " + ("too few" if miss.get("short_by") else "too many")


def _per_cent(share: float) -> str:
    return f"{100 * share:.1f} %"
