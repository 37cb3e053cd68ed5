"""A question, built from keywords."""

from collections.abc import Mapping, Sequence
from typing import Any

PixelRange = tuple[int | None, int | None] | int
"""Lowest and highest pixels, None for an open end; one number means exactly that many."""

ShareRange = tuple[float | None, float | None]
"""Lowest and highest share of a frame's pixels, 0 to 1, None for an open end."""

Names = str | Sequence[str]


def question_of(
    *,
    where: str | None = None,
    camera: Names = (),
    scene: Names = (),
    has: Names = (),
    without: Names = (),
    share: Mapping[str, ShareRange] | None = None,
    time: tuple[str | None, str | None] | None = None,
    condition: Mapping[str, Any] | None = None,
    order: Names = (),
    limit: int | None = None,
    sample: int | None = None,
    seed: int = 0,
    **ranges: PixelRange,
) -> dict[str, Any]:
    """A question as the server takes it; `Client.select` says what the keywords mean."""
    return {
        "ranges": [_range(tag, value) for tag, value in ranges.items()],
        "where": where,
        "cameras": names_of(camera),
        "scenes": names_of(scene),
        "order": names_of(order),
        "limit": limit,
        "sample": sample,
        "seed": seed,
        "condition": _all(
            [
                *({"kind": "has", "tag": name} for name in names_of(has)),
                *({"kind": "without", "tag": name} for name in names_of(without)),
                *(
                    {"kind": "share", "tag": name, "lowest": low, "highest": high}
                    for name, (low, high) in (share or {}).items()
                ),
                *([] if time is None else [_time(*time)]),
                *([] if condition is None else [condition]),
            ]
        ),
    }


def names_of(value: Names) -> list[str]:
    """One name or several, as a list."""
    return [value] if isinstance(value, str) else list(value)


def _time(start: str | None, end: str | None) -> Mapping[str, Any]:
    return {"kind": "time", "start": start, "end": end}


def _all(conditions: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    return {"kind": "all", "of": conditions}


def _range(tag: str, value: PixelRange) -> dict[str, Any]:
    lowest, highest = (value, value) if isinstance(value, int) else value
    return {"tag": tag, "lowest": lowest, "highest": highest}
