"""The curves of a training as points of an SVG: loss, and images a second, by step."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

WIDTH, HEIGHT = 600, 140
"""Size of a curve [units of its viewBox]."""

_MOST_POINTS = 400
_TAIL_BYTES = 4 << 20


@dataclass(frozen=True)
class Curve:
    """A value by step.

    Attributes:
        name: What it is of.
        points: x,y of each point, as SVG's polyline takes them.
        low: The least value.
        high: The greatest one.
        last: The last one.
        first_step: Where it begins.
        last_step: Where it ends.
    """

    name: str
    points: str
    low: float
    high: float
    last: float
    first_step: int
    last_step: int


def curves_of(path: Path) -> list[Curve]:
    """The curves in a training's metrics.jsonl; those of its end where it is large."""
    with path.open("rb") as file:
        file.seek(0, 2)
        begin = max(0, file.tell() - _TAIL_BYTES)
        file.seek(begin)
        text = file.read().decode(errors="replace")
    lines = text.splitlines()[1 if begin else 0 :]
    rows = list(_rows(lines))
    named = (("loss", "loss"), ("images_per_s", "images a second"), ("miou", "mean IoU"))
    return [curve for key, name in named if (curve := _curve(name, key, rows)) is not None]


def _rows(lines: Iterable[str]) -> Iterable[Mapping[str, Any]]:
    for line in lines:
        try:
            row = json.loads(line)
        except ValueError:  # the line that is being written
            continue
        if isinstance(row, dict) and isinstance(row.get("step"), int):
            yield row


def _curve(name: str, key: str, rows: Sequence[Mapping[str, Any]]) -> Curve | None:
    values = [
        (row["step"], float(row[key]))
        for row in rows
        if isinstance(row.get(key), int | float) and isfinite(row[key])
    ]
    if not values:
        return None
    last = values[-1][1]
    every = -(-len(values) // _MOST_POINTS)
    thinned = values[::every]
    (first_step, _), (last_step, _) = values[0], values[-1]
    low, high = min(v for _, v in values), max(v for _, v in values)
    across, up = (last_step - first_step) or 1, (high - low) or 1.0
    points = " ".join(
        f"{WIDTH * (step - first_step) / across:.1f},{HEIGHT * (high - value) / up:.1f}"
        for step, value in thinned
    )
    return Curve(name, points, low, high, last, first_step, last_step)
