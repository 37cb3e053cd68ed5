"""The drawn frames with tags of every type, and conditions on them answered in plain Python."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from catalog.store import CatalogStore
from catalog.tags.families import write
from query.question.condition import (
    CameraIn,
    Group,
    Has,
    Leaf,
    PixelRange,
    SceneIn,
    ShareRange,
    TagIs,
    TimeRange,
    Without,
    earliest,
    latest,
)
from tests.query import catalogs
from tests.query.catalogs import DrawnFrame, class_names, drawn_frames

PIXELS = 1920 * 1208

TYPES = {
    "visibility": "DOUBLE",
    "lanes": "INTEGER",
    "odometer": "BIGINT",
    "weather": "VARCHAR",
    "is_wet": "BOOLEAN",
    "seen": "TIMESTAMP",
    "near-miss": "INTEGER",
}
"""Tags of the family probe, which every fifth frame lacks."""

_WEATHER = ("rain", "rain  ", "Rain", "100%", "a_b", "it's", "", None, "axb", "100!", "snow", "\\")
_SEEN = datetime(2026, 3, 11, 13, 3, 14)  # noqa: DTZ001

Held = Any
"""A tag's value, or a value that one is compared with."""


@dataclass(frozen=True)
class TaggedFrame:
    """A drawn frame and all that a condition may ask of it; unknown tags are None."""

    drawn: DrawnFrame
    tags: dict[str, Held]

    @property
    def fkey(self) -> str:
        """The catalog's name of it."""
        return self.drawn.fkey


def tagged_frames() -> list[TaggedFrame]:
    """The frames, in order of fkey."""
    frames = []
    for number, drawn in enumerate(sorted(drawn_frames(), key=lambda one: one.fkey)):
        probe: dict[str, Held] = {
            "visibility": None if number % 7 == 3 else [0.1, 0.30000000000000004, -2.5, 1e-7,
                                                        3.0][number % 5] * (1 + number % 2),
            "lanes": None if number % 4 == 2 else number % 6 - 1,
            "odometer": 2**53 + number // 2,
            "weather": _WEATHER[number % len(_WEATHER)],
            "is_wet": [True, False, None][number % 3],
            "seen": _SEEN + timedelta(hours=number // 2, microseconds=[0, 500_000, 7][number % 3]),
            "near-miss": number % 2,
        }  # fmt: skip
        if number % 5 == 4:
            probe = dict.fromkeys(TYPES)
        own: dict[str, Held] = {"scene": drawn.scene, "camera": drawn.camera}
        frames.append(TaggedFrame(drawn, {**drawn.tags, **own, **probe}))
    return frames


def tagged_store(catalogued: Path, folder: Path) -> CatalogStore:
    """A catalog of them."""
    store = catalogs.drawn(catalogued, folder)
    rows = [
        {"fkey": frame.fkey, **{tag: frame.tags[tag] for tag in TYPES}}
        for frame in tagged_frames()
        if frame.tags["odometer"] is not None
    ]
    write(store, "probe", TYPES, pa.Table.from_pylist(rows))
    return store


def holds(condition: Leaf | Group, frame: TaggedFrame) -> bool | None:
    """Return whether a condition holds for a frame; None where a tag is unknown, as in SQL."""
    if isinstance(condition, Group):
        members = [holds(member, frame) for member in condition.of]
        if condition.kind == "all":
            return _opposite(_any([_opposite(member) for member in members]))
        truth = _any(members)
        return _opposite(truth) if condition.kind == "none" else truth
    if isinstance(condition, TagIs):
        return _compared(condition, frame.tags[condition.tag])
    if isinstance(condition, CameraIn | SceneIn):
        return frame.tags[condition.kind] in condition.names
    if isinstance(condition, TimeRange):
        began = datetime.strptime(frame.drawn.scene, "%Y%m%d_%H%M%S")  # noqa: DTZ007
        return (condition.start is None or began >= earliest(condition.start)) and (
            condition.end is None or began <= latest(condition.end)
        )
    titles = {title.lower(): tag for tag, title in class_names().items()}
    pixels = frame.tags[titles.get(condition.tag.lower(), condition.tag.lower())]
    if pixels is None:
        return None
    assert isinstance(pixels, int)
    if isinstance(condition, Has):
        return pixels >= condition.pixels
    if isinstance(condition, Without):
        return pixels < condition.pixels
    assert isinstance(condition, PixelRange | ShareRange)
    value = pixels if isinstance(condition, PixelRange) else pixels / PIXELS
    return (condition.lowest is None or value >= condition.lowest) and (
        condition.highest is None or value <= condition.highest
    )


def _opposite(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def _any(members: list[bool | None]) -> bool | None:
    if True in members:
        return True
    return None if None in members else False


def _compared(condition: TagIs, actual: Held) -> bool | None:
    if condition.op == "is_null":
        return actual is None
    if condition.op == "is_not_null":
        return actual is not None
    if condition.op == "not_known_to_be":
        return _compared(condition.model_copy(update={"op": "="}), actual) is not True
    if actual is None:
        return None
    values = [
        datetime.fromisoformat(str(v)) if isinstance(actual, datetime) else v
        for v in condition.values
    ]
    first = values[0]
    if isinstance(actual, str):
        return _text_compared(condition.op, actual, [str(value) for value in values])
    ways: dict[str, Callable[[], bool]] = {
        "=": lambda: actual == first,
        "!=": lambda: actual != first,
        "<": lambda: actual < first,
        "<=": lambda: actual <= first,
        ">": lambda: actual > first,
        ">=": lambda: actual >= first,
        "between": lambda: first <= actual <= values[1],
        "in": lambda: actual in values,
        "not_in": lambda: actual not in values,
    }
    return ways[condition.op]()


def _text_compared(op: str, text: str, values: list[str]) -> bool:
    if op == "starts_with":
        return text.startswith(values[0])
    if op == "contains":
        return values[0] in text
    if op == "like":
        signs = {"%": ".*", "_": "."}
        pattern = "".join(signs.get(sign, re.escape(sign)) for sign in values[0])
        return re.fullmatch(pattern, text, re.DOTALL) is not None
    equal = text.rstrip(" ") in [value.rstrip(" ") for value in values]
    return not equal if op in ("!=", "not_in") else equal
