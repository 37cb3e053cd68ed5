"""Questions that users save under a name."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from framesift.http.pages import paged
from framesift.http.transport import Transport
from framesift.record import Record


class SavedQuestion(Record):
    """A saved question as it was when it was asked for."""

    @property
    def name(self) -> str:
        """Its name."""
        return str(self["name"])


class SavedQuestions:
    """The caller's saved questions, and those that others share."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __repr__(self) -> str:
        """The server; nothing is asked."""
        return f"<SavedQuestions of {self._transport.url}>"

    def __iter__(self) -> Iterator[SavedQuestion]:
        """Every one."""
        return self.list()

    def list(self) -> Iterator[SavedQuestion]:
        """Every one, by name, fetched as they are wanted.

        Raises:
            FramesiftServerError: The server does not answer.
        """
        bodies = paged(self._transport, "/v1/questions", "questions")
        return (SavedQuestion(body, self._transport) for body in bodies)

    def get(self, name: str) -> SavedQuestion:
        """A saved question; "frames" says how many answer it now.

        Raises:
            NotFound: There is none of that name.
        """
        return self._one("GET", _path(name))

    def save(
        self, name: str, question: Mapping[str, Any], *, shared: bool = False
    ) -> SavedQuestion:
        """Save a question under a name.

        Args:
            question: As of POST /v1/selections, without order, limit, sample and snapshot.
            shared: Whether other users see it.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        request = {"name": name, "question": dict(question), "shared": shared}
        return self._one("POST", "/v1/questions", request)

    def see(self, name: str) -> SavedQuestion:
        """Keep the number of its frames now as the one that you saw last.

        Raises:
            NotFound: There is none of that name.
        """
        return self._one("POST", f"{_path(name)}/see")

    def remove(self, name: str) -> None:
        """Forget it.

        Raises:
            NotFound: There is none of that name.
        """
        self._transport.json("DELETE", _path(name))

    def _one(self, method: str, path: str, request: Any = None) -> SavedQuestion:
        return SavedQuestion(self._transport.json(method, path, request), self._transport)


def _path(name: str) -> str:
    return f"/v1/questions/{quote(name, safe='')}"
