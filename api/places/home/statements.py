"""Statements in SQL, of a home."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from api.places.statements import Rows
from api.workspace import Workspace
from query.run.explain import explain
from query.run.run_sql import stream_sql


@dataclass(frozen=True)
class HomeStatements:
    """A home."""

    workspace: Workspace

    @contextmanager
    def rows(self, statement: str, at: int | None) -> Iterator[Rows]:
        """Run it."""
        settings = self.workspace.settings
        most, timeout_s = settings.query_max_rows, settings.query_timeout_s
        with stream_sql(
            self.workspace.catalog, statement, at=at, max_rows=most, timeout_s=timeout_s
        ) as stream:
            rows = Rows(stream.schema, stream.batches, most)
            yield rows
            rows.truncated = stream.truncated

    def explained(self, statement: str, at: int | None) -> Mapping[str, Any]:
        """How it would be answered."""
        timeout_s = self.workspace.settings.query_timeout_s
        return asdict(explain(self.workspace.catalog, statement, at, timeout_s))
