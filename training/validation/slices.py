"""The scores of parts of a validation: of each scene, each camera, and by tags of the user's."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from catalog.errors import BadFile
from training.validation.frame_cells import FrameCells
from training.validation.intervals import part_intervals
from training.validation.scores import Int64, mean_iou, number_or_none, pixel_accuracy

SLICED_BY = ("camera", "scene")


def read_slices(path: Path, frames: int) -> pa.Table:
    """Reads each frame's slice of each tag, as the job's submission wrote it.

    Raises:
        BadFile: It is missing, damaged, or of another split.
    """
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise BadFile(f"slices cannot be read: {' '.join(str(error).split())}", str(path)) from (
            error
        )
    if len(table) != frames:
        raise BadFile(f"has slices of {len(table):,} frames, and the split {frames:,}", str(path))
    return table.drop_columns([name for name in SLICED_BY if name in table.column_names])


def with_slices(scores: pa.Table, slices: pa.Table) -> pa.Table:
    """A shard's scores with the parts that its frames are in."""
    of_rows = slices.take(scores["row"])
    for name in slices.column_names:
        scores = scores.append_column(_COLUMN + name, of_rows[name])
    return scores


_COLUMN = "slice: "
"""Before a tag's name, which may be that of a score."""


class Slices:
    """Confusion matrices of the parts of a validation, added up shard by shard."""

    def __init__(self, by: str, classes: Sequence[str]) -> None:
        """Begin with no frame.

        Args:
            by: "camera", "scene", or a tag.
            classes: Names; a class id is a position in this list.
        """
        self._by, self._classes = by, classes
        self._matrices: dict[str, Int64] = {}
        self._frames: dict[str, int] = {}
        self._of_scenes: dict[str, dict[str, Int64]] = {}
        """Of each value and scene the class sums: a twelfth of a matrix of 38 classes."""

    def add(self, scores: pa.Table, cells: FrameCells) -> None:
        """Add a shard's frames.

        Args:
            scores: Schema training.validation.frame_cells.FRAMES_SCHEMA, and a column of the tag.
        """
        column = self._by if self._by in SLICED_BY else _COLUMN + self._by
        values = scores[column].to_pylist()
        names = sorted(set(values))
        index = {value: n for n, value in enumerate(names)}
        size = len(self._classes)
        sums = np.zeros((len(names), size * size), np.int64)
        group = np.array([index[value] for value in values], np.int64)
        cells.add_to(sums, group)
        for name, matrix, frames in zip(
            names, sums.reshape(-1, size, size), np.bincount(group).tolist(), strict=True
        ):
            self._frames[name] = self._frames.get(name, 0) + frames
            self._matrices[name] = (
                self._matrices[name] + matrix if name in self._matrices else matrix
            )
        if self._by != "scene":  # one scene has no interval
            self._add_scenes(values, scores["scene"].to_pylist(), cells)

    def _add_scenes(self, values: Sequence[str], scenes: Sequence[str], cells: FrameCells) -> None:
        """Add the class sums of a shard's frames to those of their values and scenes."""
        parts = [*zip(values, scenes, strict=True)]
        names = [*dict.fromkeys(parts)]
        index = {part: n for n, part in enumerate(names)}
        group = np.array([index[part] for part in parts], np.int64)
        sums = cells.class_sums(group, len(names), len(self._classes))
        for (value, scene), its in zip(names, sums, strict=True):
            of_value = self._of_scenes.setdefault(value, {})
            of_value[scene] = of_value[scene] + its if scene in of_value else its

    def matrices(self) -> dict[str, Int64]:
        """(C, C) int64 of each value, sorted by it."""
        return dict(sorted(self._matrices.items()))

    def result(self) -> list[Mapping[str, Any]]:
        """Those of report.json, by value.

        Returns:
            Of each `value`, `frames`, `miou`, `pixel_accuracy`, `classes_with_truth`, `scenes` (how
            many it has frames of), and the intervals `miou_interval` and
            `pixel_accuracy_interval` (training.validation.intervals), None in one scene.
        """
        return [
            {
                "value": value,
                "frames": self._frames[value],
                "miou": number_or_none(mean_iou(matrix)),
                "pixel_accuracy": number_or_none(pixel_accuracy(matrix)),
                "classes_with_truth": [
                    name for name, row in zip(self._classes, matrix, strict=True) if row.any()
                ],
                **self._intervals(value),
            }
            for value, matrix in self.matrices().items()
        ]

    def _intervals(self, value: str) -> dict[str, Any]:
        if self._by == "scene":
            return {"scenes": 1, "miou_interval": None, "pixel_accuracy_interval": None}
        of_scenes = dict(sorted(self._of_scenes[value].items()))
        intervals = part_intervals(np.array([*of_scenes.values()], np.int64))
        return {
            "scenes": intervals["scenes"],
            "miou_interval": intervals["miou"],
            "pixel_accuracy_interval": intervals["pixel_accuracy"],
        }
