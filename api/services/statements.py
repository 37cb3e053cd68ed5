"""Statements in SQL: their rows, and how they would be answered."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from api.services.call import Service
from api.workspace import Workspace
from query.run.run_sql import SqlStream, run_sql, stream_sql

if TYPE_CHECKING:  # imported where it is used: the command sql does without
    from api.schemas.statements import ExplanationAnswer, FirstRows
    from catalog.lake.statement_watch import Cancellation


class SqlRows:
    """The rows of a statement; it runs when they are read.

    Attributes:
        max_rows: How many are given at most.
        timeout_s: How long it may take [s].
        truncated: Whether there are more; None before all that came is read.
    """

    def __init__(self, workspace: Workspace, statement: str, at: int | None) -> None:
        settings = workspace.settings
        self.max_rows, self.timeout_s = settings.query_max_rows, settings.query_timeout_s
        self.truncated: bool | None = None
        self._workspace, self._statement, self._at = workspace, statement, at

    def stream(
        self, cancellation: "Cancellation | None" = None, began: float | None = None
    ) -> AbstractContextManager[SqlStream]:
        """The rows as they come: query.run.run_sql.stream_sql."""
        return stream_sql(
            self._workspace.catalog,  # opened by the thread that reads: it may fail
            self._statement,
            at=self._at,
            max_rows=self.max_rows,
            timeout_s=self.timeout_s,
            cancellation=cancellation,
            began=began,
        )

    @contextmanager
    def reader(self) -> Iterator[pa.RecordBatchReader]:
        """The rows as they come, never the whole in memory."""
        with self.stream() as stream:
            yield pa.RecordBatchReader.from_batches(stream.schema, stream.batches)
            self.truncated = stream.truncated


class Statements(Service):
    """Statements over a home's catalog."""

    def run(self, statement: str, *, at: int | None = None) -> SqlRows:
        """The rows of a SELECT, of a catalog snapshot or the newest."""
        return SqlRows(self._workspace, statement, at)

    def first_rows(self, statement: str, limit: int, *, at: int | None = None) -> "FirstRows":
        """At most so many rows of a SELECT, of a catalog snapshot or the newest."""
        from api.schemas.statements import FirstRows
        from query.run.result_format import to_records

        answer = run_sql(self._workspace.catalog, statement, at=at, max_rows=limit)
        return FirstRows(
            columns=answer.rows.column_names,
            rows=[list(record.values()) for record in to_records(answer.rows)],
            truncated=answer.truncated,
            snapshot=answer.snapshot,
        )

    def explain(self, statement: str, *, at: int | None = None) -> "ExplanationAnswer":
        """Explain how a SELECT would be answered; it is not run."""
        from api.schemas.statements import ExplanationAnswer
        from query.run.explain import explain

        return ExplanationAnswer.of(explain(self._workspace.catalog, statement, at))
