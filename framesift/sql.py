"""The answer to a statement in SQL."""

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from html import escape
from typing import Any

from framesift.transport import Transport

_JSON = "application/json"
_ARROW = "application/vnd.apache.arrow.stream"
_SHOWN = 20


class SqlResult:
    """The rows of a statement, which runs when they are first asked for, in the form asked for.

    Attributes:
        statement: The statement.
        max_rows: How many rows the server gives at most, once a `reader` was opened; where there
            are so many there may be more. None where it did not say.
    """

    def __init__(self, statement: str, at: int | None, transport: Transport) -> None:
        self.statement = statement
        self.max_rows: int | None = None
        self._body = {"statement": statement} | ({} if at is None else {"at": at})
        self._transport = transport

    def __repr__(self) -> str:
        """The statement."""
        return f"<SqlResult {self.statement!r}>"

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        """The rows, in order."""
        return iter(self.rows)

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.rows)

    @cached_property
    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Every row, by column name; what JSON has no word for is text.

        Raises:
            FramesiftServerError: The server refuses the statement, or does not answer.
        """
        answer = self._transport.send("POST", "/v1/sql", json=self._body, headers={"Accept": _JSON})
        rows: Sequence[Mapping[str, Any]] = answer.json()
        return rows

    @cached_property
    def _table(self) -> Any:
        import pyarrow as pa

        answer = self._transport.send(
            "POST", "/v1/sql", json=self._body, headers={"Accept": _ARROW}
        )
        return pa.ipc.open_stream(pa.py_buffer(answer.content)).read_all()

    def to_arrow(self) -> Any:
        """The rows as a pyarrow.Table, with the server's types (needs pyarrow).

        Raises:
            FramesiftServerError: The server refuses the statement, or does not answer.
        """
        return self._table

    def to_pandas(self) -> Any:
        """The rows as a pandas.DataFrame (needs pyarrow and pandas).

        Raises:
            FramesiftServerError: The server refuses the statement, or does not answer.
        """
        return self._table.to_pandas()

    @contextmanager
    def reader(self) -> Iterator[Any]:
        """The rows as a pyarrow.RecordBatchReader, as they come: never the whole in memory.

        Raises:
            FramesiftServerError: The server refuses the statement, does not answer or breaks off.
        """
        import pyarrow as pa

        headers = {"Accept": _ARROW}
        with self._transport.streaming(
            "POST", "/v1/sql", json=self._body, headers=headers
        ) as answer:
            most = answer.headers.get("Framesift-Max-Rows", "")
            self.max_rows = int(most) if most.isdecimal() else None
            with pa.ipc.open_stream(io.BufferedReader(Body(answer.iter_bytes()))) as reader:
                yield reader

    def _repr_html_(self) -> str:
        rows = self.rows
        names = list(rows[0]) if rows else []
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        lines = "".join(
            f"<tr>{''.join(f'<td>{escape(str(value))}</td>' for value in row.values())}</tr>"
            for row in rows[:_SHOWN]
        )
        more = f", the first {_SHOWN} of them shown" if len(rows) > _SHOWN else ""
        return f"<div><table><tr>{head}</tr>{lines}</table><p>{len(rows):,} rows{more}</p></div>"


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
