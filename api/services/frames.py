"""Frames page by page, and one with all that is known of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from api.frame_images.drawing import Look
from api.frame_images.pictures import frame_of
from api.frame_images.predictions import (
    Prediction,
    PredictionChoice,
    made_prediction,
    predictions_of,
)
from api.frame_images.source_file import source_of
from api.services.statistics.dataset_statistics import frames_of
from api.workspace import Workspace
from ingest.labels.palette import Palette
from query.frames.frame_page import DEFAULT_COLUMNS, Page, Place, page_of
from query.frames.one_frame import FoundFrame
from query.frames.selection import Question

_ALL = Question()


@dataclass(frozen=True)
class LegendClass:
    """A class of a frame's label.

    Attributes:
        tag: The tag that counts its pixels.
        name: The class's name.
        colour: In the label, as CSS writes it.
        pixels: Of the frame.
    """

    tag: str
    name: str
    colour: str
    pixels: int


class Frames:
    """Frames of a home's catalog."""

    def __init__(self, workspace: Workspace) -> None:
        """Those that the workspace's caller may see."""
        self._workspace = workspace

    def page(
        self,
        cursors_of: str,
        *,
        question: Question = _ALL,
        dataset: str | None = None,
        split: str | None = None,
        at: int | None = None,
        columns: Sequence[str] = DEFAULT_COLUMNS,
        limit: int = 100,
        cursor: str | None = None,
    ) -> tuple[Page, str | None]:
        """A page of frames by fkey, and the cursor of the next; None after the last one.

        Args:
            cursors_of: The list that cursors are of: text that is the same for all pages.
            question: Whose frames; see api.services.statistics.dataset_statistics.frames_of.
            dataset: Only the frames of this one.
            split: Only those of this split of it.
            at: The snapshot to ask of the first page; the dataset's, or else the newest, when None.
            columns: Columns and tags of each; fkey is always there.
            limit: Frames of a page.
            cursor: Of the page before; None for the first.

        Raises:
            InvalidInput: The cursor is of another list.
        """
        page = page_of(
            self._workspace.catalog,
            frames_of(self._workspace, question, dataset, split, at),
            [name.strip().lower() for name in columns if name.strip()],
            limit,
            Place.parse(cursor, cursors_of) if cursor is not None else None,
        )
        follows = None if page.last is None else Place(page.snapshot, page.last).cursor(cursors_of)
        return page, follows

    def legend(self, frame: FoundFrame) -> list[LegendClass]:
        """The classes of a frame's label, most pixels first; none where it has no label."""
        if frame.label is None:
            return []
        source = source_of(self._workspace, frame.file["cluster"], frame.file["datasource"])
        palette = Palette.from_class_list(source.class_list)
        colours = {
            number: colour for colour, number in reversed([*palette.class_of_colour.items()])
        }
        classes = [
            LegendClass(tag, name, f"#{colours[number]:06x}", pixels)
            for number, (tag, name) in enumerate(zip(palette.tags, palette.classes, strict=True))
            if (pixels := frame.tags.get(tag) or 0) > 0
        ]
        return sorted(classes, key=lambda each: -each.pixels)

    def predictions(self, frame: FoundFrame) -> list[Prediction]:
        """Models' predictions of a frame, the newest of each model's jobs that are done."""
        return predictions_of(self._workspace, frame.fkey)

    def prediction(self, fkey: str, choice: PredictionChoice, look: Look) -> bytes:
        """A model's prediction over a frame's camera image, as a file holds it.

        Raises:
            NotFound: There is no such frame or prediction.
            UnknownName: There is no such class.
            BadFile: A file cannot be drawn.
        """
        return made_prediction(self._workspace, fkey, look, choice).made()

    def get(self, fkey: str, *, at: int | None = None) -> FoundFrame:
        """A frame with all columns and tags.

        Raises:
            NotFound: There is none of that name.
        """
        return frame_of(self._workspace, fkey, at)
