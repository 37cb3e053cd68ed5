"""Questions and their answers: api.services.selections and framesift.selection."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from api.cli.shapes.record import Record

if TYPE_CHECKING:
    import pyarrow as pa

    from query.question.question import Question


class Answer(Protocol):
    """See api.services.selections.Answer."""

    def __len__(self) -> int: ...

    @property
    def snapshot(self) -> int: ...

    @property
    def classes(self) -> Sequence[str]: ...

    @property
    def why_empty(self) -> str: ...

    @property
    def left_out(self) -> str: ...

    @property
    def document(self) -> Mapping[str, Any]: ...

    def to_arrow(self) -> "pa.Table": ...

    def save(self, name: str) -> Record: ...


class Selections(Protocol):
    """See api.services.selections.Selections."""

    def ask(
        self, question: "Question", *, at: int | None = None, columns: Sequence[str] = ()
    ) -> Answer: ...

    def describe(self, question: "Question", *, at: int | None = None) -> Record: ...
