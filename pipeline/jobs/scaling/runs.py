"""The trainings of a study, and the file that keeps what each measured: study.json of its job."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pipeline.jobs.request import read_json, write_json
from pipeline.runs.scaling_order import Scaling

STUDY = "study.json"


@dataclass(frozen=True)
class Run:
    """One training of a study that is done."""

    ranks: int
    repeat: int
    """From 1."""
    job: str
    seconds: float
    """From its start to its end [s]."""
    images_per_s: float
    """Of all ranks: the median over its log lines after the first, which holds the start."""
    batch_size: int
    """Of each rank."""
    miou: float | None = None
    """The best that it reached; None where it was not scored."""
    seconds_to_target: float | None = None
    """Until the target was reached [s]; None where it was not, or none was asked for."""


def planned_runs(order: Scaling, study: str) -> list[tuple[int, int, str]]:
    """Ranks, repeat and job of each training in their order: all numbers of ranks, then again.

    What a cluster does meanwhile so meets all numbers of ranks alike.

    Args:
        order: The study's.
        study: Name of its job, with which the names of the trainings begin.
    """
    return [
        (ranks, repeat, f"{study}-r{ranks}-{repeat}")
        for repeat in range(1, order.repeats + 1)
        for ranks in order.ranks
    ]


def kept_runs(folder: Path) -> dict[str, Run]:
    """The trainings that are done, by their jobs' names."""
    rows = read_json(folder / STUDY).get("runs")
    return {row["job"]: Run(**row) for row in rows} if isinstance(rows, list) else {}


def keep_runs(folder: Path, runs: Mapping[str, Run]) -> None:
    """Keep them.

    Raises:
        StorageError: The disk refuses.
    """
    write_json(folder / STUDY, {"runs": [asdict(run) for run in runs.values()]}, fsync=True)


def measured_run(
    ranks: int,
    repeat: int,
    job: str,
    seconds: float,
    settings: Mapping[str, Any],
    metrics: Mapping[str, Any],
    lines: Sequence[Mapping[str, Any]],
) -> Run:
    """What a training that is done measured.

    Args:
        ranks: Its workers.
        repeat: From 1.
        job: Its name.
        seconds: From its start to its end.
        settings: As its record shows them.
        metrics: As its record has them.
        lines: Of its metrics.jsonl.
    """
    later = [line["images_per_s"] for line in lines if line["step"] > 1]
    rates = sorted(later or [line["images_per_s"] for line in lines])
    middle = len(rates) // 2
    median = (rates[middle] + rates[~middle]) / 2
    return Run(
        ranks,
        repeat,
        job,
        seconds,
        median,
        int(settings.get("batch_size", 4)),
        metrics.get("best_miou"),
        metrics.get("seconds_to_target"),
    )
