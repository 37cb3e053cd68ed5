"""Amounts of resources: 500m, 2, 1Gi, 4e3."""

import re
from fractions import Fraction

_UNITS = {"": Fraction(1), "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000)}
_UNITS |= {unit: Fraction(1000 ** (power + 1)) for power, unit in enumerate("kMGTPE")}
_UNITS |= {f"{unit}i": Fraction(1024 ** (power + 1)) for power, unit in enumerate("KMGTPE")}
_QUANTITY = re.compile(r"([+-]?[0-9]+(?:\.[0-9]*)?|[+-]?\.[0-9]+)(?:[eE]([+-]?[0-9]+)|([a-zA-Z]*))")


def amount(quantity: object) -> Fraction:
    """The number that a quantity is.

    Raises:
        ValueError: It is none.
    """
    parts = _QUANTITY.fullmatch(str(quantity))
    if parts is None or (parts[3] or "") not in _UNITS:
        raise ValueError(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?"
            "[0-9]*)$'"
        )
    power = Fraction(10) ** int(parts[2]) if parts[2] else _UNITS[parts[3] or ""]
    return Fraction(parts[1]) * power


def total(lists: list[dict[str, object]]) -> dict[str, Fraction]:
    """The sum of several lists of resources."""
    sums: dict[str, Fraction] = {}
    for each in lists:
        for name, quantity in each.items():
            sums[name] = sums.get(name, Fraction(0)) + amount(quantity)
    return sums


def pod_requests(spec: dict[str, object]) -> dict[str, Fraction]:
    """What a pod asks a node for: the sum of its containers, at least each initial one."""
    return _of_pod(spec, "requests")


def pod_limits(spec: dict[str, object]) -> dict[str, Fraction]:
    """The limits of all containers together."""
    return _of_pod(spec, "limits")


def _of_pod(spec: dict[str, object], which: str) -> dict[str, Fraction]:
    def of(containers: object) -> list[dict[str, object]]:
        assert isinstance(containers, list)
        return [each.get("resources", {}).get(which, {}) for each in containers]

    sums = total(of(spec["containers"]))
    for first in of(spec.get("initContainers", [])):
        for name, quantity in first.items():
            sums[name] = max(sums.get(name, Fraction(0)), amount(quantity))
    return sums


def shown(value: Fraction) -> str:
    """As messages write it."""
    if value.denominator != 1:
        return f"{int(value * 1000)}m"
    number = int(value)
    for power, unit in reversed(list(enumerate("KMGTPE", 1))):
        if number and number % 1024**power == 0:
            return f"{number // 1024**power}{unit}i"
    return str(number)
