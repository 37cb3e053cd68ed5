"""Pictures of frames, models' predictions of them, and what their colours mean."""

from collections.abc import Collection
from dataclasses import dataclass

from api.frame_images.drawing import Look
from api.frame_images.given_predictions import OF_JOB
from api.frame_images.image_cache import ImageCache
from api.frame_images.made_image import MadeImage
from api.frame_images.pictures import (
    both_files,
    cache_of,
    image_file,
    label_file,
    made_image,
    made_label,
    made_overlay,
)
from api.frame_images.predictions import (
    Prediction,
    PredictionChoice,
    made_prediction,
    models_with_predictions,
    predicted_by,
    predictions_of,
    scored_prediction,
    scored_predictions,
    small_predictions_of,
    validated_model,
)
from api.frame_images.source_file import SourceFile, source_of
from api.services.call import Service
from catalog.errors import BadFile
from ingest.labels.class_list import ClassList
from query.frames.one_frame import SnapshotFrame


@dataclass(frozen=True)
class LegendClass:
    """A class of a frame's label."""

    tag: str
    """The tag that counts its pixels."""
    name: str
    """The class's name."""
    colour: str
    """In the label, as CSS writes it."""
    pixels: int
    """Of the frame."""


@dataclass(frozen=True)
class ValidatedFrames:
    """What pages may draw of a validation's predictions of some frames."""

    job: str
    """The validation."""
    model: str
    """Of its model."""
    full: frozenset[str]
    """Frames that a prediction job of the model has at full size."""
    scored: frozenset[str]
    """Frames whose predictions the validation itself has, as it scored them."""
    is_given: bool
    """Whether these are another program's files, at full size, and not small copies."""

    def layer(self, fkey: str) -> str:
        """What stands for a frame's prediction in `View.over`; "" where there is none."""
        if fkey in self.full:
            return self.model
        return f"{OF_JOB}{self.job}" if fkey in self.scored else ""

    @property
    def are_small(self) -> bool:
        """Whether some of the frames have a small copy alone."""
        return not self.is_given and bool(self.scored - self.full)


class Pictures(Service):
    """Pictures of a home's frames. Those that are drawn are drawn when their bytes are asked for.

    Each of a frame's pictures raises NotFound where there is no such frame, it has no such picture,
    or a file is gone.
    """

    @property
    def cache(self) -> ImageCache:
        """Where the home keeps drawn pictures."""
        return cache_of(self._workspace)

    def image_file(self, fkey: str) -> SourceFile:
        """The file of a frame's camera image."""
        return image_file(self._workspace, fkey)

    def label_file(self, fkey: str) -> SourceFile:
        """The file of a frame's label."""
        return label_file(self._workspace, fkey)

    def image(self, fkey: str, look: Look) -> MadeImage:
        """A frame's camera image, drawn again."""
        return made_image(self.image_file(fkey), look)

    def label(self, fkey: str, look: Look) -> MadeImage:
        """A frame's label in its own colours, drawn again."""
        return made_label(self.label_file(fkey), look)

    def overlay(
        self, fkey: str, look: Look, alpha: float = 0.5, classes: str | None = None
    ) -> MadeImage:
        """A frame's label blended over its camera image.

        Args:
            look: How it comes out.
            alpha: How much of the label shows, 0 to 1.
            classes: Only these, tags or names with commas between; all when None.
        """
        return made_overlay(both_files(self._workspace, fkey), look, alpha, classes)

    def prediction(self, fkey: str, choice: PredictionChoice, look: Look) -> MadeImage:
        """A model's prediction over the camera image, or the pixels that differ from the label."""
        return made_prediction(self._workspace, fkey, look, choice)

    def predictions(self, frame: SnapshotFrame, scored_by: str = "") -> list[Prediction]:
        """Models' predictions of a frame, the newest of each model's jobs that are done.

        Args:
            scored_by: A validation, whose own comes first, if it is there: of another program, or
                the small copy where no job predicted the frame with its model.
        """
        made = predictions_of(self._workspace, frame.fkey)
        scored = scored_prediction(self._workspace, frame.fkey, scored_by) if scored_by else None
        if scored is None or (scored.is_small and scored.model in {one.model for one in made}):
            return made
        return [scored, *made]

    def validated(self, job: str, model: str, fkeys: Collection[str]) -> ValidatedFrames:
        """What may be drawn of a validation's predictions of some frames.

        Of another program's predictions those that lie where it read them, as they were.

        Args:
            job: The validation.
            model: The name of its model, as its report has it.
            fkeys: The frames.

        Raises:
            NotFound: There is no such job.
        """
        try:
            given = scored_predictions(self._workspace, job)
        except BadFile:  # what the job says of them
            return ValidatedFrames(job, model, frozenset(), frozenset(), is_given=True)
        if given is not None:
            there = given.there(self._workspace, fkeys)
            return ValidatedFrames(job, model, frozenset(), there, is_given=True)
        full = predicted_by(self._workspace, model, fkeys)
        small = small_predictions_of(self._workspace, job, fkeys)
        return ValidatedFrames(job, model, full, small, is_given=False)

    def model_of(self, job: str) -> str:
        """The name of the model that a job is of, as predictions have it; "" without such a job."""
        return validated_model(self._workspace, job)

    def models(self) -> list[str]:
        """Names of the models of the newest prediction jobs that are done, newest first."""
        return models_with_predictions(self._workspace)

    def colours(self, frame: SnapshotFrame) -> dict[str, str]:
        """Class name of each colour that a frame's label or a prediction of it may be drawn in."""
        source = source_of(self._workspace, frame.file["cluster"], frame.file["datasource"])
        class_list = ClassList.from_json(source.class_list)
        named = {f"#{key.colour:06x}": key.name for key in class_list.keys}
        for name, colour in zip(class_list.classes, class_list.class_colours.tolist(), strict=True):
            named["#{:02x}{:02x}{:02x}".format(*colour)] = name
        return named

    def legend(self, frame: SnapshotFrame) -> list[LegendClass]:
        """The classes of a frame's label, most pixels first; none where it has no label."""
        if frame.label is None:
            return []
        source = source_of(self._workspace, frame.file["cluster"], frame.file["datasource"])
        class_list = ClassList.from_json(source.class_list)
        rows = zip(
            class_list.tags, class_list.classes, class_list.class_colours.tolist(), strict=True
        )
        classes = [
            LegendClass(tag, name, "#{:02x}{:02x}{:02x}".format(*colour), pixels)
            for tag, name, colour in rows
            if (pixels := frame.tags.get(tag) or 0) > 0
        ]
        return sorted(classes, key=lambda each: -each.pixels)
