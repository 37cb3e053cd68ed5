"""Searches as Spectrum Discover's clients ask them: for records, or for groups and counts."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pyarrow as pa

from api.services.call import Service
from catalog.lake.snapshot import Snapshot
from catalog.lake.statement_watch import Cancellation
from query.discover.search import FACETS, Search, SearchSql, to_sql
from query.run.run_sql import SqlStream, stream_on


class SearchAnswer:
    """The answer to a search, all of it of one snapshot.

    Attributes:
        table: The view or summary that was asked.
        is_summary: Whether its rows are groups, with their counts.
    """

    def __init__(
        self, snapshot: Snapshot, statements: SearchSql, max_rows: int, cancellation: Cancellation
    ) -> None:
        """Nothing is asked yet.

        Args:
            snapshot: The snapshot, which is being read.
            max_rows: Rows beyond these are left out.
            cancellation: Ends what is asked.
        """
        self._snapshot, self._statements = snapshot, statements
        self._max_rows, self._cancellation = max_rows, cancellation
        self.table, self.is_summary = statements.table, statements.facets is not None

    def rows(self) -> AbstractContextManager[SqlStream]:
        """The records or groups as they come: query.run.run_sql.stream_on."""
        return self._stream(self._statements.rows)

    def count(self) -> int:
        """Number of records, those that are left out included."""
        with self._stream(self._statements.counting) as stream:
            return int(next(stream.batches).column(0)[0].as_py())

    def facets(self) -> tuple[dict[str, list[dict[str, Any]]], int]:
        """A summary: each facet's values with their files, most first; and the number of files."""
        with self._stream(self._statements.facets or "") as stream:
            counts = pa.Table.from_batches(stream.batches, stream.schema)
        numbers = pa.array([int(number) for number in counts["count"].to_pylist()], pa.int64())
        facets = {}
        for field in FACETS:
            table = pa.table({field: counts[field], "count": numbers})
            rows = table.group_by(field).aggregate([("count", "sum")]).to_pylist()
            values = [{field: row[field], "count": row["count_sum"]} for row in rows]
            facets[field] = sorted(values, key=lambda row: (-row["count"], str(row[field])))
        return facets, sum(numbers.to_pylist())

    def _stream(self, statement: str) -> AbstractContextManager[SqlStream]:
        return stream_on(
            self._snapshot, statement, max_rows=self._max_rows, cancellation=self._cancellation
        )


class Searches(Service):
    """Searches of a home's catalog."""

    @contextmanager
    def find(self, search: Search, cancellation: Cancellation) -> Iterator[SearchAnswer]:
        """The answer to a search, while the block runs."""
        with self._workspace.catalog.reading() as snapshot:
            statements = to_sql(search, snapshot.schema)
            max_rows = self._workspace.settings.query_max_rows
            yield SearchAnswer(snapshot, statements, max_rows, cancellation)
