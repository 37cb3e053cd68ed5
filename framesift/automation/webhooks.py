"""Addresses that a server tells of jobs' ends."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from framesift.http.pages import paged
from framesift.http.transport import Transport
from framesift.record import Record


class Webhook(Record):
    """A webhook as it was when it was asked for."""

    @property
    def name(self) -> str:
        """Its name."""
        return str(self["name"])


class Webhooks:
    """The server's webhooks, for admins."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __repr__(self) -> str:
        """The server; nothing is asked."""
        return f"<Webhooks of {self._transport.url}>"

    def __iter__(self) -> Iterator[Webhook]:
        """Every webhook."""
        return self.list()

    def list(self) -> Iterator[Webhook]:
        """Every webhook, by name, fetched as they are wanted.

        Raises:
            FramesiftServerError: The server does not answer.
        """
        bodies = paged(self._transport, "/v1/webhooks", "webhooks")
        return (Webhook(body, self._transport) for body in bodies)

    def get(self, name: str) -> Webhook:
        """A webhook.

        Raises:
            NotFound: There is none of that name.
        """
        return Webhook(self._transport.json("GET", _path(name)), self._transport)

    def add(
        self, name: str, url: str, *, states: Sequence[str] = ("done", "failed", "cancelled")
    ) -> Webhook:
        """Make a webhook; its "secret", which signs what it is told, is shown this once.

        Args:
            url: Of a host that the server's settings allow.
            states: States of ended jobs for which the server calls it.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        request = {"name": name, "url": url, "states": [*states]}
        return Webhook(self._transport.json("POST", "/v1/webhooks", request), self._transport)

    def remove(self, name: str) -> None:
        """Forget it and its deliveries; pending ones are not made.

        Raises:
            NotFound: There is none of that name.
        """
        self._transport.json("DELETE", _path(name))

    def deliveries(self, name: str) -> Iterator[Mapping[str, Any]]:
        """Its newest thousand deliveries, newest first.

        Raises:
            NotFound: There is none of that name.
        """
        return paged(self._transport, f"{_path(name)}/deliveries", "deliveries")


def _path(name: str) -> str:
    return f"/v1/webhooks/{quote(name, safe='')}"
