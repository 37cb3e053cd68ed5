"""A training run on one worker."""

from dataclasses import asdict, dataclass, field
from typing import Any

from catalog.errors import FramesiftError, JobFailed
from pipeline.cache.reading import ReadsThrough
from pipeline.datasets.chosen_split import UNDIVIDED
from pipeline.manifest import Manifest
from pipeline.prepared.form import PreparedRows
from pipeline.prepared.full_form import FullRows
from pipeline.prepared.label_classes import LabelClasses
from pipeline.runs.run_length import Progress, RunLength
from training.input.frame_reader import FrameReader
from training.input.skipped_frames import SkippedFrames
from training.network.about_model import AboutModel
from training.network.loss_scale import LossScale
from training.run.evaluation import Scoring
from training.run.parent import Parent
from training.run.run_identity import RunIdentity
from training.run.workers import Workers
from training.run_settings import RunSettings


@dataclass(frozen=True)
class Run:
    """A training run that is ready for its first step."""

    settings: RunSettings
    """With a value in place of each default that depends on dataset or machine."""
    length: RunLength
    """With the workers that it has now."""
    planned: RunLength
    """Length with the workers that it began with, whose number is in its identity."""
    frames: Manifest
    """Of the split."""
    through: ReadsThrough
    """The manifest, and the staging that fetches its files meanwhile."""
    reader: FrameReader
    """Of the frames."""
    classes: LabelClasses
    """That the network learns."""
    prepared: PreparedRows | FullRows | None
    """The frames' prepared form; None where each frame is decoded."""
    workers: Workers
    parent: Parent | None
    """The model that it began with; None for new weights."""
    identity: RunIdentity
    """What distinguishes it from other runs."""
    model: Any
    """Keras model."""
    optimizer: Any
    """Keras optimizer."""
    scoring: Scoring | None = None
    """Of this worker's share of the split to validate on; None without validation."""
    bad: SkippedFrames | None = None
    """Bad frames that it skips; None where a bad frame ends it."""
    scale: LossScale | None = None
    """Of the loss; None where layers compute in float32."""
    start: Progress = field(default_factory=Progress)
    """Progress of the checkpoint that it continues."""

    @property
    def skipped(self) -> list[SkippedFrames]:
        """The bad frames of the split trained on, and of that scored on the way."""
        every = (self.bad, self.scoring.bad if self.scoring else None)
        return [bad for bad in every if bad is not None]

    @property
    def state(self) -> list[Any]:
        """The variables beside the model's that a checkpoint keeps, in its order."""
        return [*self.optimizer.variables, *(self.scale.variables if self.scale else ())]

    @property
    def examples_of_step(self) -> int:
        """Examples that all workers read together for a step."""
        return self.settings.batch_size * self.workers.size

    @property
    def warnings(self) -> list[str]:
        """Warnings of the start, which the metrics repeat."""
        if self.settings.split != UNDIVIDED:
            return []
        warning = (
            f"dataset {self.frames.header.name} is not divided: all its frames are trained on, "
            "and none is left to validate with (framesift dataset split)"
        )
        return [warning]

    @property
    def about(self) -> AboutModel:
        """The run as its model file says it, after the last step."""
        settings, header = self.settings, self.frames.header
        return AboutModel(
            sha256="",
            network=settings.model,
            step=self.length.max_steps,
            classes=self.classes.names,
            labels=header.dataset_classes,
            class_map=self.classes.map.as_json() if self.classes.map else None,
            height_px=settings.height,
            width_px=settings.width,
            workers=self.workers.size,
            dataset={
                "name": header.name,
                "version": header.version,
                "id": header.id,
                "split": settings.split,
                "layouts": {
                    source: str(layout.get("name", "")) for source, layout in header.layouts.items()
                },
                "frames": len(self.frames),
                "bad_frames": len(self.bad.listed()) if self.bad else 0,
            },
            settings=settings.as_json(),
            parent=asdict(self.parent) if self.parent else None,
        )


def cannot_go_on(workers: Workers, failure: FramesiftError | None) -> FramesiftError | None:
    """The failure of one worker at least, on all of them: whichever ends the log names it."""
    texts = workers.texts("" if failure is None else str(failure))
    return failure or next((JobFailed("training", text) for text in texts if text), None)
