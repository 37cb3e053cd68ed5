"""The answer to a statement in SQL."""

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import islice
from typing import TYPE_CHECKING, Any

import httpx

from framesift.forms.notebook import rows_html
from framesift.forms.optional import imported
from framesift.forms.tables import data_frame, rows_of
from framesift.http.transport import Transport
from framesift.warn import warn

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped,unused-ignore]
    import pyarrow as pa

_JSON = "application/json"
_LINES = "application/x-ndjson"
_ARROW = "application/vnd.apache.arrow.stream"
_SHOWN = 20
_SAID = 200
"""Characters of a statement that a warning repeats."""


class Statements:
    """Statements over the server's catalog, in Db2's SQL."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __repr__(self) -> str:
        """The server; nothing is asked."""
        return f"<Statements of {self._transport.url}>"

    def run(self, statement: str, *, at: int | None = None) -> "SqlResult":
        """The rows of a SELECT; it runs when they are first asked for.

        Args:
            statement: Over metaocean, metaocean_view and t_<tag>.
            at: The catalog snapshot to ask; the newest when None.
        """
        return SqlResult(statement, at, self._transport)

    def explain(self, statement: str, *, at: int | None = None) -> Mapping[str, Any]:
        """Explain how a SELECT would be answered: DuckDB's SQL, the tables, and an estimate.

        Args:
            statement: As of `run`; it is not run.
            at: The catalog snapshot to ask; the newest when None.

        Raises:
            FramesiftServerError: The server refuses the statement, or does not answer.
        """
        body = {"statement": statement}
        return self._transport.json("POST", "/v1/sql/explain", body, query={"at": at})


class SqlResult:
    """The rows of a statement. The server runs it once, when a caller first reads them in any form.

    A server answers a statement with `max_rows` rows at most. Where an answer has as many, more may
    be left out: reading it warns with a FramesiftWarning.

    Attributes:
        statement: The statement.
        max_rows: The most rows that the server answers with; None before it has answered, and where
            it does not say.
        truncated: Whether the answer has `max_rows` rows, so that more may be left out; None before
            all rows are read, and where the server does not say `max_rows`.
    """

    def __init__(self, statement: str, at: int | None, transport: Transport) -> None:
        self.statement = statement
        self.max_rows: int | None = None
        self.truncated: bool | None = None
        self._body = {"statement": statement} | ({} if at is None else {"at": at})
        self._transport = transport
        self._rows: Sequence[Mapping[str, Any]] | None = None
        self._table: pa.Table | None = None

    def __repr__(self) -> str:
        """The statement."""
        return f"<SqlResult {self.statement!r}>"

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        """The rows, in order."""
        return iter(self.rows)

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.rows)

    @property
    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Every row, by column name; what JSON has no word for is text.

        Raises:
            FramesiftServerError: The server refuses the statement, or does not answer.
        """
        if self._rows is None:
            # As Arrow where that can be read: other forms are then made of the same answer.
            self._rows = self._json_rows() if _has_no_arrow() else rows_of(self.to_arrow())
        return self._rows

    def to_arrow(self) -> "pa.Table":
        """The rows as a pyarrow.Table, with the server's types.

        Raises:
            MissingPackage: There is no pyarrow.
            FramesiftServerError: The server refuses the statement, or does not answer.
        """
        if self._table is None:
            pa = imported("pyarrow")
            answer = self._transport.send("POST", "/v1/sql", **self._request(_ARROW))
            table = pa.ipc.open_stream(pa.py_buffer(answer.content)).read_all()
            self._came(table.num_rows, answer)
            self._table = table
        return self._table

    def to_pandas(self) -> "pd.DataFrame":
        """The rows as a pandas.DataFrame: integers as such, other decimals as Decimal.

        Counts and sums, which are decimals in Db2, are int64 where they fit; integers with missing
        values are Int64.

        Raises:
            MissingPackage: There is no pyarrow, or no pandas.
            FramesiftServerError: The server refuses the statement, or does not answer.
        """
        return data_frame(self.to_arrow())

    @contextmanager
    def reader(self) -> Iterator["pa.RecordBatchReader"]:
        """The rows as they come, never the whole in memory; the statement runs for each reader.

        Raises:
            MissingPackage: There is no pyarrow.
            FramesiftServerError: The server refuses the statement, does not answer or breaks off.
        """
        pa = imported("pyarrow")
        with self._transport.streaming("POST", "/v1/sql", **self._request(_ARROW)) as answer:
            self.max_rows = _max_rows(answer)
            with pa.ipc.open_stream(io.BufferedReader(Body(answer.iter_bytes()))) as reader:
                batches = self._counted(reader, answer)
                yield pa.RecordBatchReader.from_batches(reader.schema, batches)

    def _request(self, accept: str) -> dict[str, Any]:
        return {"json": self._body, "headers": {"Accept": accept}}

    def _json_rows(self) -> Sequence[Mapping[str, Any]]:
        answer = self._transport.send("POST", "/v1/sql", **self._request(_JSON))
        rows: Sequence[Mapping[str, Any]] = answer.json()
        self._came(len(rows), answer)
        return rows

    def _counted(
        self, batches: "pa.RecordBatchReader", answer: httpx.Response
    ) -> Iterator["pa.RecordBatch"]:
        count = 0
        for batch in batches:
            count += batch.num_rows
            yield batch
        self._came(count, answer)

    def _came(self, rows: int, answer: httpx.Response) -> None:
        """Note whether an answer of so many rows may be cut, and say so."""
        most = self.max_rows = _max_rows(answer)
        self.truncated = None if most is None else rows >= most
        if self.truncated:
            warn(
                f"{self.statement[:_SAID]!r}: these are the first {rows:,} rows, as many as the "
                "server gives (FRAMESIFT_QUERY_MAX_ROWS); more may be left out. Narrow the "
                "statement, or ask in parts: order by fkey, and each where fkey > the last one's"
            )

    def _first_rows(self, count: int) -> Sequence[Mapping[str, Any]]:
        if self._rows is not None or self._table is not None:
            return self.rows[:count]
        with self._transport.streaming("POST", "/v1/sql", **self._request(_LINES)) as answer:
            lines = io.BufferedReader(Body(answer.iter_bytes()))
            rows = [json.loads(line) for line in islice(lines, count)]
            if len(rows) < count:
                self._came(len(rows), answer)
            return rows

    def _repr_html_(self) -> str:
        """The first rows; the others are not fetched for it."""
        rows = self._first_rows(_SHOWN + 1)
        if len(rows) > _SHOWN and self._rows is None:
            return rows_html(rows[:_SHOWN], f"the first {_SHOWN} rows; there are more")
        count = len(rows) if self._rows is None else len(self._rows)
        cut = ", as many as the server gives: more may be left out" if self.truncated else ""
        shown_rows = f"; the first {_SHOWN} are shown" if count > _SHOWN else ""
        return rows_html(rows[:_SHOWN], f"{count:,} rows{cut}{shown_rows}")


class Body(io.RawIOBase):
    """The bytes of an answer, as a file that is read once."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        super().__init__()
        self._chunks = chunks
        self._rest = b""

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer as far as one chunk goes; 0 at the end."""
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = chunk
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


def _has_no_arrow() -> bool:
    return find_spec("pyarrow") is None


def _max_rows(answer: httpx.Response) -> int | None:
    most = answer.headers.get("Framesift-Max-Rows", "")
    return int(most) if most.isdecimal() else None
