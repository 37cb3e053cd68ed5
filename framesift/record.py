"""A server's record of one thing: a mapping with a way back to the server."""

from collections.abc import Iterator, Mapping
from typing import Any

from framesift.http.transport import Transport


class Record(Mapping[str, Any]):
    """A document of the server; its fields are read as of a mapping."""

    def __init__(self, body: Mapping[str, Any], transport: Transport) -> None:
        self._body = body
        self._transport = transport

    def __getitem__(self, name: str) -> Any:
        """A field."""
        return self._body[name]

    def __iter__(self) -> Iterator[str]:
        """The fields' names."""
        return iter(self._body)

    def __len__(self) -> int:
        """Number of fields."""
        return len(self._body)

    @property
    def document(self) -> Mapping[str, Any]:
        """The document as the server sent it."""
        return self._body

    def __repr__(self) -> str:
        """Kind and name."""
        return f"<{type(self).__name__} {self._body.get('name', '')}>"
