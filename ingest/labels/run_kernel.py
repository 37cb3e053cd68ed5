"""Pixels per class of filtered PNG rows, without ever writing a pixel: rows are runs of one colour.

Labels are drawn in areas of one colour. In a row with filter Sub every byte is the difference to
the pixel on the left, so zeros mean "the same colour again" and a run ends at the first byte that
is not zero. A row with filter None becomes the same after subtracting its left neighbour. With the
filters Up, Average and Paeth zeros mean so as long as the row above stays in one run as well: of it
only its runs are known. Zeros are skipped 96 bytes at a time.

`ingest.labels.sample_kernel` counts images of one sample a pixel.

Compiled by Numba without Python's lock, so that threads count in parallel; the machine code is kept
in Numba's cache.

Source: PNG specification, section 9.2.
"""

from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

_BYTE_POINTER = ir.IntType(8).as_pointer()
_WORD = ir.IntType(64)
_VECTOR = ir.VectorType(_WORD, 4)
_VECTOR_BYTES = 32
_BLOCK = 96
"""Bytes looked at together: 32 RGB pixels."""

NONE, SUB, UP, AVERAGE, PAETH = range(5)

_HIGH = np.uint64(0x80808080)
_SHIFT = 33
"""Bits that a quotient is shifted by: dividends are below 2**30, divisors 1 to 4."""


