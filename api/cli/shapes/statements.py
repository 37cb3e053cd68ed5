"""Statements in SQL: api.services.statements and framesift.sql."""

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from api.cli.shapes.record import Record

if TYPE_CHECKING:
    import pyarrow as pa


class SqlRows(Protocol):
    """See api.services.statements.SqlRows."""

    @property
    def max_rows(self) -> int | None: ...

    @property
    def truncated(self) -> bool | None: ...

    def reader(self) -> AbstractContextManager["pa.RecordBatchReader"]: ...


class Statements(Protocol):
    """See api.services.statements.Statements."""

    def run(self, statement: str, *, at: int | None = None) -> SqlRows: ...

    def explain(self, statement: str, *, at: int | None = None) -> Record: ...
