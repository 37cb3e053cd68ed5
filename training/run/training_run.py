"""A training run: its parts, on one worker."""

from dataclasses import asdict, dataclass
from typing import Any

from catalog.errors import FramesiftError, JobFailed
from pipeline.manifest import Manifest
from pipeline.prepared.form import PreparedRows
from pipeline.runs.run_length import RunLength
from training.input.label_classes import LabelClasses
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
    """The parts that a training run works with.

    Attributes:
        settings: As they are, nothing left open.
        length: With the workers that it has now.
        planned: With those that it began with, whose number is in its identity.
        frames: Of the split.
        classes: That the network learns.
        prepared: Their prepared form, where there is one.
        workers: This one among all.
        parent: The model that it began with.
        identity: By which it is told from other runs.
        model: Keras model.
        optimizer: Keras optimizer.
        scoring: Of this worker's share of the split to validate on; None without one.
        bad: Frames that it goes on without; None where one ends it.
        scale: Of the loss, where layers compute in halves.
    """

    settings: RunSettings
    length: RunLength
    planned: RunLength
    frames: Manifest
    classes: LabelClasses
    prepared: PreparedRows | None
    workers: Workers
    parent: Parent | None
    identity: RunIdentity
    model: Any
    optimizer: Any
    scoring: Scoring | None = None
    bad: SkippedFrames | None = None
    scale: LossScale | None = None

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
    def about(self) -> AboutModel:
        """The run as its model file says it, after the last step."""
        settings, header = self.settings, self.frames.header
        return AboutModel(
            sha256="",
            network=settings.model,
            step=self.length.max_steps,
            classes=self.classes.names,
            class_list=header.class_list,
            class_map=self.classes.map.as_json() if self.classes.map else None,
            height_px=settings.height_px,
            width_px=settings.width_px,
            workers=self.workers.size,
            dataset={
                "name": header.name,
                "version": header.version,
                "id": header.id,
                "split": settings.split,
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
