"""Run lengths: a mask as the lengths of its runs, outside and inside by turns, outside first.

COCO's go down the columns, as a list or as a text. Source: cocodataset/cocoapi, common/maskApi.c:
rleToString and rleFrString.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from catalog.errors import BadFile

Runs = npt.NDArray[np.int64]

_FIRST, _LAST = 48, 111
"""Characters of a text: five bits each and one that says that more follow."""
_MOST_BITS = 60


def coco_runs(rle: Any, size: tuple[int, int]) -> Runs:
    """Lengths of the runs of a COCO RLE, ``{"size": [H, W], "counts": [...] or "..."}``.

    Args:
        size: (W, H) of the frame [pixels].

    Raises:
        BadFile: It is none, or is of another size.
    """
    if not isinstance(rle, Mapping) or "counts" not in rle:
        raise BadFile('expected run lengths, {"size": [height, width], "counts": ...}')
    width, height = size
    if rle.get("size") not in ([height, width], (height, width)):
        raise BadFile(
            f"run lengths of size {ascii(rle.get('size'))[:40]}: expected [{height}, {width}], the "
            "frame's height and width"
        )
    counts = rle["counts"]
    runs = _runs_of_text(counts) if isinstance(counts, str) else counts
    return checked_runs(runs, width * height)


def checked_runs(runs: Any, pixels: int) -> Runs:
    """Lengths of runs, which add up to a number of pixels.

    Raises:
        BadFile: They do not, or are no lengths.
    """
    if not isinstance(runs, list) or not all(type(run) is int and run >= 0 for run in runs):
        raise BadFile("run lengths: expected whole numbers from 0 on")
    if sum(runs) != pixels:
        raise BadFile(f"run lengths add up to {sum(runs):,} pixels; expected {pixels:,}")
    return np.array(runs, np.int64)


def inside(runs: Runs) -> int:
    """Pixels inside of a mask."""
    return int(runs[1::2].sum())


def mask_of(runs: Runs) -> npt.NDArray[np.bool_]:
    """A mask's pixels in one dimension, in the order of its runs."""
    return np.repeat(np.arange(len(runs)) % 2 == 1, runs)


def coco_text(runs: Runs) -> str:
    """Lengths of runs as COCO's compressed text.

    >>> coco_text(np.array([3, 2, 40, 1]))
    '32X1O'
    """
    values = runs.tolist()
    characters: list[str] = []
    for position, run in enumerate(values):
        value = run - values[position - 2] if position > 2 else run
        while True:
            code = value & 31
            value >>= 5
            is_last = value == (-1 if code & 16 else 0)
            characters.append(chr(_FIRST + (code if is_last else code | 32)))
            if is_last:
                break
    return "".join(characters)


def _runs_of_text(text: str) -> list[int]:
    """The lengths of a compressed text: from the fourth on it has the difference to two before."""
    runs: list[int] = []
    value = bits = 0
    for character in text:
        code = ord(character) - _FIRST
        if not 0 <= code <= _LAST - _FIRST or bits > _MOST_BITS:
            raise BadFile(f"run lengths: {character!a} at {len(runs)}: no text of COCO's")
        value |= (code & 31) << bits
        bits += 5
        if code & 32:
            continue
        if code & 16:
            value -= 1 << bits
        runs.append(value + (runs[-2] if len(runs) > 2 else 0))
        value = bits = 0
    if bits:
        raise BadFile("run lengths: the text is cut short")
    return runs
