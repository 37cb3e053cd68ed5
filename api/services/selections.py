"""Questions: their answers, and what they mean."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from api.schemas.selections import DescriptionAnswer, OperatorsAnswer
from api.services.call import Service
from api.workspace import Workspace
from query.frames.select_frames import select_rows
from query.frames.selection import SelectedRows
from query.question.condition import leaves
from query.question.describe import Description, describe
from query.question.question import Question
from query.question.unknown_values import unknown_values
from query.question.why_empty import why_empty

if TYPE_CHECKING:
    from api.schemas.datasets import DatasetBody
    from query.run.kept_rows import KeptRows


class Answer:
    """The frames that answer a question."""

    def __init__(self, workspace: Workspace, selection: SelectedRows) -> None:
        self._workspace, self._selection = workspace, selection

    def __len__(self) -> int:
        """Number of frames."""
        return len(self._selection)

    @property
    def snapshot(self) -> int:
        """The catalog snapshot that was asked."""
        return self._selection.snapshot

    @property
    def classes(self) -> Sequence[str]:
        """The class tags, in class order."""
        return self._selection.classes

    @property
    def asked_classes(self) -> list[str]:
        """The class tags that the question's conditions name, in their order."""
        named = leaves(self._selection.question.conditions())
        tags = [str(leaf.tag) for leaf in named if hasattr(leaf, "tag")]
        return [tag for tag in dict.fromkeys(tags) if tag in self.classes]

    @cached_property
    def why_empty(self) -> str:
        """Why there are no frames; empty where there are some."""
        if len(self):
            return ""
        reason = why_empty(self._workspace.catalog, self._selection.question)
        return f"{reason}; {self.left_out}" if self.left_out else reason

    @cached_property
    def left_out(self) -> str:
        """How many frames ``!=`` leaves out as they have no value; empty where that is none."""
        return unknown_values(self._workspace.catalog, self._selection.question)

    @property
    def about(self) -> dict[str, Any]:
        """`document` without the frames."""
        description = described(self._workspace, self._selection.question, answered=True)
        return {
            **DescriptionAnswer.of(description).model_dump(mode="json"),
            "count": len(self),
            "class_pixels": self._selection.class_pixels(),
            **({"why_empty": self.why_empty} if self.why_empty else {}),
            **({"left_out": self.left_out} if self.left_out else {}),
        }

    @property
    def document(self) -> Mapping[str, Any]:
        """The answer as JSON: api.schemas.selections.SelectionAnswer."""
        from query.run.result_format import to_records

        return {**self.about, "frames": to_records(self.to_arrow())}

    @property
    def rows(self) -> "KeptRows":
        """The frames, which need not fit into memory."""
        return self._selection.rows

    def to_arrow(self) -> pa.Table:
        """The frames: see query.frames.selection.Selection."""
        return self._selection.rows.table()

    def save(self, name: str) -> "DatasetBody":
        """Save the frames as a dataset's new version."""
        from api.schemas.datasets import DatasetBody
        from api.schemas.new_datasets import NewDataset
        from api.services.datasets.new_dataset import save_selection  # with the records' database

        question = self._selection.question
        request = NewDataset(name=name, question=question, seed=question.seed)
        saved = save_selection(self._workspace, request, self._selection.selection)
        return DatasetBody.of(saved, self._workspace.place)


class Selections(Service):
    """Questions to a home's catalog."""

    def ask(
        self,
        question: Question,
        *,
        at: int | None = None,
        columns: Sequence[str] = (),
        only: bool = False,
    ) -> Answer:
        """The frames that answer a question, of a catalog snapshot or the newest.

        Args:
            columns: Tags and columns beside those of every selection.
            only: Read no others.
        """
        chosen = select_rows(self._workspace.catalog, question, at, columns, only=only)
        return Answer(self._workspace, chosen)

    def describe(self, question: Question, *, at: int | None = None) -> DescriptionAnswer:
        """Describe a question; it is checked, and not asked."""
        return DescriptionAnswer.of(described(self._workspace, question, at))

    def operators(self) -> OperatorsAnswer:
        """The operators of conditions on tags, and the DuckDB types that make each type of tag."""
        return OperatorsAnswer.all()


def described(
    workspace: Workspace, question: Question, at: int | None = None, *, answered: bool = False
) -> Description:
    """Describe a question without asking it; of a catalog snapshot or the newest."""
    return describe(workspace.catalog, question, at, answered=answered)
