"""Frames page by page, and one with all that is known of it."""

from collections.abc import Sequence

from api.workspace import Workspace
from query.frames.frame_page import DEFAULT_COLUMNS, Page, Place, page_of
from query.frames.one_frame import FoundFrame, find_frame
from query.question.question import Question

_ALL = Question()


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
            question: Whose frames; see api.services.statistics.frames.frames_of.
            dataset: Only the frames of this one.
            split: Only those of this split of it.
            at: The snapshot to ask of the first page; the dataset's, or else the newest, when None.
            columns: Columns and tags of each; fkey is always there.
            limit: Frames of a page.
            cursor: Of the page before; None for the first.

        Raises:
            InvalidInput: The cursor is of another list.
        """
        # Here: records and manifests, which one frame needs none of.
        from api.services.statistics.frames import frames_of

        page = page_of(
            self._workspace.catalog,
            frames_of(self._workspace, question, dataset, split, at),
            [name.strip().lower() for name in columns if name.strip()],
            limit,
            Place.parse(cursor, cursors_of) if cursor is not None else None,
        )
        follows = None if page.last is None else Place(page.snapshot, page.last).cursor(cursors_of)
        return page, follows

    def get(self, fkey: str, *, at: int | None = None) -> FoundFrame:
        """A frame with all columns and tags.

        Raises:
            NotFound: There is none of that name.
        """
        return find_frame(self._workspace.catalog, fkey, at)
