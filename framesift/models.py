"""Models that training jobs made."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from framesift.http.pages import paged
from framesift.http.transport import Transport


class Models:
    """The server's trained models."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __repr__(self) -> str:
        """The server; nothing is asked."""
        return f"<Models of {self._transport.url}>"

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        """Every model, newest first."""
        return self.list()

    def list(self) -> Iterator[Mapping[str, Any]]:
        """Every model, newest first, fetched as they are wanted.

        Raises:
            FramesiftServerError: The server does not answer.
        """
        return paged(self._transport, "/v1/models", "models")

    def get(self, name: str) -> Mapping[str, Any]:
        """The model of a training job.

        Raises:
            NotFound: There is none of that name.
        """
        return self._transport.json("GET", f"/v1/models/{quote(name, safe='')}")
