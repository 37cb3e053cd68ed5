"""Questions to a home, and their answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from api.schemas import bodies
from api.schemas.wanted_dataset import NewDataset
from api.services.answering import ask, described, reason_for_none
from api.workspace import Workspace
from query.frames.selection import Question, Selection


@dataclass(frozen=True)
class HomeAnswer:
    """An answer of a home."""

    workspace: Workspace
    selection: Selection

    @property
    def snapshot(self) -> int:
        """The snapshot that was asked."""
        return self.selection.snapshot

    @property
    def classes(self) -> Sequence[str]:
        """The class tags."""
        return self.selection.classes

    @property
    def columns(self) -> Sequence[str]:
        """The frames' columns."""
        names: list[str] = self.table.column_names
        return names

    def __len__(self) -> int:
        """Number of frames."""
        return len(self.selection)

    def rows(self, columns: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        """Columns of the frames."""
        rows: list[dict[str, Any]] = self.table.select(columns).to_pylist()
        return rows

    @property
    def table(self) -> pa.Table:
        """The frames."""
        return self.selection.frames

    @property
    def body(self) -> Mapping[str, Any]:
        """As JSON."""
        found = described(self.workspace, self.selection.question, answered=True)
        return bodies.of_selection(self.selection, found, self.why_empty)

    @cached_property
    def why_empty(self) -> str:
        """Why there are no frames."""
        return reason_for_none(self.workspace, self.selection)

    def save(self, name: str) -> Mapping[str, Any]:
        """Save it as a dataset."""
        from api.services.new_dataset import save_selection  # with the records' database

        question = self.selection.question.model_copy(update={"snapshot": None})
        wanted = NewDataset(name=name, question=question, seed=question.seed)
        return bodies.of_dataset(save_selection(self.workspace, wanted, self.selection))


@dataclass(frozen=True)
class HomeSelections:
    """A home."""

    workspace: Workspace

    def answer(self, question: Question, at: int | None) -> HomeAnswer:
        """Ask it."""
        return HomeAnswer(self.workspace, ask(self.workspace, question, at))

    def meaning(self, question: Question, at: int | None) -> Mapping[str, Any]:
        """What it means."""
        return bodies.of_description(described(self.workspace, question, at))
