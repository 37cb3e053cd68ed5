"""Pixels per class of an RGB label, counted while it is inflated, without writing its areas.

`ingest.labels.deflate_symbols` says where most areas end; between them rows are compared eight
bytes at a time. In a row with PNG filter None pixels that equal those before them are a run of one
colour; in one with filter Sub zeros are, and any other pixel is the difference to the colour
before.

The stream's checksum is computed from the same runs, in closed form: a stretch that was counted
wrongly would not fit it. What is not counted here (damage, other filters) `ingest.labels.inflate`
and `ingest.labels.run_kernel` count or refuse.

Compiled by Numba without Python's lock, so that threads count in parallel; the machine code is kept
in Numba's cache.

Source: PNG specification, section 9.2; RFC 1950 for zlib's header and Adler-32.
"""

import threading
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ingest.labels.deflate_symbols import (
    AT,
    BIT,
    ENDED,
    HISTORY,
    MODE,
    MOVED,
    MOVED_BY,
    OPEN_END,
    ORIGIN,
    OVERHANG,
    PADDING,
    PIXEL,
    STATE,
    STRETCHES,
    UNWRITTEN,
    begin,
    decode,
    move_rest,
    new_tables,
    write_stretch,
)
from ingest.labels.words import (
    checksum_of,
    compiled,
    first_byte,
    load32,
    load64,
    move,
    signed,
    swapped,
)

_ADLER = np.uint64(65521)
_NEVER = 1 << 62
_HIGH = np.uint32(0x80808080)
_RGB = np.uint32(0xFFFFFF)
_THIRD = (1 << 32) // PIXEL + 1
"""Times a number below 2**31, without its lowest 32 bits: a third of it."""

ONES, SUMS, MARK = range(3)
"""Indices in a count's uint64 state: Adler-32's two sums, and the digest."""


@compiled()
def _mixed(digest: Any, colour: Any, pixels: int) -> Any:
    """The digest with one more run of pixels, as `ingest.labels.run_kernel` has it."""
    run = np.uint64(colour) << np.uint64(32) | np.uint64(pixels)
    mixed = (digest ^ run) * np.uint64(0x9E3779B97F4A7C15)
    return mixed ^ (mixed >> np.uint64(32))


@compiled()
def _plus(pixel: Any, residue: Any) -> Any:
    """Both added byte by byte, modulo 256."""
    return ((pixel & ~_HIGH) + (residue & ~_HIGH)) ^ ((pixel ^ residue) & _HIGH)


@compiled()
def _colour(pixel: Any) -> Any:
    """A pixel whose lowest byte is red, as 0xRRGGBB."""
    return swapped(np.uint32(pixel)) >> np.uint32(8)


@compiled()
def _sums(pixel: Any) -> Any:
    """A pixel's three bytes added up; and each times its place, 0 to 2."""
    green = pixel >> np.uint32(8) & np.uint32(255)
    blue = pixel >> np.uint32(16) & np.uint32(255)
    ones = (pixel & np.uint32(255)) + green + blue
    return np.uint64(ones), np.uint64(green + np.uint32(2) * blue)


@compiled()
def _differing(window: Any, at: int) -> Any:
    """The bits of eight bytes that differ from those a pixel before."""
    return load64(window, at) ^ load64(window, at - PIXEL)


@compiled()
def _repeat_end(window: Any, at: int, row_end: int, stretches: Any, stretch: int) -> Any:
    """Where bytes from ``at`` on cease to equal those a pixel before; the stretch that is next.

    Args:
        window: Inflated bytes; of a stretch only the first eight and the last four.
        at: Where to begin.
        row_end: Place behind the row's last byte; this is returned if all are equal.
        stretches: Starts and ends; one that never comes is last.
        stretch: One that no other ends before that ends behind ``at``.
    """
    starts, ends = stretches
    while at < row_end:
        # Unsigned, so that Numba does not look for a negative one.
        number = np.uint64(stretch)
        if ends[number] <= at:
            stretch += 1
            continue
        if starts[number] <= at:
            at = ends[number]
            continue
        differing = _differing(window, at)
        at += first_byte(differing)
        if differing != 0:
            if at < starts[number]:
                break
            continue
        # What a row has of the row above is written: areas, and no stretches.
        until = min(starts[number], row_end) - 32
        while at <= until:
            first, second = _differing(window, at), _differing(window, at + 8)
            third, fourth = _differing(window, at + 16), _differing(window, at + 24)
            if (first | second) | (third | fourth) != 0:
                break
            at += 32
    return min(at, row_end), stretch


