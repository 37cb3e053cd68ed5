"""Metrics of a job: programs of users name them as they like, and write anything under any name."""

from collections.abc import Mapping
from typing import Any

_MOST = 1e300
"""Numbers above are no measurement: they overflow where a program computes with them."""


def number_of(metrics: Mapping[str, Any], name: str) -> int | float | None:
    """The metric of that name; None where it is missing, or no number to compute with."""
    value = metrics.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) <= _MOST else None  # nor is NaN


def count_of(metrics: Mapping[str, Any], name: str) -> int | None:
    """A metric that counts; None where it is missing, or no count."""
    value = number_of(metrics, name)
    return int(value) if value is not None and 0 <= value < 1 << 63 else None


def list_of(metrics: Mapping[str, Any], name: str) -> list[Any]:
    """A metric that is a list; empty where it is missing, or none."""
    value = metrics.get(name)
    return value if isinstance(value, list) else []
