"""Pictures of frames, models' predictions of them, and what their colours mean."""

from collections.abc import Collection
from dataclasses import dataclass

from api.frame_images.drawing import Look
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
    predictions_of,
    scored_prediction,
    scored_predictions,
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
            scored_by: A validation; where it scored predictions of another program, the frame's
                comes first, if it is there.
        """
        scored = scored_by and scored_prediction(self._workspace, frame.fkey, scored_by)
        return [*([scored] if scored else []), *predictions_of(self._workspace, frame.fkey)]

    def scored(self, job: str, fkeys: Collection[str]) -> frozenset[str] | None:
        """Those of some frames whose predictions, of another program, a validation scored.

        Of these those that lie where it read them, as they were.

        Returns:
            None where the job scored no predictions of another program.

        Raises:
            NotFound: There is no such job.
        """
        try:
            given = scored_predictions(self._workspace, job)
        except BadFile:  # what the job says of them
            return frozenset()
        return None if given is None else given.there(self._workspace, fkeys)

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
