"""Scans of a server's sources."""

from collections.abc import Iterator, Mapping
from typing import Any

from framesift.http.pages import paged
from framesift.http.transport import Transport


class Scans:
    """Scans of the server's sources; `Source.scan` begins one."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __repr__(self) -> str:
        """The server; nothing is asked."""
        return f"<Scans of {self._transport.url}>"

    def list(
        self, *, source: str | None = None, state: str | None = None
    ) -> Iterator[Mapping[str, Any]]:
        """Scans, newest first, fetched as they are wanted.

        Args:
            source: Only of this source.
            state: Only in this state: running, done or failed.

        Raises:
            NotFound: There is no such source.
            FramesiftServerError: The server does not answer.
        """
        return paged(self._transport, "/v1/scans", "scans", source=source, state=state)
