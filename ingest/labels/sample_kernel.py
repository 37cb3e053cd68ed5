"""Pixels per sample of filtered PNG rows of one sample a pixel: palettes, and grey of 1 to 16 bits.

Rows become runs of one value, as in `ingest.labels.run_kernel`, which counts RGB and RGBA. A row is
looked through first, 64 bytes at a time, for *marks*: the pixels that a run may begin with. With
filter None these are pixels that differ from the one on their left, with all others those whose
bytes are not all zero. Then runs follow from marks, with the filters Up, Average and Paeth from the
runs of the row above, too, by steps without a branch that depends on the label: a branch that is
guessed wrong costs as much as several steps, and labels of ids have a run for each hundred bytes.

Samples of less than a byte come as bytes: a run of one byte is a run of its samples.

Compiled by Numba without Python's lock, so that threads count in parallel; the machine code is kept
in Numba's cache.

Source: PNG specification, section 9.2.
"""

import threading
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from ingest.labels.words import byte_address, checksum_of, compiled, signed

_NONE, _SUB, _UP, _AVERAGE, _PAETH = range(5)
_WORD = ir.IntType(64)
_BLOCK = 64
"""Bytes looked at together."""

_WORD_BITS = 64
"""Blocks that are looked at before their marks are written."""

_AT_ONCE = 4
"""Marks of a block that are written without asking how many there are."""

_HIGH = np.uint32(0x8080)
_BYTE = np.uint32(255)


