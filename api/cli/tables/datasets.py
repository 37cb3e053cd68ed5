"""A dataset, and the difference of two, for a person."""

from collections.abc import Mapping
from typing import Any

from api.cli.tables.table import emit_table
from api.cli.target import Record
from api.cli.terminal import duration, stdout
from api.schemas.unmet import MOST_UNMET, unmet_sentences
from catalog.text.visible_text import visible

_MOST_ROWS = 40
_MOST_FRAMES = 10


def show_dataset(dataset: Record) -> None:
    """Print what it is, what was achieved of what was wanted, and what it lacks."""
    stdout.print(
        f"dataset {dataset['name']} version {dataset['version']}: {dataset['frames']:,} frames "
        f"({splits_text(dataset)}), snapshot {dataset['snapshot']}"
    )
    if dataset["description"]:
        stdout.print(visible(dataset["description"]))
    stdout.print(f"id {dataset['id']}")
    for parent in dataset["parents"]:
        stdout.print(f"made from {parent['name']}")
    if dataset["models"]:
        stdout.print(f"models {', '.join(dataset['models'])}")
    stdout.print(f"manifest {dataset['manifest']}")
    for row in dataset.get("layouts") or ():
        stdout.print(
            visible(f"layout {row['layout'] or 'without a name'}: {', '.join(row['sources'])}")
        )
    absent = [tag for tag, pixels in dataset["class_pixels"].items() if not pixels]
    if absent:
        stdout.print(f"classes without a pixel in it: {', '.join(absent)}")
    if "left_out" in dataset["report"]:
        stdout.print(visible(dataset["report"]["left_out"]))
    _show_report(dataset["report"])


def splits_text(dataset: Record) -> str:
    """The splits and their frames."""
    return ", ".join(f"{name} {count:,}" for name, count in dataset["splits"].items())


def _show_report(report: Mapping[str, Any]) -> None:
    if "marginals" in report:
        met = "met" if report["tolerance_met"] else "not met"
        stdout.print(f"tolerance {report['tolerance']:g} {met}")
        for marginal in report["marginals"]:
            _show_marginal(marginal)
    for rows in (report.get("largest_strata"), report.get("split_strata")):
        if rows:
            emit_table(tuple(rows[0]), [tuple(row.values()) for row in rows[:_MOST_ROWS]])
    if "demands" in report:
        columns = tuple(report["demands"][0])
        emit_table(columns, [tuple(row.values()) for row in report["demands"][:_MOST_ROWS]])
        stdout.print(f"no set that achieves this is smaller than {report['lower_bound']:,} frames")
    if "pool" in report:
        stdout.print(
            f"{report['achieved']:,} of the {report['pool']:,} most uncertain of "
            f"{report['candidates']:,} frames, of {report['scenes']:,} scenes; mean score "
            f"{report['scores'].get('mean', 0):.4g}, of all frames "
            f"{report['scores_of_all'].get('mean', 0):.4g}"
        )
    unmet = unmet_sentences(report)
    for sentence in unmet[:MOST_UNMET]:
        stdout.print(f"not met: {sentence}")
    if len(unmet) > MOST_UNMET:
        stdout.print(f"not met: {len(unmet) - MOST_UNMET:,} more, each off by no more (--json)")
    if "leakage" in report:
        _show_leakage(report["leakage"])


def _show_marginal(marginal: Mapping[str, Any]) -> None:
    keys = ("value", "wanted", "achieved", "frames", "available")
    emit_table(
        keys,
        [
            tuple(row[key] for key in keys)
            for row in marginal["values"][:_MOST_ROWS]
            if row["wanted"] or row["frames"]
        ],
        title=f"{marginal['marginal']}: largest difference "
        f"{marginal['largest_difference']:.4f}, total variation "
        f"{marginal['total_variation']:.4f}, Jensen-Shannon {marginal['jensen_shannon']:.4f}",
    )


def _show_leakage(leakage: Mapping[str, Any]) -> None:
    gap = leakage["smallest_gap_s"]
    nearest = (
        "times are not known" if gap is None else f"their nearest frames are {duration(gap)} apart"
    )
    shared = f"{leakage['shared_scenes']:,} scenes"
    if "shared_drives" in leakage:
        shared += f", {leakage['shared_drives']:,} drives"
    state = "" if leakage["guard"] else " (guard off)"
    stdout.print(f"splits share {shared}; {nearest}{state}")


def show_diff(diff: Mapping[str, Any]) -> None:
    """Print what changed between two datasets: pipeline.datasets.diff.diff_to_json."""
    stdout.print(
        f"{diff['before']} {diff['frames_before']:,} frames, {diff['after']} "
        f"{diff['frames_after']:,}: {diff['frames_added']:,} added, "
        f"{diff['frames_removed']:,} removed, {diff['frames_moved']:,} moved to another split"
    )
    for sign, kind in (("+", "added"), ("-", "removed")):
        for fkey in diff[kind][:_MOST_FRAMES]:
            stdout.print(visible(f"{sign} {fkey}"))
        more = diff[f"frames_{kind}"] - _MOST_FRAMES
        if more > 0:
            stdout.print(f"{sign} ... {more:,} more (--json lists all)")
    for frame in diff["moved"][:_MOST_FRAMES]:
        stdout.print(visible(f"~ {frame['fkey']}: {frame['before']} to {frame['after']}"))
    frames = {change["value"]: change for change in diff["class_frames"]["values"]}
    emit_table(
        ("class", "pixels % before", "after", "frames % before", "after"),
        [
            (
                change["value"],
                *(_per_cent(change[side], 3) for side in ("before", "after")),
                *(_per_cent(frames[change["value"]][side], 2) for side in ("before", "after")),
            )
            for change in diff["class_pixels"]["values"]
            if frames[change["value"]]["before"] or frames[change["value"]]["after"]
        ],
    )
    for side in ("before", "after"):
        absent = [name for name, change in frames.items() if change[side] is None]
        if absent:
            stdout.print(
                visible(
                    f"not compared, as the labels of {diff[side]} have no such class: "
                    f"{', '.join(absent)}"
                )
            )
    measures = ("total_variation", "jensen_shannon", "largest_difference")
    emit_table(
        ("distance of", "total variation", "Jensen-Shannon", "largest difference"),
        [
            (name, *(_distance(diff[key]["distance"][measure]) for measure in measures))
            for name, key in (
                ("class pixels", "class_pixels"),
                ("frames with a class", "class_frames"),
                ("cameras", "cameras"),
                ("scenes", "scenes"),
            )
        ],
    )


def _per_cent(share: float | None, places: int) -> str:
    return "-" if share is None else f"{100 * share:.{places}f}"


def _distance(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
