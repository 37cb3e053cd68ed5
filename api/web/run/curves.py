"""The curves of a job by step: numbers for scripts, and points of an SVG without them."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framesift.progress import count_of, number_of

WIDTH, HEIGHT = 600, 140
"""Size of a curve [units of its viewBox]."""

_NAMES = {"loss": "loss", "miou": "mean IoU", "images_per_s": "images a second"}
"""Names of the curves of trainings by their keys in the files' lines; programs name theirs."""

_MOST_DRAWN = 400
_MOST_POINTS = 2_000
_TAIL_BYTES = 4 << 20


@dataclass(frozen=True)
class Curve:
    """A value by step."""

    name: str
    """What it is of."""
    steps: list[int]
    """Those that have a value, as they were logged."""
    values: list[float]
    """The value of each."""

    @property
    def low(self) -> float:
        """The least value."""
        return min(self.values)

    @property
    def high(self) -> float:
        """The greatest value."""
        return max(self.values)

    @property
    def points(self) -> str:
        """x,y of each of some points, as SVG's polyline takes them."""
        low, high, first = self.low, self.high, self.steps[0]
        across, up = (self.steps[-1] - first) or 1, (high - low) or 1.0
        return " ".join(
            f"{WIDTH * (step - first) / across:.1f},{HEIGHT * (high - value) / up:.1f}"
            for step, value in _thinned(
                list(zip(self.steps, self.values, strict=True)), _MOST_DRAWN
            )
        )


def curves_of(paths: Sequence[Path]) -> list[Curve]:
    """The curves in a training's metrics.jsonl and evaluations.jsonl; of large files, the ends'."""
    rows = [row for path in paths for row in _rows(path)]
    curves = []
    for key, name in _NAMES.items():
        points = [
            (step, float(value))
            for row in rows
            if (step := count_of(row, "step")) is not None
            and (value := number_of(row, key)) is not None
        ]
        if points:
            curves.append(Curve(name, [step for step, _ in points], [value for _, value in points]))
    return curves


def program_curves(series: Mapping[str, tuple[list[int], list[float]]]) -> list[Curve]:
    """The curves of steps and values that a user's program logs, by their names.

    One under a key of trainings' lines has the name of theirs.
    """
    return [Curve(_NAMES.get(name, name), *columns) for name, columns in series.items()]


def plots_of(jobs: Mapping[str, Sequence[Curve]]) -> list[dict[str, Any]]:
    """A plot for each kind of curve, with a line for each job that has one, as JSON.

    Args:
        jobs: The curves of each job, by its name.
    """
    curves = {job: {each.name: each for each in drawn} for job, drawn in jobs.items()}
    names = dict.fromkeys(
        (*_NAMES.values(), *(name for drawn in curves.values() for name in drawn))
    )
    return [
        {"name": name, "runs": runs}
        for name in names
        if (runs := [_run(job, each[name]) for job, each in curves.items() if name in each])
    ]


def _run(job: str, curve: Curve) -> dict[str, Any]:
    points = _thinned(list(zip(curve.steps, curve.values, strict=True)), _MOST_POINTS)
    steps, values = ([*column] for column in zip(*points, strict=True))
    return {"job": job, "steps": steps, "values": values}


def _thinned(points: list[tuple[int, float]], most: int) -> list[tuple[int, float]]:
    """The first and the last of many points, and of each stretch its least and its greatest."""
    if len(points) <= most:
        return points
    length = -(-2 * len(points) // most)
    stretches = (points[begin : begin + length] for begin in range(0, len(points), length))
    ends = [sorted((min(stretch, key=_value), max(stretch, key=_value))) for stretch in stretches]
    return [*dict.fromkeys([points[0], *(point for pair in ends for point in pair), points[-1]])]


def _value(point: tuple[int, float]) -> float:
    return point[1]


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    for line in _lines(path):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):  # the line that is being written, or none of ours
            continue
        if isinstance(row, dict):
            yield row


def _lines(path: Path) -> Iterable[str]:
    """The lines of a file's end; none where it is gone."""
    try:
        with path.open("rb") as file:
            begin = max(0, file.seek(0, 2) - _TAIL_BYTES)
            file.seek(begin)
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    return text.splitlines()[1 if begin else 0 :]
