"""Frames page by page, and one with all that is known of it."""

from collections.abc import Sequence
from typing import Any

from api.services.call import Service
from query.frames.frame_order import FrameOrder
from query.frames.frame_page import DEFAULT_COLUMNS, Page, PageStart, fkeys_of, page_of
from query.frames.frame_place import FramePlace, place_of
from query.frames.one_frame import SnapshotFrame, find_frame
from query.frames.select_frames import select_frames
from query.question.question import Question

_ALL = Question()


class Frames(Service):
    """Frames of a home's catalog."""

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
        order: FrameOrder | None = None,
    ) -> tuple[Page, str | None]:
        """A page of frames, and the cursor of the next; None after the last one.

        Args:
            cursors_of: The list that cursors are of: text that is the same for all pages.
            question: Whose frames; see api.services.statistics.frames.frames_of.
            at: The snapshot to ask of the first page; the dataset's, or else the newest, when None.
            columns: Columns and tags of each; fkey is always there.
            cursor: Of the page before; None for the first.
            order: By fkey when None.
        """
        # Here: records and manifests, which one frame needs none of.
        from api.services.statistics.frames import frames_of

        page = page_of(
            self._workspace.catalog,
            frames_of(self._workspace, question, dataset, split, at),
            [name.strip().lower() for name in columns if name.strip()],
            limit,
            PageStart.parse(cursor, cursors_of) if cursor is not None else None,
            order,
        )
        follows = (
            None if page.last is None else PageStart(page.snapshot, page.last).cursor(cursors_of)
        )
        return page, follows

    def fkeys(
        self,
        *,
        question: Question = _ALL,
        dataset: str | None = None,
        split: str | None = None,
        at: int | None = None,
    ) -> list[str]:
        """Every frame of a question: see api.services.statistics.frames.frames_of."""
        from api.services.statistics.frames import frames_of

        frames = frames_of(self._workspace, question, dataset, split, at)
        return fkeys_of(self._workspace.catalog, frames)

    @property
    def snapshot(self) -> int:
        """Number of the newest catalog snapshot."""
        with self._workspace.catalog.reading() as snapshot:
            return snapshot.number

    def place(
        self,
        fkey: str,
        *,
        question: Question = _ALL,
        dataset: str | None = None,
        split: str | None = None,
        at: int | None = None,
        order: FrameOrder | None = None,
    ) -> FramePlace | None:
        """The place of a frame among those of a question; None where it is none of them.

        Args:
            question: Whose frames; see api.services.statistics.frames.frames_of.
            at: As of `page`.
            order: By fkey when None.
        """
        from api.services.statistics.frames import frames_of

        frames = frames_of(self._workspace, question, dataset, split, at)
        return place_of(self._workspace.catalog, frames, fkey, order)

    def get(self, fkey: str, *, at: int | None = None) -> SnapshotFrame:
        """A frame with all columns and tags."""
        return find_frame(self._workspace.catalog, fkey, at)

    def neighbours(
        self, frame: SnapshotFrame, most: int
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Frames of the same camera before and after one in its scene, nearest first.

        Args:
            most: Most frames on each side.

        Returns:
            Fkey and frame number of each; none where the frame lacks scene, camera or number.
        """
        scene, camera, number = (frame.tags.get(n) for n in ("scene", "camera", "frame_number"))
        if scene is None or camera is None or number is None:
            return [], []

        def side(operator: str, order: str) -> list[dict[str, Any]]:
            question = Question.model_validate(
                {
                    "scenes": [scene], "cameras": [camera], "limit": most, "order": [order],
                    "condition": {
                        "kind": "tag", "tag": "frame_number", "op": operator, "value": number,
                    },
                }
            )  # fmt: skip
            table = select_frames(self._workspace.catalog, question, frame.snapshot).frames
            rows: list[dict[str, Any]] = table.select(["fkey", "frame_number"]).to_pylist()
            return rows

        return side("<", "frame_number desc"), side(">", "frame_number")
