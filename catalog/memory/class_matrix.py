"""Every frame's pixels of every class as one array, for what is asked of all classes at once.

SQL takes 60 to 150 ms for what holds of a million frames' 38 columns. This is one pass in blocks
that stay in the cache, compiled by Numba, by a thread for each core: 13 ms of CPU.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass
from functools import cache
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from catalog.lake.connection import LAKE
from catalog.lake.schema import CLASS_PIXELS

_BLOCK = 8_192
_ROWS_AT_ONCE = 122_880


@dataclass(frozen=True)
class ClassMeasures:
    """What is summed over all frames, in the order of the tags.

    Attributes:
        frames: Frames with a pixel of it, int64.
        pixels: Its pixels, int64.
        pixels_of_frames: All pixels of the frames with a pixel of it, int64.
        total: All pixels of all frames.
    """

    frames: npt.NDArray[np.int64]
    pixels: npt.NDArray[np.int64]
    pixels_of_frames: npt.NDArray[np.int64]
    total: int

    def of(self, places: Sequence[int]) -> "ClassMeasures":
        """Those of the tags at some places."""
        chosen = list(places)
        return ClassMeasures(
            self.frames[chosen], self.pixels[chosen], self.pixels_of_frames[chosen], self.total
        )


def class_pixels(
    cursor: duckdb.DuckDBPyConnection, tags: Sequence[str], condition: str = "true"
) -> npt.NDArray[np.int32]:
    """Pixels of classes by frame, int32, shape (tags, frames); 0 where a source lacks the class.

    Args:
        cursor: On the tables of wide_tables.load.
        tags: Integer columns of class_pixels.
        condition: On fkey: of which frames.
    """
    if not tags:
        return np.empty((0, 0), np.int32)
    rows = f"FROM {LAKE}.main.{CLASS_PIXELS} WHERE {condition}"
    row = cursor.execute(f"SELECT count(*) {rows}").fetchone()
    pixels = np.empty((len(tags), row[0] if row else 0), np.int32)
    columns = ", ".join(f'coalesce("{tag}", 0)::INTEGER' for tag in tags)
    start = 0
    for batch in cursor.execute(f"SELECT {columns} {rows}").to_arrow_reader(_ROWS_AT_ONCE):
        stop = start + batch.num_rows
        for place, column in enumerate(batch.columns):
            pixels[place, start:stop] = column.to_numpy(zero_copy_only=False)
        start = stop
    return pixels


class _Part:
    """Pixels of classes of some frames, and the sum of each frame's."""

    def __init__(self, pixels: npt.NDArray[np.int32]) -> None:
        self.pixels = pixels
        self.totals = pixels.sum(axis=0, dtype=np.int32)

    def with_more(self, pixels: npt.NDArray[np.int32]) -> "_Part":
        return _Part(np.concatenate([self.pixels, pixels], axis=1))


class ClassMatrix:
    """Pixels of classes by frame: of a snapshot, and of frames that went and came since.

    Attributes:
        tags: The class tags, and unknown_pixels.
    """

    def __init__(self, tags: Sequence[str], pixels: npt.NDArray[np.int32]) -> None:
        """Hold what was fetched.

        Args:
            tags: Integer columns of class_pixels.
            pixels: What `class_pixels` gives of them.
        """
        self.tags = tuple(tags)
        none = np.empty((len(self.tags), 0), np.int32)
        self._loaded, self._gone, self._come = _Part(pixels), _Part(none), _Part(none)

    def exchanged(self, gone: npt.NDArray[np.int32], come: npt.NDArray[np.int32]) -> "ClassMatrix":
        """This with some frames' pixels taken out and some put in; what was loaded is shared."""
        other = copy(self)
        other._gone, other._come = self._gone.with_more(gone), self._come.with_more(come)
        return other

    @staticmethod
    def bytes_for(tags: int, frames: int) -> int:
        """Memory that the matrix of so many tags and frames takes [bytes]."""
        return 4 * (tags + 1) * frames

    def measures(self, threads: int) -> ClassMeasures:
        """The sums over all frames, by so many threads."""
        measure, parts = _kernel(), ((1, self._loaded), (-1, self._gone), (1, self._come))
        results = np.zeros((threads, 3, len(self.tags)), np.int64)

        def part(number: int) -> None:
            for sign, held in parts:
                frames = len(held.totals)
                start, stop = frames * number // threads, frames * (number + 1) // threads
                found = np.zeros_like(results[number])
                measure(held.pixels, held.totals, start, stop, found)
                results[number] += sign * found

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(part, range(threads)))
        present, pixels, pixels_of_frames = results.sum(axis=0)
        total = sum(sign * int(held.totals.sum(dtype=np.int64)) for sign, held in parts)
        return ClassMeasures(present, pixels, pixels_of_frames, total)


@cache
def _kernel() -> Any:
    """The compiled loop; Numba is imported by whoever measures only."""
    import numba as nb

    @nb.njit(nogil=True, cache=True)
    def measure(pixels: Any, totals: Any, start: int, stop: int, out: Any) -> None:
        none = np.int32(0)
        for block in range(start, stop, _BLOCK):
            end = min(block + _BLOCK, stop)
            of_block = totals[block:end]
            for tag in range(pixels.shape[0]):
                row = pixels[tag, block:end]  # a slice: the compiler makes vectors of it
                frames, summed, of_frames = np.int64(0), np.int64(0), np.int64(0)
                for place in range(len(row)):
                    value = row[place]
                    summed += value
                    frames += value > 0
                    of_frames += of_block[place] if value > 0 else none
                out[0, tag] += frames
                out[1, tag] += summed
                out[2, tag] += of_frames

    return measure
