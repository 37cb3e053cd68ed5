"""Statements in SQL."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from api.places import chosen
from api.workspace import Workspace
from query.explain import explain
from query.run_sql import stream_sql

if TYPE_CHECKING:  # it imports httpx, which commands on a home do without
    from framesift import Client


@dataclass
class Rows:
    """A statement's rows as they come.

    Attributes:
        schema: The columns.
        batches: The rows, to be read once.
        most: How many are given at most.
        truncated: Whether there are more, or may be; known when the rows have been read.
    """

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    most: int
    truncated: bool = field(default=False)


class Statements(Protocol):
    """Who runs statements."""

    def rows(self, statement: str, at: int | None) -> AbstractContextManager[Rows]:
        """Run it, on a snapshot or the newest."""

    def explained(self, statement: str, at: int | None) -> Mapping[str, Any]:
        """How it would be answered: query.explain.Explanation as JSON."""


def statements() -> Statements:
    """Of the chosen place."""
    if chosen.server() is None:
        return HomeStatements(chosen.home())
    return ServerStatements(chosen.client())


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


@dataclass(frozen=True)
class ServerStatements:
    """A server."""

    server: "Client"

    @contextmanager
    def rows(self, statement: str, at: int | None) -> Iterator[Rows]:
        """Run it."""
        result = self.server.sql(statement, at=at)
        with result.reader() as reader:
            rows = Rows(reader.schema, iter(reader), result.max_rows or 0)
            yield rows
            rows.truncated = bool(result.truncated)

    def explained(self, statement: str, at: int | None) -> Mapping[str, Any]:
        """How it would be answered."""
        body = {"statement": statement}
        return self.server.call("POST", "/v1/sql/explain", body, asked={"at": at})
