"""Segments of panoptic labels: a pixel is a segment's id, and a JSON file names its category.

A pixel of id R + 256 G + 65536 B; id 0 is void, which is of no segment. One JSON has many labels:

    {"annotations": [{"file_name": "0001.png", "segments_info": [{"id": 1, "category_id": 7}]}]}

Source: cocodataset.org/#format-data, "Panoptic Segmentation"; panopticapi, README.md.
"""

import json
import threading
from array import array
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from catalog.errors import BadFile
from ingest.labels.class_list import UNKNOWN_CLASS
from ingest.labels.encoding import COLOURS, SAMPLES
from ingest.labels.other_content import not_json

_Number = TypeVar("_Number", int, npt.NDArray[np.int64])

_Row = tuple["array[int]", "array[int]"] | str
"""Ids and categories of a label's segments; or what is wrong with them."""


VOID = -COLOURS
"""Key of a pixel of no segment."""


@dataclass(frozen=True, slots=True)
class Segments:
    """Segments of one label."""

    category_of: Mapping[int, int]
    """Category of each segment's id."""
    problem: str = ""
    """Why nobody knows them; empty where they are known."""

    @property
    def text(self) -> str:
        """Segments that are known, as `of_text` reads them.

        >>> Segments({1: 7, 70000: 3}).text
        '1:7 70000:3'
        """
        return " ".join(f"{number}:{category}" for number, category in self.category_of.items())

    @classmethod
    def of_text(cls, text: str, problem: str = "") -> "Segments":
        """The segments of a text.

        Raises:
            BadFile: It is none.
        """
        try:
            pairs = (pair.split(":") for pair in text.split())
            segments = {int(number): int(category) for number, category in pairs}
        except ValueError as error:
            raise BadFile(f"segments are damaged: {text[:60]!a}") from error
        if not all(0 < n < COLOURS and 0 <= of < SAMPLES for n, of in segments.items()):
            raise BadFile(f"segments are damaged: {text[:60]!a}")
        return cls(segments, problem)

    def keys(self, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The category of each id; VOID of void, and minus the id where it is no segment.

        >>> Segments({5: 7}).keys(np.array([5, 6, 0])).tolist()
        [7, -6, -16777216]
        """
        values, positions = np.unique(ids, return_inverse=True)
        keys = [self.category_of.get(value, -value) if value else VOID for value in values.tolist()]
        of_pixels: npt.NDArray[np.int64] = np.array(keys, np.int64)[positions].reshape(ids.shape)
        return of_pixels


class SegmentFile:
    """The segments of every label that a JSON file has."""

    def __init__(self, content: bytes) -> None:
        """Read the file's content; what is not needed is dropped while it is parsed.

        Raises:
            BadFile: It is no JSON, or has no annotations.
        """
        try:
            document = json.loads(content, object_pairs_hook=_compact)
        except (ValueError, RecursionError) as error:
            raise BadFile(not_json(content, error)) from error
        rows = document.get("annotations") if isinstance(document, dict) else None
        if not isinstance(rows, list):
            raise BadFile("has no list of annotations")
        self._rows: dict[str, _Row] = {}
        for row in rows:
            if not isinstance(row, _Annotation):
                raise BadFile("annotations: expected objects with file_name and segments_info")
            is_first = row.file_name not in self._rows
            self._rows[row.file_name] = row.segments if is_first else "is listed twice"

    def of(self, label: str) -> Segments:
        """The segments of a label, whose key is its file_name, or ends in it after a slash."""
        parts = label.split("/")
        for begin in range(len(parts)):
            name = "/".join(parts[begin:])
            row = self._rows.get(name)
            if isinstance(row, str):
                return Segments({}, f"{name} {row}")
            if row is not None:
                return Segments(dict(zip(*row, strict=True)))
        return Segments({}, f"has no annotation of {parts[-1]}")


@dataclass(frozen=True, slots=True)
class _Annotation:
    file_name: str
    segments: _Row


def _compact(pairs: list[tuple[str, Any]]) -> Any:
    """What is needed of a JSON object: None of most, (id, category) of a segment."""
    row = dict(pairs)
    if "annotations" in row:
        return row
    if "segments_info" in row:
        name = row.get("file_name")
        return _Annotation(name, _segments(row["segments_info"])) if isinstance(name, str) else None
    return (row.get("id"), row["category_id"]) if "category_id" in row else None


def _segments(rows: Any) -> _Row:
    ids, categories = array("I"), array("I")
    for row in rows if isinstance(rows, list) else [None]:
        if not isinstance(row, tuple):
            return "has segments_info that is no list of objects with id and category_id"
        for value, what, begin, end in (
            (row[0], "id", 1, COLOURS), (row[1], "category_id", 0, SAMPLES),
        ):  # fmt: skip
            if type(value) is not int or not begin <= value < end:
                return (
                    f"has a segment with {what} {ascii(value)[:60]}; expected a whole number from "
                    f"{begin} to {end - 1:,}"
                )
        ids.append(row[0])
        categories.append(row[1])
    if len(set(ids)) < len(ids):
        twice = next(value for value in ids if ids.count(value) > 1)
        return f"has segment {twice} twice"
    return ids, categories


def turned(values: _Number) -> _Number:
    """Segment ids of colours 0xRRGGBB, and colours of segment ids.

    >>> turned(0x010203) == 1 + 256 * 2 + 65536 * 3
    True
    """
    return values >> 16 | values & 0xFF00 | (values & 0xFF) << 16


class _OfThread(threading.local):
    """A thread's table: 16 MiB that are filled once."""

    def __init__(self) -> None:
        self.table = np.full(COLOURS, UNKNOWN_CLASS, np.uint8)


_of_thread = _OfThread()


@contextmanager
def class_of_colour(
    segments: Segments, class_of_category: npt.NDArray[np.uint8], void: int
) -> Iterator[npt.NDArray[np.uint8]]:
    """(2**24,) uint8 [class id] by a pixel's colour 0xRRGGBB, for the block and its thread alone.

    Args:
        class_of_category: (2**16,) uint8 [class id].
        void: Class id of pixels of no segment.
    """
    table = _of_thread.table
    colours = [0, *(turned(number) for number in segments.category_of)]
    table[colours] = [void, *class_of_category[[*segments.category_of.values()]].tolist()]
    try:
        yield table
    finally:
        table[colours] = UNKNOWN_CLASS
