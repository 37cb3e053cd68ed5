"""Statements in SQL."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from api.cli import chosen

if TYPE_CHECKING:
    import pyarrow as pa

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

    schema: "pa.Schema"
    batches: "Iterator[pa.RecordBatch]"
    most: int
    truncated: bool = field(default=False)


class Statements(Protocol):
    """Who runs statements."""

    def rows(self, statement: str, at: int | None) -> AbstractContextManager[Rows]:
        """Run it, on a snapshot or the newest."""

    def explained(self, statement: str, at: int | None) -> Mapping[str, Any]:
        """How it would be answered: query.run.explain.Explanation as JSON."""


def statements() -> Statements:
    """Of the chosen place."""
    if chosen.server() is not None:
        return ServerStatements(chosen.client())
    from api.places.home.statements import HomeStatements

    return HomeStatements(chosen.home())


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
