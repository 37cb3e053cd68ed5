"""A shard's results: sums over its frames, and each frame's scores, cells and pictures."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ingest.labels.class_list import UNKNOWN_CLASS
from ingest.labels.numbered_colours import NumberedColours
from pipeline.prepared.decoded_frames import UInt8, nearest, small_image
from pipeline.prepared.label_classes import LabelClasses
from pipeline.runs.size import Size
from training.input.frame_reader import Frame, LabelledFrame
from training.input.split_shards import FrameId
from training.network.frame_prediction import FramePrediction
from training.validation.frame_cells import FrameScore, Int32, cells_of
from training.validation.frame_pictures import PictureSelection, pictures_of
from training.validation.metrics.confusion import Confusion
from training.validation.metrics.metric import DrawnMetric, Metric, ScoredFrame
from training.validation.metrics.table import DRAWN
from training.validation.scene_sums import SceneSums, sums_of
from training.validation.scores import confusion_matrix, mean_iou, pixel_accuracy
from training.validation.small_copies import small_copy


@dataclass
class ShardSums:
    """Sums over the frames of a shard, and the scores and cells of each frame."""

    confusion: Confusion
    scenes: dict[str, dict[str, DrawnMetric]] = field(default_factory=dict)
    """Of each scene the metrics of DRAWN."""
    frames: list[FrameScore] = field(default_factory=list)
    cells: list[tuple[Int32, Int32]] = field(default_factory=list)
    skipped: list[Mapping[str, Any]] = field(default_factory=list)
    selection: PictureSelection | None = field(default_factory=PictureSelection)
    """None where pictures are drawn afterwards, as no image was decoded."""
    small: list[bytes] | None = None
    """The prediction of each frame, small; None where none is kept."""
    numbered: UInt8 = field(default_factory=lambda: np.full(256, UNKNOWN_CLASS, np.uint8))
    """(256,) uint8 [class id] of each of the labels' colours that numbers objects, else 255."""

    @classmethod
    def empty(
        cls,
        classes: LabelClasses,
        numbered: NumberedColours | None,
        *,
        draws: bool = True,
        keeps_small: bool = False,
    ) -> "ShardSums":
        """Those of no frame; of labels with these numbered colours, with pictures if it draws."""
        sums = cls(Confusion.empty(len(classes)))
        if not draws:
            sums.selection = None
        if keeps_small:
            sums.small = []
        if numbered is not None:
            sums.numbered = numbered.merged_classes(classes.of_label)
        return sums

    def add(
        self,
        frame_id: FrameId,
        frame: Frame | LabelledFrame,
        prediction: FramePrediction,
        classes: LabelClasses,
    ) -> None:
        """Compare a prediction with its frame's label, at the label's own size."""
        label, best = frame.label, prediction.best
        ids = best.at_size(*label.shape)
        matrix, ignored = confusion_matrix(label, ids, len(classes))
        small_ids = best.ids
        size = Size(*small_ids.shape)  # the network's output, which may be smaller than its input
        small = nearest(label, size)
        miou = mean_iou(matrix) if matrix.any() else None
        if self.selection is not None:
            self.selection.add(
                frame_id.row,
                miou,
                prediction.uncertainty,
                lambda: pictures_of(
                    frame_id.row,
                    frame.image if frame.size == size else small_image(frame.image, size),
                    small,
                    small_ids.astype(np.uint8),
                    classes.colours,
                ),
            )
        scored = ScoredFrame(
            label,
            ids,
            matrix,
            small,
            small_ids,
            prediction.confidence,
            prediction.uncertainty,
            prediction.margin,
            prediction.disagreement,
            frame.colours,
            self.numbered,
        )
        self.confusion.update(scored)
        for metric in self._of_scene(frame_id.scene).values():
            metric.update(scored)
        if self.small is not None:
            self.small.append(small_copy(ids, classes.colours))
        self.cells.append(cells_of(matrix))
        pixels = int(matrix.sum())
        self.frames.append(
            FrameScore(
                fkey=frame_id.fkey,
                row=frame_id.row,
                scene=frame_id.scene,
                camera=frame_id.camera,
                pixels=pixels,
                ignored_pixels=ignored,
                accuracy=pixel_accuracy(matrix) if pixels else None,
                loss=prediction.loss(small),
                uncertainty=prediction.uncertainty,
                margin=prediction.margin,
                miou=miou,
                disagreement=prediction.disagreement,
            )
        )

    def _of_scene(self, scene: str) -> dict[str, DrawnMetric]:
        if scene not in self.scenes:
            number = len(self.confusion.matrix)
            self.scenes[scene] = {name: metric.empty(number) for name, metric in DRAWN.items()}
        return self.scenes[scene]

    @property
    def metrics(self) -> dict[str, Metric]:
        """All metrics of the shard's frames, by name."""
        metrics: dict[str, Metric] = {"scores": self.confusion}
        for name, metric in DRAWN.items():
            metrics[name] = metric.empty(len(self.confusion.matrix))
            for of_scene in self.scenes.values():
                metrics[name].merge(of_scene[name])
        return metrics

    @property
    def scene_sums(self) -> SceneSums:
        """The sums of each scene."""
        return {scene: sums_of(metrics) for scene, metrics in self.scenes.items()}