@compiled(forceinline=True)
def _plain_row(
    window: Any, at: int, row_end: int, stretches: Any, stretch: int, class_of: Any, counts: Any,
    mark: Any,
) -> Any:  # fmt: skip
    """Count a row with filter None; (stretch that is next, its sums for Adler-32, digest).

    ``at`` is where its pixels begin; other arguments are those of `_repeat_end` and `count_rgb`.
    """
    total = weighted = np.uint64(0)
    while at < row_end:
        pixel = load32(window, at) & _RGB
        until, stretch = _repeat_end(window, at + PIXEL, row_end, stretches, stretch)
        pixels = ((until - at) * _THIRD) >> 32
        ones, weighted_ones = _sums(pixel)
        n, weight = np.uint64(pixels), np.uint64(row_end - at)
        total += n * ones
        steps = np.uint64(pixels * (pixels - 1) // 2 * PIXEL)
        weighted += ones * (n * weight - steps) - n * weighted_ones
        at += pixels * PIXEL
        colour = _colour(pixel)
        counts[class_of[colour]] += pixels
        mark = _mixed(mark, colour, pixels)
    return stretch, total, weighted, mark


@compiled(forceinline=True)
def _sub_row(
    window: Any, at: int, row_end: int, stretches: Any, stretch: int, class_of: Any, counts: Any,
    mark: Any,
) -> Any:  # fmt: skip
    """Count a row with filter Sub, as `_plain_row` does."""
    starts, ends = stretches
    total = weighted = np.uint64(0)
    pixel = np.uint32(0)
    while at < row_end:
        residue = load32(window, at) & _RGB
        pixel = _plus(pixel, residue)
        ones, weighted_ones = _sums(residue)
        total += ones
        weighted += ones * np.uint64(row_end - at) - weighted_ones
        begins = at
        at += PIXEL
        while ends[np.uint64(stretch)] <= at:
            stretch += 1
        number = np.uint64(stretch)
        start = starts[number]
        if np.uint64(start - at - 1) < np.uint64(3) and load32(window, start - PIXEL) & _RGB == 0:
            # Most runs: zeros, then a stretch of such, which another colour's bytes follow.
            until = ends[number]
            following = load64(window, until)
            at = until + first_byte(following)
            if following == 0 or at >= starts[number + np.uint64(1)]:
                at, stretch = _repeat_end(window, until, row_end, stretches, stretch)
            at = min(at, row_end)
        else:
            if start <= at and residue != 0:
                # A difference that repeats: hardly one in a label, so they are just written.
                write_stretch(window, start, ends[number], at, row_end)
            if load32(window, at) & _RGB == 0:
                at, stretch = _repeat_end(window, at + PIXEL, row_end, stretches, stretch)
        pixels = ((at - begins) * _THIRD) >> 32
        at = begins + pixels * PIXEL
        colour = _colour(pixel)
        counts[class_of[colour]] += pixels
        mark = _mixed(mark, colour, pixels)
    return stretch, total, weighted, mark


@compiled()
def _write_begin(window: Any, row: int, stretches: Any, stretch: int) -> None:
    """Write what a row is begun with, where a stretch goes on from the row above."""
    starts, ends = stretches
    start = starts[stretch]
    for offset in range(row, min(row + 8, ends[stretch])):
        window[offset] = window[start - PIXEL + (offset - start) % PIXEL]


@compiled()
def _count_rows(
    window: Any, row: int, last_row: int, stride: int, stretches: Any, stretch: int, class_of: Any,
    counts: Any, sums: Any,
) -> Any:  # fmt: skip
    """Count rows up to ``last_row``; (the place behind them, stretch that is next), or (-1, 0)."""
    starts, ends = stretches
    while row <= last_row:
        while ends[stretch] <= row:
            stretch += 1
        if starts[stretch] < row:
            _write_begin(window, row, stretches, stretch)
        mark = sums[MARK]
        if window[row] == 0:
            stretch, total, weighted, mark = _plain_row(
                window, row + 1, row + stride, stretches, stretch, class_of, counts, mark
            )
        elif window[row] == 1:
            stretch, total, weighted, mark = _sub_row(
                window, row + 1, row + stride, stretches, stretch, class_of, counts, mark
            )
            total += np.uint64(1)
            weighted += np.uint64(stride)
        else:
            return signed(-1), signed(0)
        sums[SUMS] = (sums[SUMS] + sums[ONES] * np.uint64(stride) + weighted % _ADLER) % _ADLER
        sums[ONES] = (sums[ONES] + total) % _ADLER
        sums[MARK] = mark
        row += stride
    return row, stretch


@compiled()
def _move_back(window: Any, keep: int, row: int, stretches: Any, stretch: int, state: Any) -> int:
    """Drop what stands before ``keep``; the stretch that ``stretch`` was.

    What only matches at other distances ask for, and not the rows from ``row`` on, is moved by the
    first of them: most windows have none.
    """
    starts, ends = stretches
    if keep < state[MOVED] + 8:
        move_rest(window, state[AT], state)
    by = keep - ORIGIN
    at = state[AT]
    first = 0
    while first < state[STRETCHES] - 1 and ends[first] <= keep:
        first += 1
    if starts[first] < keep < ends[first]:
        # Of the stretch that is cut a first pixel is written, and it begins behind that.
        _write_begin(window, keep, stretches, first)
        starts[first] = keep + PIXEL
    needed = max(keep, min(row, starts[min(stretch, state[STRETCHES] - 1)]) - 8)
    # Where that is not overwritten before the last match that may ask for it.
    if needed - by + HISTORY + 2 * OVERHANG > keep:
        needed = keep
    move(window, needed - by, needed, at - needed)
    state[MOVED], state[MOVED_BY] = needed - by, by
    remaining = state[STRETCHES] - first
    for number in range(remaining):
        starts[number] = starts[first + number] - by
        ends[number] = ends[first + number] - by
    state[AT] = at - by
    state[STRETCHES] = remaining
    state[UNWRITTEN] = max(0, state[UNWRITTEN] - first)
    state[OPEN_END] -= by
    return max(0, stretch - first)


@compiled()
def _checksum_fits(stream: Any, byte: int, sums: Any) -> Any:
    """Return whether Adler-32 is what stands in the stream."""
    checksum = np.uint64(0)
    for offset in range(4):
        checksum = checksum << np.uint64(8) | np.uint64(stream[byte + offset])
    return checksum == (sums[SUMS] << np.uint64(16) | sums[ONES])


def _compiled(sources: int) -> Any:
    """`count_rgb` with the checksum of the other files that it is compiled from."""

    @compiled(cache=True)
    def count_rgb(
        stream: Any, stream_bytes: int, height: int, width: int, class_of: Any, counts: Any,
        sums: Any, room: Any,
    ) -> Any:  # fmt: skip
        """Add the pixels of an 8-bit RGB image that is not interlaced to ``counts``.

        Args:
            stream: uint8, a zlib stream of filtered rows, PADDING bytes behind.
            stream_bytes: Bytes of the stream, without padding.
            width: Pixels per row, at most WIDEST.
            class_of: (2**24,) uint8 [class id] by colour.
            counts: (256,) int64 [pixels] by class id, added to.
            sums: (3,) uint64, set: Adler-32's sums, the digest of the runs of colours.
            room: Of `_room`.

        Returns:
            Whether they were counted; if not, the stream is damaged, or not for this way.
        """
        window, limit, tables, stretches, state = room
        starts, ends = stretches
        stride = 1 + PIXEL * width
        if sources < 0 or stream_bytes < 6:
            return False
        head = signed(stream[0]) << 8 | signed(stream[1])
        if head & 0x8F20 != 0x0800 or head % 31:
            return False
        begin(state, window, stretches)
        sums[ONES], sums[SUMS] = 1, 0
        sums[MARK] = _mixed(np.uint64(0), np.uint32(height), width)
        row, behind = signed(ORIGIN), ORIGIN + height * stride
        stretch = signed(0)
        while state[MODE] != ENDED:
            # The last stretch may go on.
            stretch = min(stretch, state[STRETCHES] - 1)
            # One byte too many is damage.
            until = min(limit, behind + 1)
            well = decode(stream, stream_bytes - 4, window, until, tables, stretches, state)
            if not well or state[AT] > behind:
                return False
            starts[state[STRETCHES]] = ends[state[STRETCHES]] = _NEVER
            row, stretch = _count_rows(
                window, row, state[AT] - stride, stride, stretches, stretch, class_of, counts, sums
            )
            if row < 0:
                return False
            keep = min(row, state[AT] - HISTORY)
            if keep > ORIGIN:
                stretch = _move_back(window, keep, row, stretches, stretch, state)
                row -= keep - ORIGIN
                behind -= keep - ORIGIN
        return row == behind and _checksum_fits(stream, (state[BIT] + 7) >> 3, sums)

    return count_rgb


count_rgb = _compiled(checksum_of("deflate_symbols.py", "words.py"))


@cache
def is_compiled() -> bool:
    """True where an earlier process left machine code of this file as it is, so that it only loads.

    For another processor it is compiled all the same, which this does not tell.
    """
    indexes = Path(count_rgb.stats.cache_path).glob(f"{Path(__file__).stem}.*.nbi")
    changed = Path(__file__).stat().st_mtime
    return any(index.stat().st_mtime >= changed for index in indexes)


_AHEAD = 1 << 18
"""Bytes inflated before their rows are counted: with HISTORY they fit a core's own cache."""

_LIMIT = ORIGIN + HISTORY + _AHEAD

WIDEST = _AHEAD // (2 * PIXEL) - 1
"""Pixels of a row: two rows fit in what is inflated at once."""

_local = threading.local()


def count(
    stream: bytes,
    height: int,
    width: int,
    class_of: npt.NDArray[np.uint8],
    counts: npt.NDArray[np.int64],
    digest: npt.NDArray[np.uint64],
) -> bool:
    """Count the pixels of an 8-bit RGB image that is not interlaced, in room that is used again.

    Args:
        stream: A zlib stream of filtered rows.
        class_of: (2**24,) uint8 [class id] by colour.
        counts: (256,) int64 [pixels] by class id, added to; of no use where this is False.
        digest: (1,) uint64; set to the digest of the runs of colours.

    Returns:
        Whether they were counted; if not, the stream is damaged, or not of stretches, or its rows
        are too wide.
    """
    if width > WIDEST:
        return False
    padded = np.frombuffer(stream + bytes(PADDING), np.uint8)
    sums = np.zeros(3, np.uint64)
    counted: bool = count_rgb(padded, len(stream), height, width, class_of, counts, sums, _room())
    digest[0] = sums[MARK]
    return counted


def _room() -> tuple[Any, ...]:
    """This thread's: 2 MB, whatever the label."""
    room: tuple[Any, ...] | None = getattr(_local, "room", None)
    if room is None:
        size = _LIMIT + OVERHANG
        # A match has three bytes or more.
        stretches = (np.zeros(size // 3 + 2, np.int64), np.zeros(size // 3 + 2, np.int64))
        room = _local.room = (
            np.zeros(size, np.uint8), _LIMIT, new_tables(), stretches, np.zeros(STATE, np.int64),
        )  # fmt: skip
    return room