def _mask_loader(size: int, compared: bool) -> Any:
    """An intrinsic (raw, at) -> uint64, a bit for each pixel of the block that may be a mark."""
    lane = ir.IntType(8 * size)
    vector = ir.VectorType(lane, _BLOCK // size)

    @intrinsic
    def load(_typing: Any, array: Any, _at: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            here = byte_address(context, builder, signature.args[0], *values)
            block = builder.load(builder.bitcast(here, vector.as_pointer()), align=1)
            other = ir.Constant(vector, None)
            if compared:
                left = builder.gep(here, [ir.Constant(_WORD, -size)])
                other = builder.load(builder.bitcast(left, vector.as_pointer()), align=1)
            bits = builder.icmp_unsigned("!=", block, other)
            mask = builder.bitcast(bits, ir.IntType(_BLOCK // size))
            return mask if size == 1 else builder.zext(mask, _WORD)

        return types.uint64(array, types.int64), generate

    return load


_not_zero, _not_as_before = _mask_loader(1, compared=False), _mask_loader(1, compared=True)
_not_zero_2, _not_as_before_2 = _mask_loader(2, compared=False), _mask_loader(2, compared=True)


@intrinsic
def _lowest_bit(_typing: Any, _mask: Any) -> Any:
    """Position of the lowest bit of a uint64; 64 where it has none."""

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return builder.cttz(values[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@intrinsic
def _bits(_typing: Any, _mask: Any) -> Any:
    """How many bits of a uint64 are set."""

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return builder.ctpop(values[0])

    return types.uint64(types.uint64), generate


lowest_bit: Any = _lowest_bit
bits_set: Any = _bits
differs_from_left: Any = _not_as_before
"""(uint8 array, at) -> uint64, a bit for each of 64 bytes that differs from the one before it."""


@compiled()
def _mask(raw: Any, start: int, size: int, compared: bool) -> Any:
    if size == 1:
        return _not_as_before(raw, start) if compared else _not_zero(raw, start)
    return _not_as_before_2(raw, start) if compared else _not_zero_2(raw, start)


@compiled()
def _is_mark(raw: Any, start: int, size: int, compared: bool) -> bool:
    for offset in range(size):
        other = raw[start + offset - size] if compared else np.uint8(0)
        if raw[start + offset] != other:
            return True
    return False


@compiled()
def _marks(
    raw: Any, at: int, pixels: int, size: int, compared: bool, masks: Any, marks: Any
) -> Any:
    """Write the marks of a row: its first pixel, those that a run may begin with, and ``pixels``.

    Args:
        raw: uint8, inflated rows.
        at: Where the row's pixels begin.
        pixels: How many there are.
        size: Bytes of a pixel, 1 or 2.
        compared: Marks are what differs from its left, and else what is not zero.
        masks: uint64, room for 64.
        marks: int64, room for ``pixels`` and a block more.

    Returns:
        How many marks there are, without the last.
    """
    marks[0] = 0
    many = np.uint64(1)
    pixel: Any = signed(1)
    step = _BLOCK // size
    last = min(pixels - 1, (len(raw) - at) // size - step)  # a block from there on is in the array
    while pixel <= last:
        # 64 blocks, and then those of them that have marks.
        first = pixel
        blocks: Any = np.uint64(0)
        many_blocks = np.uint64(min(_WORD_BITS, (last - first) // step + 1))
        for block in range(many_blocks):
            mask = _mask(raw, at + pixel * size, size, compared)
            masks[block] = mask
            blocks |= np.uint64(mask != 0) << block
            pixel += step
        if pixel > pixels:
            # Of the last block some pixels are not of this row.
            mask = masks[many_blocks - np.uint64(1)]
            mask &= (np.uint64(1) << np.uint64(pixels + step - pixel)) - np.uint64(1)
            masks[many_blocks - np.uint64(1)] = mask
            blocks &= ~(np.uint64(mask == 0) << (many_blocks - np.uint64(1)))
        while blocks != 0:
            number = lowest_bit(blocks)
            blocks &= blocks - np.uint64(1)
            mask = masks[np.uint64(number)]
            left = first + number * step
            behind = many + bits_set(mask)
            for _ in range(_AT_ONCE):
                marks[many] = left + lowest_bit(mask)
                many += np.uint64(1)
                mask &= mask - np.uint64(1)
            while mask != 0:
                marks[many] = left + lowest_bit(mask)
                many += np.uint64(1)
                mask &= mask - np.uint64(1)
            many = behind
    while pixel < pixels:
        if _is_mark(raw, at + pixel * size, size, compared):
            marks[many] = pixel
            many += np.uint64(1)
        pixel += 1
    marks[many] = pixels
    return signed(many)


@compiled()
def _pixel(raw: Any, start: int, size: int) -> Any:
    """A pixel's one or two bytes, the first one lowest."""
    pixel = np.uint32(raw[np.uint64(start)])
    if size == 2:
        pixel |= np.uint32(raw[np.uint64(start + 1)]) << np.uint32(8)
    return pixel


@compiled()
def _plus(pixel: Any, residue: Any) -> Any:
    """Both added byte by byte, modulo 256."""
    return ((pixel & ~_HIGH) + (residue & ~_HIGH)) ^ ((pixel ^ residue) & _HIGH)


@compiled()
def _average(left: Any, above: Any) -> Any:
    """Half the sum byte by byte, rounded down."""
    return (left & above) + (((left ^ above) & np.uint32(0xFEFE)) >> np.uint32(1))


@compiled()
def _nearest(left: Any, above: Any, corner: Any, size: int) -> Any:
    """Byte by byte whichever is nearest to left + above - corner; ties in that order."""
    nearest = np.uint32(0)
    for byte in range(size):
        shift = np.uint32(8 * byte)
        a = signed(left >> shift & _BYTE)
        b = signed(above >> shift & _BYTE)
        c = signed(corner >> shift & _BYTE)
        by_left, by_above, by_corner = abs(b - c), abs(a - c), abs(a + b - 2 * c)
        chosen = b if by_above <= by_corner else c
        chosen = a if (by_left <= by_above) & (by_left <= by_corner) else chosen
        nearest |= np.uint32(chosen) << shift
    return nearest


@compiled()
def _runs_of_marks(
    raw: Any, at: int, size: int, sub: bool, marks: Any, many: int, runs: Any
) -> Any:
    """Runs of a row with filter None or Sub; how many."""
    ends, values = runs
    value = np.uint32(0)
    for number in range(np.uint64(many)):
        pixel = _pixel(raw, at + marks[number] * size, size)
        value = _plus(value, pixel) if sub else pixel
        ends[number], values[number] = marks[number + np.uint64(1)], value
    return many


@compiled()
def _runs_below(
    raw: Any, at: int, pixels: int, size: int, kind: int, marks: Any, above: Any, runs: Any
) -> Any:
    """Runs of a row with filter Up, Average or Paeth, from those of the row above; how many."""
    ends_above, values_above = above
    ends, values = runs
    here = signed(0)
    mark = over = many = np.uint64(0)  # many: the run that is last, by number and one
    left = corner = np.uint32(0)
    while here < pixels:
        until = marks[mark]
        up = values_above[over]
        if here < until and (kind == _UP or (kind == _PAETH and left == corner)):
            # Up to the next mark all is as above.
            many += np.uint64(up != left)
            while ends_above[over] < until:
                ends[many - np.uint64(1)], values[many - np.uint64(1)] = ends_above[over], up
                over += np.uint64(1)
                many += np.uint64(1)
                up = values_above[over]
            ends[many - np.uint64(1)], values[many - np.uint64(1)] = until, up
            value = up
        else:
            if kind == _UP:
                value = up
            elif kind == _PAETH:
                value = left
                if up != corner:
                    value = up if left == corner else _nearest(left, up, corner, size)
            else:
                value = _average(left, up)
            value = _plus(value, _pixel(raw, at + here * size, size))
            mark += np.uint64(until == here)
            until = here + 1
            # While the row above stays the same, zeros say "as above", or "as on the left".
            if kind == _PAETH or value == up:
                until = max(until, min(marks[mark], ends_above[over]))
            # What equals the run before goes on with it.
            many += np.uint64((value != left) | (here == 0))
            ends[many - np.uint64(1)], values[many - np.uint64(1)] = until, value
        over += np.uint64(ends_above[over] == until)
        left, corner = value, up
        here = until
    return signed(many)


@compiled()
def _row_runs(
    raw: Any, at: int, pixels: int, size: int, masks: Any, marks: Any, above: Any, runs: Any
) -> Any:
    """Undo a row's filter run by run.

    Args:
        raw: uint8, inflated rows with their filter bytes.
        at: Where the row's pixels begin.
        pixels: How many there are.
        size: Bytes of a pixel; 1 where a byte holds several.
        masks: uint64, room for 64.
        marks: int64, room for a row's marks.
        above: int64 and uint32, where the runs of the row above end [pixels], and their values, the
            first byte lowest; of a first row one run of zeros.
        runs: The same of this row, written.

    Returns:
        How many runs the row has; -1 where PNG does not know its filter.
    """
    kind = raw[at - 1]
    if kind > _PAETH:
        return signed(-1)
    many = _marks(raw, at, pixels, size, kind == _NONE, masks, marks)
    if kind <= _SUB:
        return _runs_of_marks(raw, at, size, kind == _SUB, marks, many, runs)
    if kind == _UP:
        return _runs_below(raw, at, pixels, size, signed(_UP), marks, above, runs)
    if kind == _AVERAGE:
        return _runs_below(raw, at, pixels, size, signed(_AVERAGE), marks, above, runs)
    return _runs_below(raw, at, pixels, size, signed(_PAETH), marks, above, runs)


@compiled()
def _mixed(digest: Any, value: Any, pixels: Any) -> Any:
    """The digest with one more run of pixels, as `ingest.labels.run_kernel` has it."""
    run = np.uint64(value) << np.uint64(32) | np.uint64(pixels)
    mixed = (digest ^ run) * np.uint64(0x9E3779B97F4A7C15)
    return mixed ^ (mixed >> np.uint64(32))


@compiled()
def _joined(mark: Any, last: Any, pending: int, value: Any, pixels: int) -> Any:
    """A run of pixels after another that waits: (digest, the run that waits now)."""
    if value == last:
        return mark, last, pending + pixels
    if pending:
        mark = _mixed(mark, last, pending)
    return mark, value, pixels


@compiled()
def _count_runs(
    runs: Any, many: int, wide: bool, class_of: Any, value_of: Any, counts: Any, mark: Any
) -> Any:
    """Count a row's runs of samples of one byte, or two; the digest."""
    ends, values = runs
    last, pending = np.uint32(0), signed(0)
    start = signed(0)
    for run in range(np.uint64(many)):
        pixels = ends[run] - start
        start = ends[run]
        if wide:
            value = (values[run] & _BYTE) << np.uint32(8) | values[run] >> np.uint32(8)
            counts[class_of[np.uint64(value)]] += pixels
        else:
            sample = np.uint64(values[run] & _BYTE)
            counts[sample] += pixels
            value = value_of[sample]
        mark, last, pending = _joined(mark, last, pending, value, pixels)
    return _mixed(mark, last, pending)


@compiled()
def _count_bits(
    runs: Any, many: int, width: int, depth: int, value_of: Any, counts: Any, mark: Any
) -> Any:
    """Count a row's runs of bytes that hold several samples of ``depth`` bits; the digest."""
    ends, values = runs
    last, pending = np.uint32(0), signed(0)
    start, remaining = signed(0), width
    mask = (1 << depth) - 1
    for run in range(many):
        byte = signed(values[run])
        size = ends[run] - start
        start = ends[run]
        times, each = size, signed(1)
        if byte == (byte & mask) * (255 // mask):
            times, each = signed(1), size * (8 // depth)
        for _ in range(times):
            for shift in range(8 - depth, -1, -depth):
                pixels = min(each, remaining)
                if pixels == 0:
                    break
                sample = byte >> shift & mask
                counts[sample] += pixels
                remaining -= pixels
                mark, last, pending = _joined(mark, last, pending, value_of[sample], pixels)
                if each > 1:
                    break
    return _mixed(mark, last, pending)


def _compiled(sources: int) -> Any:
    """`_count_rows` with the checksum of the other file that it is compiled from."""

    @compiled(cache=True)
    def count_rows(
        raw: Any, height: int, width: int, samples: int, depth: int, class_of: Any, value_of: Any,
        counts: Any, digest: Any, masks: Any, marks: Any, above: Any, runs: Any,
    ) -> Any:  # fmt: skip
        """See `count`; the last four are room, see `_room`."""
        size = signed(2 if samples * depth == 16 else 1)
        row_bytes = (width * samples * depth + 7) // 8
        mark = _mixed(np.uint64(0), height, width)
        above[0][0], above[1][0] = row_bytes // size, 0
        if sources < 0:
            return signed(0)
        for row in range(height):
            at = row * (1 + row_bytes) + 1
            many = _row_runs(raw, at, row_bytes // size, size, masks, marks, above, runs)
            if many < 0:
                return row
            if depth < 8:
                mark = _count_bits(runs, many, width, depth, value_of, counts, mark)
            elif depth == 8:
                mark = _count_runs(runs, many, False, class_of, value_of, counts, mark)
            else:
                mark = _count_runs(runs, many, True, class_of, value_of, counts, mark)
            above, runs = runs, above
        digest[0] = mark
        return height

    return count_rows


_count_rows = _compiled(checksum_of("words.py"))
_local = threading.local()


def _compiled_ids(sources: int) -> Any:
    """`_write_ids` with the checksum of the other file that it is compiled from."""

    @compiled(cache=True)
    def write_ids(
        raw: Any, height: int, width: int, class_of: Any, values: int, ids: Any, masks: Any,
        marks: Any, above: Any, runs: Any,
    ) -> Any:  # fmt: skip
        """See `class_ids`; the last four are room, see `_room`."""
        above[0][0], above[1][0] = width, 0
        if sources < 0:
            return signed(0)
        for row in range(height):
            at = row * (1 + width) + 1
            many = _row_runs(raw, at, width, signed(1), masks, marks, above, runs)
            if many < 0:
                return row
            ends, pixels = runs
            x = row * width
            for run in range(np.uint64(many)):
                value = np.uint64(pixels[run] & _BYTE)
                if value >= values:
                    return row
                class_id, until = class_of[value], row * width + ends[run]
                while x < until:
                    ids[np.uint64(x)] = class_id
                    x += 1
            above, runs = runs, above
        return height

    return write_ids


_write_ids = _compiled_ids(checksum_of("words.py"))


def class_ids(
    raw: npt.NDArray[np.uint8],
    class_of: npt.NDArray[np.uint8],
    values: int,
    ids: npt.NDArray[np.uint8],
) -> int:
    """Write the class ids of a label of one byte a pixel: grey, or a palette's index.

    Args:
        raw: (H * (1 + W),) uint8, inflated rows with their filter bytes.
        class_of: (256 or more,) uint8 [class id] by a pixel's value.
        values: How many values a pixel may have: the palette's colours.
        ids: (H, W) uint8 [class id], written.

    Returns:
        Rows written: H, or the first row with another value, or a filter that PNG does not know.
    """
    height, width = ids.shape
    flat = ids.reshape(-1)
    return int(_write_ids(raw, height, width, class_of, values, flat, *_room(width)))


def count(
    raw: npt.NDArray[np.uint8],
    height: int,
    width: int,
    samples: int,
    depth: int,
    class_of: npt.NDArray[np.uint8],
    value_of: npt.NDArray[np.uint32],
    counts: npt.NDArray[np.int64],
    digest: npt.NDArray[np.uint64],
) -> int:
    """Add the pixels of an image that is not interlaced to ``counts``.

    Args:
        raw: (height * (1 + bytes of a row),) uint8, inflated rows with their filter bytes.
        samples: 1 for palette or grey; 2 for 8 bits of grey with alpha, which is ignored.
        depth: Bits of a sample: 1, 2, 4, 8 or 16.
        class_of: (65536,) uint8 [class id] by sample, for 16 bits.
        value_of: (256,) uint32 by sample of 8 bits or fewer: what the digest is of.
        counts: (256,) int64 [pixels] by sample, or of 16 bits by class id; added to.
        digest: (1,) uint64, set to the digest of the runs of values.

    Returns:
        Rows counted: ``height``, or the first row with a filter that PNG does not know.
    """
    return int(
        _count_rows(
            raw, height, width, samples, depth, class_of, value_of, counts, digest, *_room(width)
        )
    )


def _room(width: int) -> tuple[Any, Any, Any, Any]:
    """This thread's room: a row's masks and marks, and the ends and values of the runs of two."""
    room: tuple[Any, Any, Any, Any] | None = getattr(_local, "room", None)
    if room is None or len(room[1]) < width + 1 + _BLOCK:
        above, runs = (
            (np.zeros(width + 2, np.int64), np.zeros(width + 2, np.uint32)) for _ in range(2)
        )
        masks, marks = np.zeros(_WORD_BITS, np.uint64), np.zeros(width + 1 + _BLOCK, np.int64)
        room = _local.room = (masks, marks, above, runs)
    return room
