"""The table of a scaling study: medians by number of ranks, speed-up, efficiency, exchange."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.jobs.scaling.runs import Run


@dataclass(frozen=True)
class Row:
    """What the trainings of one number of ranks measured."""

    ranks: int
    runs: int
    seconds: float
    """The median from start to end [s]."""
    images_per_s: float
    """The median of all ranks together."""
    speedup: float
    """By images a second, against the fewest ranks."""
    efficiency: float
    """Share of what as many times the fewest ranks would make of them, without loss."""
    step_ms: float
    """A step, by the median of images a second [ms]."""
    compute_ms: float
    """A step of the fewest ranks: what the others would need without exchange and waiting [ms]."""
    seconds_to_target: float | None
    """The median until the target was reached [s]; None where half or more did not reach it, or
    none was asked for.
    """
    reached: int
    """Trainings that reached it."""

    @property
    def exchange_ms(self) -> float:
        """What a step takes beyond computing: exchange, waiting, shared machines [ms]."""
        return max(0.0, self.step_ms - self.compute_ms)


def rows_of(runs: Iterable[Run]) -> list[Row]:
    """A row for each number of ranks, the fewest first."""
    by_ranks: dict[int, list[Run]] = {}
    for run in runs:
        by_ranks.setdefault(run.ranks, []).append(run)
    rows: list[Row] = []
    for ranks in sorted(by_ranks):
        of_ranks = by_ranks[ranks]
        images_per_s = statistics.median(run.images_per_s for run in of_ranks)
        step_ms = ranks * of_ranks[0].batch_size / images_per_s * 1e3
        fewest = rows[0] if rows else None
        speedup = images_per_s / fewest.images_per_s if fewest else 1.0
        reached = [run for run in of_ranks if run.seconds_to_target is not None]
        rows.append(
            Row(
                ranks,
                len(of_ranks),
                statistics.median(run.seconds for run in of_ranks),
                images_per_s,
                speedup,
                speedup / (ranks / fewest.ranks) if fewest else 1.0,
                step_ms,
                fewest.step_ms if fewest else step_ms,
                _median_time(of_ranks),
                len(reached),
            )
        )
    return rows


def tables(rows: Sequence[Row], runs: Sequence[Run], target: float | None) -> list[dict[str, Any]]:
    """The tables of the study's job: medians, and each training."""
    columns = [
        "ranks", "runs", "seconds", "images/s", "speed-up", "efficiency", "step [ms]",
        "computing [ms]", "exchange and waiting [ms]",
    ]  # fmt: skip
    cells = [
        [
            row.ranks, row.runs, f"{row.seconds:.1f}", f"{row.images_per_s:.1f}",
            f"{row.speedup:.2f}x", f"{row.efficiency:.0%}", f"{row.step_ms:.1f}",
            f"{row.compute_ms:.1f}", f"{row.exchange_ms:.1f}",
        ]
        for row in rows
    ]  # fmt: skip
    if target is not None:
        columns += [f"seconds to mIoU {target:g}", "reached"]
        for row, of_row in zip(rows, cells, strict=True):
            time = row.seconds_to_target
            of_row += ["" if time is None else f"{time:.1f}", f"{row.reached} of {row.runs}"]
    each = [[run.job, run.ranks, f"{run.seconds:.1f}", f"{run.images_per_s:.1f}"] for run in runs]
    return [
        {"title": "Medians by ranks", "columns": columns, "rows": cells},
        {"title": "Trainings", "columns": ["job", "ranks", "seconds", "images/s"], "rows": each},
    ]


def figures(rows: Sequence[Row]) -> dict[str, Any]:
    """One value each, for `framesift jobs compare`: of each number of ranks."""
    named: dict[str, Any] = {}
    for row in rows:
        named[f"images_per_s_{row.ranks}_ranks"] = round(row.images_per_s, 2)
        named[f"seconds_{row.ranks}_ranks"] = round(row.seconds, 2)
        if row is not rows[0]:
            named[f"speedup_{row.ranks}_ranks"] = round(row.speedup, 3)
            named[f"efficiency_{row.ranks}_ranks"] = round(row.efficiency, 4)
            named[f"exchange_ms_{row.ranks}_ranks"] = round(row.exchange_ms, 2)
        if row.seconds_to_target is not None:
            named[f"seconds_to_target_{row.ranks}_ranks"] = round(row.seconds_to_target, 2)
    return named


def _median_time(runs: Sequence[Run]) -> float | None:
    """The median time to the target, of which a run that never reached it has an endless one."""
    endless = float("inf")
    median = statistics.median(
        endless if run.seconds_to_target is None else run.seconds_to_target for run in runs
    )
    return None if median == endless else median
