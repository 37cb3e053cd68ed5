"""Jobs beside each other: the settings in which they differ, and what they measured."""

from collections.abc import Mapping, Sequence
from typing import Any

from api.schemas.comparisons import ComparisonBody
from api.schemas.jobs import JobBody

_OF_ALL = ("kind", "state", "dataset", "split", "backend", "attempt", "seconds")


def comparison(jobs: Sequence[JobBody]) -> ComparisonBody:
    """These jobs beside each other."""
    settings = _beside([job.settings for job in jobs])
    return ComparisonBody(
        jobs=[job.name for job in jobs],
        job={name: [getattr(job, name) for job in jobs] for name in _OF_ALL},
        settings={name: values for name, values in settings.items() if _differ(values)},
        metrics=_beside([_values(job.metrics) for job in jobs]),
    )


def _beside(each: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Values by name, of one job after another; None where one has none."""
    names = dict.fromkeys(name for one in each for name in one)
    return {name: [one.get(name) for one in each] for name in names}


def _differ(values: Sequence[Any]) -> bool:
    return any(value != values[0] for value in values)


def _values(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Those that hold one value."""
    return {name: value for name, value in metrics.items() if not isinstance(value, dict | list)}