def _address(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(builder.bitcast(data, _BYTE_POINTER), [index])


def _load(builder: Any, address: Any, offset: int, kind: Any) -> Any:
    pointer = builder.gep(address, [ir.Constant(_WORD, offset)])
    return builder.load(builder.bitcast(pointer, kind.as_pointer()), align=1)


def _word_loader(compared: bool) -> Any:
    @intrinsic
    def load(_typing: Any, array: Any, _index: Any, _left: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            array, index, distance = values
            here = _address(context, builder, signature.args[0], array, index)
            word = _load(builder, here, 0, _WORD)
            if compared:
                before = builder.gep(here, [builder.neg(distance)])
                word = builder.xor(word, _load(builder, before, 0, _WORD))
            return word

        return types.uint64(array, types.intp, types.intp), generate

    return load


def _block_loader(compared: bool) -> Any:
    @intrinsic
    def any_difference(_typing: Any, array: Any, _index: Any, _left: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            array, index, distance = values
            here = _address(context, builder, signature.args[0], array, index)
            before = builder.gep(here, [builder.neg(distance)])
            differences = None
            for offset in range(0, _BLOCK, _VECTOR_BYTES):
                vector = _load(builder, here, offset, _VECTOR)
                if compared:
                    vector = builder.xor(vector, _load(builder, before, offset, _VECTOR))
                differences = vector if differences is None else builder.or_(differences, vector)
            reduce = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
                builder.module, ir.FunctionType(_WORD, [_VECTOR]), "llvm.vector.reduce.or.v4i64"
            )
            return builder.call(reduce, [differences])

        return types.uint64(array, types.intp, types.intp), generate

    return any_difference


@intrinsic
def _first_byte(_typing: Any, _word: Any) -> Any:
    """Position of the first byte of a word that is not zero."""

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        zeros = builder.cttz(values[0], ir.Constant(ir.IntType(1), 1))
        return builder.lshr(zeros, ir.Constant(_WORD, 3))

    return types.intp(types.uint64), generate


def _run_ends(compared: bool) -> Any:
    """A function (raw, at, end, left) -> first byte from ``at`` on that ends a run, or ``end``.

    A run is of zeros or, ``compared``, of bytes that equal those ``distance`` before them.
    """
    word, block = _word_loader(compared), _block_loader(compared)

    @nb.njit(nogil=True)
    def run_end(raw: Any, at: int, end: int, distance: int) -> Any:
        # Most runs are short: one word first, blocks only then.
        if at + 8 <= end:
            difference = word(raw, at, distance)
            if difference != 0:
                return at + _first_byte(difference)  # type: ignore[call-arg]
            at += 8
        while at + _BLOCK <= end and block(raw, at, distance) == 0:
            at += _BLOCK
        while at + 8 <= end:
            difference = word(raw, at, distance)
            if difference != 0:
                return at + _first_byte(difference)  # type: ignore[call-arg]
            at += 8
        while at < end and (raw[at] == raw[at - distance] if compared else raw[at] == 0):
            at += 1
        return at

    return run_end


_word = _word_loader(compared=False)
_zeros_end = _run_ends(compared=False)
_same_end = _run_ends(compared=True)


@nb.njit(nogil=True)
def _pixel(raw: Any, at: int, size: int) -> Any:
    """A pixel's bytes, the first one lowest."""
    if at + 8 <= len(raw):
        return _word(raw, at, 0) & ((np.uint64(1) << np.uint64(8 * size)) - np.uint64(1))
    pixel = np.uint64(0)
    for offset in range(size):
        pixel |= np.uint64(raw[at + offset]) << np.uint64(8 * offset)
    return pixel


@nb.njit(nogil=True)
def _plus(pixel: Any, residue: Any) -> Any:
    """Both added byte by byte, modulo 256."""
    return ((pixel & ~_HIGH) + (residue & ~_HIGH)) ^ ((pixel ^ residue) & _HIGH)


@nb.njit(nogil=True)
def _average(left: Any, above: Any) -> Any:
    """Half the sum byte by byte, rounded down."""
    return (left & above) + (((left ^ above) & np.uint64(0xFEFEFEFE)) >> np.uint64(1))


@nb.njit(nogil=True)
def _nearest(left: Any, above: Any, corner: Any) -> Any:
    """Byte by byte whichever is nearest to left + above - corner; ties in that order."""
    if above == corner:
        return left
    if left == corner:
        return above
    nearest = np.uint64(0)
    for byte in range(4):
        shift = np.uint64(8 * byte)
        a = np.int64(left >> shift & np.uint64(255))
        b = np.int64(above >> shift & np.uint64(255))
        c = np.int64(corner >> shift & np.uint64(255))
        by_left, by_above, by_corner = abs(b - c), abs(a - c), abs(a + b - 2 * c)
        chosen = b if by_above <= by_corner else c
        if by_left <= by_above and by_left <= by_corner:
            chosen = a
        nearest |= np.uint64(chosen) << shift
    return nearest


@nb.njit(nogil=True)
def _plain_runs(raw: Any, at: int, end: int, size: int, sub: bool, ends: Any, values: Any) -> Any:
    """Runs of a row with filter None or Sub; how many."""
    reciprocal = (1 << _SHIFT) // size + 1
    many = pixels = 0
    value = np.uint64(0)
    while at < end:
        pixel = _pixel(raw, at, size)
        if sub:
            value = _plus(value, pixel)
            until = _zeros_end(raw, at + size, end, size)
        else:
            value = pixel
            until = _same_end(raw, at + size, end, size)
        length = ((until - at) * reciprocal) >> _SHIFT
        at += length * size
        pixels += length
        ends[many], values[many] = pixels, value
        many += 1
    return many


@nb.njit(nogil=True)
def _runs_below(
    raw: Any, at: int, end: int, size: int, kind: int, ends_above: Any, above: Any, ends: Any,
    values: Any,
) -> Any:  # fmt: skip
    """Runs of a row with filter Up, Average or Paeth, from those of the row above; how many."""
    reciprocal = (1 << _SHIFT) // size + 1
    pixels = ((end - at) * reciprocal) >> _SHIFT
    many = here = zeros_end = run_above = 0
    left = corner = np.uint64(0)
    while here < pixels:
        while ends_above[run_above] <= here:
            run_above += 1
        up = above[run_above]
        if kind == UP:
            value = up
        elif kind == AVERAGE:
            value = _average(left, up)
        else:
            value = _nearest(left, up, corner)
        if here >= zeros_end:
            value = _plus(value, _pixel(raw, at + here * size, size))
        until = here + 1
        if until >= zeros_end:
            stop = _zeros_end(raw, at + until * size, end, size)
            zeros_end = ((stop - at) * reciprocal) >> _SHIFT
        # While the row above stays the same, zeros say "as above", or with Paeth "as on the left".
        if value == up or kind == PAETH:
            until = max(until, min(zeros_end, ends_above[run_above]))
        if value != left or here == 0:
            many += 1
        ends[many - 1], values[many - 1] = until, value
        left, corner = value, up
        here = until
    return many


@nb.njit(nogil=True)
def row_runs(
    raw: Any, at: int, end: int, size: int, ends_above: Any, above: Any, ends: Any, values: Any
) -> Any:
    """Undo a row's filter run by run.

    Args:
        raw: uint8, inflated rows with their filter bytes.
        at: Where the row's pixels begin.
        end: Where they end.
        size: Bytes of a pixel.
        ends_above: int64, where the runs of the row above end, in pixels of ``size`` bytes; of a
            first row, its pixels.
        above: uint64, the pixels of these runs, the first byte lowest; of a first row, 0.
        ends: int64, written: where this row's runs end.
        values: uint64, written: their pixels.

    Returns:
        How many runs the row has; -1 where PNG does not know its filter.
    """
    kind = raw[at - 1]
    if kind <= SUB:
        return _plain_runs(raw, at, end, size, kind == SUB, ends, values)
    if kind <= PAETH:
        return _runs_below(raw, at, end, size, kind, ends_above, above, ends, values)
    return -1


@nb.njit(nogil=True)
def colour_of_pixel(value: Any) -> Any:
    """A pixel whose lowest byte is red, as 0xRRGGBB; what lies above is dropped."""
    byte = np.uint64(255)
    red, blue = value & byte, value >> np.uint64(16) & byte
    return red << np.uint64(16) | value & np.uint64(0xFF00) | blue


@nb.njit(nogil=True)
def _mixed(digest: Any, colour: Any, pixels: Any) -> Any:
    """The digest with one more run of pixels: the same for the same runs, however stored."""
    run = np.uint64(colour) << np.uint64(32) | np.uint64(pixels)
    mixed = (digest ^ run) * np.uint64(0x9E3779B97F4A7C15)
    return mixed ^ (mixed >> np.uint64(32))


@nb.njit(nogil=True)
def _joined(mark: Any, last: Any, pending: int, colour: Any, pixels: int) -> Any:
    """A run of pixels after another that waits: (digest, the run that waits now)."""
    if colour == last:
        return mark, last, pending + pixels
    if pending:
        mark = _mixed(mark, last, pending)
    return mark, colour, pixels


@nb.njit(nogil=True)
def _count_pixels(
    ends: Any, values: Any, many: int, channel: int, class_of: Any, counts: Any, mark: Any
) -> Any:
    """Count a row's runs; the digest."""
    last, pending = np.uint64(0), 0
    start = 0
    shift = np.uint64(8 * channel)
    for run in range(many):
        pixels = ends[run] - start
        start = ends[run]
        if channel < 0:
            value = colour_of_pixel(values[run])
        else:
            value = values[run] >> shift & np.uint64(255)
        counts[class_of[value]] += pixels
        mark, last, pending = _joined(mark, last, pending, value, pixels)
    return _mixed(mark, last, pending)


@nb.njit(nogil=True, cache=True)
def _count_rows(
    raw: Any, height: int, width: int, size: int, channel: int, class_of: Any, counts: Any,
    digest: Any, ends: Any, values: Any, other_ends: Any, other_values: Any,
) -> Any:  # fmt: skip
    """See `count_rows`; the last four arrays are room for the runs of two rows."""
    row_bytes = width * size
    mark = _mixed(np.uint64(0), height, width)
    other_ends[0], other_values[0] = width, np.uint64(0)
    for row in range(height):
        at = row * (1 + row_bytes) + 1
        many = row_runs(raw, at, at + row_bytes, size, other_ends, other_values, ends, values)
        if many < 0:
            return row
        mark = _count_pixels(ends, values, many, channel, class_of, counts, mark)
        ends, other_ends = other_ends, ends
        values, other_values = other_values, values
    digest[0] = mark
    return height


def count_rows(
    raw: npt.NDArray[np.uint8],
    height: int,
    width: int,
    samples: int,
    channel: int | None,
    class_of: npt.NDArray[np.uint8],
    counts: npt.NDArray[np.int64],
    digest: npt.NDArray[np.uint64],
) -> int:
    """Add the pixels of an 8-bit image that is not interlaced to ``counts``.

    Args:
        raw: (height * (1 + bytes of a row),) uint8, inflated rows with their filter bytes.
        samples: 3 or 4, for RGB and RGBA.
        channel: The one whose samples are looked up and digested; None for colours, without alpha.
        class_of: (2**24,) uint8 [class id] by colour, or (256 or more,) by sample of the channel.
        counts: (256,) int64 [pixels] by class id; added to.
        digest: (1,) uint64, set to the digest of the runs of colours or samples.

    Returns:
        Rows counted: ``height``, or the first row with a filter that PNG does not know.
    """
    room = width + 1
    return int(
        _count_rows(
            raw, height, width, samples, -1 if channel is None else channel, class_of, counts,
            digest, np.empty(room, np.int64), np.empty(room, np.uint64),
            np.empty(room, np.int64), np.empty(room, np.uint64),
        )
    )  # fmt: skip
