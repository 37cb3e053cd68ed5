"""A frame's mask as COCO's segmentations: run lengths of each class.

Source: cocodataset/cocoapi, common/maskApi.c (rleEncode, rleToString, rleToBbox).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ingest.conversion.run_lengths import coco_text
from ingest.labels.class_list import UNKNOWN_CLASS
from pipeline.prepared.decoded_frames import UInt8


@dataclass(frozen=True)
class ClassRegion:
    """All pixels of a class in a frame."""

    class_id: int
    counts: str
    """Its run lengths in COCO's compressed text."""
    area: int
    """[pixels]"""
    bbox: tuple[int, int, int, int]
    """Left, top, width, height [pixels]."""


def class_regions(ids: UInt8) -> list[ClassRegion]:
    """The regions of the classes in a frame, by class id.

    Args:
        ids: (H, W) uint8 [class id]; pixels of UNKNOWN_CLASS belong to no region.

    >>> ids = np.array([[0, 1], [0, 255]], np.uint8)
    >>> [(region.class_id, region.area, region.bbox) for region in class_regions(ids)]
    [(0, 2, (0, 0, 1, 2)), (1, 1, (1, 0, 1, 1))]
    """
    size_px = ids.shape[0], ids.shape[1]
    columns = ids.T.ravel()
    starts = np.flatnonzero(np.diff(columns, prepend=columns[:1] ^ 1))
    ends = np.append(starts[1:], columns.size)
    of_run = columns[starts]
    return [
        _region(int(class_id), starts[of_run == class_id], ends[of_run == class_id], size_px)
        for class_id in np.unique(of_run)
        if class_id != UNKNOWN_CLASS
    ]


def _region(
    class_id: int,
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    size_px: tuple[int, int],
) -> ClassRegion:
    """The region of a class by its runs [start, end) down the columns of a frame (H, W)."""
    height, width = size_px
    edges = np.stack((starts, ends), axis=1).ravel()
    counts = np.diff(edges, prepend=0)
    if (rest := height * width - int(ends[-1])) > 0:
        counts = np.append(counts, rest)
    first, last = starts // height, (ends - 1) // height
    is_over_columns = first != last
    top = np.where(is_over_columns, 0, starts % height).min()
    bottom = np.where(is_over_columns, height - 1, (ends - 1) % height).max()
    left, right = first.min(), last.max()
    bbox = (int(left), int(top), int(right - left + 1), int(bottom - top + 1))
    return ClassRegion(class_id, coco_text(counts), int(counts[1::2].sum()), bbox)
