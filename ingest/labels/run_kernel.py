"""Pixels per class of filtered PNG rows, without ever undoing the filters: runs are counted.

Labels are drawn in areas of one colour. In a row with filter Sub every byte is the difference to
the pixel on the left, so zeros mean "the same colour again" and a run ends at the first byte that
is not zero. A row with filter None becomes the same after subtracting its left neighbour. Zeros are
skipped 96 bytes at a time; a row is never written anywhere.

Rows with other filters are undone one by one, which needs the row above.

Compiled by Numba without Python's lock, so that threads count in parallel; the machine code is kept
in Numba's cache.
"""

from collections.abc import Callable
from typing import Any

import numba as nb
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

_BYTE_POINTER = ir.IntType(8).as_pointer()
_WORD = ir.IntType(64)
_VECTOR = ir.VectorType(_WORD, 4)
_VECTOR_BYTES = 32
_BLOCK = 96
"""Bytes looked at together: 32 pixels."""


def _address(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(builder.bitcast(data, _BYTE_POINTER), [index])


def _load(builder: Any, address: Any, offset: int, kind: Any) -> Any:
    pointer = builder.gep(address, [ir.Constant(_WORD, offset)])
    return builder.load(builder.bitcast(pointer, kind.as_pointer()), align=1)


def _differences(builder: Any, address: Any, offset: int, kind: Any, left: int) -> Any:
    """Bytes at ``offset``, with those ``left`` bytes before them taken off (0: as they are)."""
    here = _load(builder, address, offset, kind)
    return here if not left else builder.xor(here, _load(builder, address, offset - left, kind))


def _word_loader(left: int) -> Any:
    @intrinsic
    def load(_typing: Any, array: Any, _index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            address = _address(context, builder, signature.args[0], values[0], values[1])
            return _differences(builder, address, 0, _WORD, left)

        return types.uint64(array, types.intp), generate

    return load


def _block_loader(left: int) -> Any:
    @intrinsic
    def any_difference(_typing: Any, array: Any, _index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            address = _address(context, builder, signature.args[0], values[0], values[1])
            differences = None
            for offset in range(0, _BLOCK, _VECTOR_BYTES):
                of_vector = _differences(builder, address, offset, _VECTOR, left)
                differences = (
                    of_vector if differences is None else builder.or_(differences, of_vector)
                )
            reduce = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
                builder.module, ir.FunctionType(_WORD, [_VECTOR]), "llvm.vector.reduce.or.v4i64"
            )
            return builder.call(reduce, [differences])

        return types.uint64(array, types.intp), generate

    return any_difference


@intrinsic
def _first_byte(_typing: Any, _word: Any) -> Any:
    """Position of the first byte of a word that is not zero."""

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        zeros = builder.cttz(values[0], ir.Constant(ir.IntType(1), 1))
        return builder.lshr(zeros, ir.Constant(_WORD, 3))

    return types.intp(types.uint64), generate


def _run_ends(left: int) -> Callable[[Any, int, int], int]:
    """A function (raw, at, end) -> first byte from ``at`` on that differs, or ``end``."""
    word, block = _word_loader(left), _block_loader(left)

    @nb.njit(nogil=True, inline="always")
    def run_end(raw: Any, at: int, end: int) -> int:
        # Most runs are short: one word first, blocks only then.
        if at + 8 <= end:
            difference = word(raw, at)
            if difference != 0:
                return at + _first_byte(difference)  # type: ignore[call-arg]
            at += 8
        while at + _BLOCK <= end and block(raw, at) == 0:
            at += _BLOCK
        while at + 8 <= end:
            difference = word(raw, at)
            if difference != 0:
                return at + _first_byte(difference)  # type: ignore[call-arg]
            at += 8
        while at < end and (raw[at] == 0 if left == 0 else raw[at] == raw[at - left]):
            at += 1
        return at

    return run_end


_sub_run_end = _run_ends(0)
_none_run_end = _run_ends(3)


@nb.njit(nogil=True, inline="always")
def _colour(raw: Any, at: int) -> Any:
    return (
        np.uint32(raw[at]) << np.uint32(16)
        | np.uint32(raw[at + 1]) << np.uint32(8)
        | np.uint32(raw[at + 2])
    )


@nb.njit(nogil=True, inline="always")
def _plus(colour: Any, raw: Any, at: int) -> Any:
    """The colour, each channel with its difference added, modulo 256."""
    red = (colour >> np.uint32(16)) + np.uint32(raw[at])
    green = (colour >> np.uint32(8)) + np.uint32(raw[at + 1])
    blue = colour + np.uint32(raw[at + 2])
    byte = np.uint32(255)
    return (red & byte) << np.uint32(16) | (green & byte) << np.uint32(8) | (blue & byte)


@nb.njit(nogil=True, inline="always")
def _mixed(digest: Any, colour: Any, pixels: Any) -> Any:
    """The digest with one more run of pixels: the same for the same runs, however stored."""
    run = np.uint64(colour) << np.uint64(32) | np.uint64(pixels)
    mixed = (digest ^ run) * np.uint64(0x9E3779B97F4A7C15)
    return mixed ^ (mixed >> np.uint64(32))


@nb.njit(nogil=True, cache=True)
def count_rgb_runs(
    raw: Any, height: int, width: int, class_of: Any, counts: Any, digest: Any
) -> int:
    """Add the pixels of an 8-bit RGB image to ``counts``, as long as rows have filter None or Sub.

    Args:
        raw: (height * (1 + 3 * width),) uint8, inflated rows with their filter bytes.
        height: Rows.
        width: Pixels per row.
        class_of: (2**24,) uint8 [class id] by colour.
        counts: (256,) int64 [pixels] by class id, added to.
        digest: (1,) uint64, set to the digest of the runs of colours.

    Returns:
        Rows counted: ``height``, or the first row with another filter.
    """
    stride = 1 + 3 * width
    mark = _mixed(np.uint64(0), height, width)
    for row in range(height):
        start = row * stride + 1
        end = (row + 1) * stride
        filter_type = raw[start - 1]
        if filter_type > 1:
            return row
        colour = _colour(raw, start)
        while True:
            if filter_type == 1:
                stop = _sub_run_end(raw, start + 3, end)
            else:
                stop = _none_run_end(raw, start + 3, end)
            pixels = (stop - start) // 3
            counts[class_of[colour]] += pixels
            mark = _mixed(mark, colour, pixels)
            start += 3 * pixels
            if start >= end:
                break
            colour = _plus(colour, raw, start) if filter_type == 1 else _colour(raw, start)
    digest[0] = mark
    return height


@nb.njit(nogil=True, cache=True)
def unfilter(raw: Any, height: int, row_bytes: int, pixel_bytes: int) -> int:
    """Undo the filters of all rows in place, filter bytes staying where they are.

    Args:
        raw: (height * (1 + row_bytes),) uint8, inflated rows with their filter bytes.
        height: Rows.
        row_bytes: Bytes of a row.
        pixel_bytes: Bytes of a pixel, at least 1.

    Returns:
        Rows undone: ``height``, or the first row with a filter that PNG does not know.

    Source: PNG specification, section 9.2.
    """
    stride = 1 + row_bytes
    for row in range(height):
        start = row * stride + 1
        filter_type = raw[start - 1]
        if filter_type > 4:
            return row
        if filter_type == 0:
            continue
        for at in range(row_bytes):
            here = start + at
            left = np.int32(raw[here - pixel_bytes]) if at >= pixel_bytes else np.int32(0)
            above = np.int32(raw[here - stride]) if row > 0 else np.int32(0)
            if filter_type == 1:
                guess = left
            elif filter_type == 2:
                guess = above
            elif filter_type == 3:
                guess = (left + above) // 2
            else:
                corner = np.int32(0)
                if row > 0 and at >= pixel_bytes:
                    corner = np.int32(raw[here - stride - pixel_bytes])
                guess = _paeth(left, above, corner)
            raw[here] = np.uint8((np.int32(raw[here]) + guess) & 255)
    return height


@nb.njit(nogil=True, inline="always")
def _paeth(left: Any, above: Any, corner: Any) -> Any:
    """Whichever of the three is nearest to left + above - corner; ties in that order."""
    estimate = left + above - corner
    by_left, by_above = abs(estimate - left), abs(estimate - above)
    by_corner = abs(estimate - corner)
    if by_left <= by_above and by_left <= by_corner:
        return left
    return above if by_above <= by_corner else corner


@nb.njit(nogil=True, cache=True)
def count_rows(
    raw: Any,
    height: int,
    width: int,
    samples: int,
    class_of: Any,
    counts: Any,
    colour_of: Any,
    digest: Any,
) -> None:
    """Add the pixels of an unfiltered 8-bit image to ``counts``.

    Args:
        raw: (height * (1 + samples * width),) uint8, rows as `unfilter` left them.
        height: Rows.
        width: Pixels per row.
        samples: 3 or 4 for RGB and RGBA, whose alpha is ignored; 1 for palette and grey.
        class_of: uint8 [class id] by colour (2**24,), or by sample (256,) for one sample.
        counts: (256,) int64 [pixels] by class id, added to.
        colour_of: (256,) uint32 colour by sample, for one sample.
        digest: (1,) uint64, set as `count_rgb_runs` sets it for the same colours.
    """
    stride = 1 + samples * width
    mark = _mixed(np.uint64(0), height, width)
    for row in range(height):
        at = row * stride + 1
        last, pixels = np.uint32(0), np.uint32(0)
        for _ in range(width):
            value = np.uint32(raw[at]) if samples < 3 else _colour(raw, at)
            counts[class_of[value]] += 1
            colour = colour_of[value] if samples < 3 else value
            if colour != last and pixels > 0:
                mark = _mixed(mark, last, pixels)
                pixels = np.uint32(0)
            last = colour
            pixels += np.uint32(1)
            at += samples
        mark = _mixed(mark, last, pixels)
    digest[0] = mark
