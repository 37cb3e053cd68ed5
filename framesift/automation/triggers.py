"""Jobs that a server begins by itself, when frames are added or a time has come."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from framesift.http.pages import paged
from framesift.http.transport import Transport
from framesift.record import Record


class Trigger(Record):
    """A trigger as it was when it was asked for."""

    @property
    def name(self) -> str:
        """Its name."""
        return str(self["name"])


class Triggers:
    """The server's triggers."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __repr__(self) -> str:
        """The server; nothing is asked."""
        return f"<Triggers of {self._transport.url}>"

    def __iter__(self) -> Iterator[Trigger]:
        """Every trigger."""
        return self.list()

    def list(self) -> Iterator[Trigger]:
        """Every trigger, by name, fetched as they are wanted.

        Raises:
            FramesiftServerError: The server does not answer.
        """
        bodies = paged(self._transport, "/v1/triggers", "triggers")
        return (Trigger(body, self._transport) for body in bodies)

    def get(self, name: str) -> Trigger:
        """A trigger, with its newest run.

        Raises:
            NotFound: There is none of that name.
        """
        return Trigger(self._transport.json("GET", _path(name)), self._transport)

    def add(self, name: str, *, then: Sequence[Mapping[str, Any]], **more: Any) -> Trigger:
        """Make a trigger, which begins jobs from here on.

        Args:
            then: The jobs, one after another: ``[{"kind": "train", "max_steps": 300},
                {"kind": "validate"}]``, with the options of `Jobs.train` and the others. Without
                a dataset they get the frames that ``when`` finds; a validation without a model
                gets the training before it.
            **more: when, a WHERE body over frames; min_frames, so many more; quiet_s, for how
                long the catalog does not change before; schedule, such as ``{"hour": 5}``; split,
                such as "train=0.8,validation=0.2".

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        request = {"name": name, "then": [*map(dict, then)], **more}
        answer = self._transport.json("POST", "/v1/triggers", request, creates=True)
        return Trigger(answer, self._transport)

    def enable(self, name: str, *, enabled: bool) -> Trigger:
        """Have it begin jobs, or no longer; what it has begun goes on.

        Raises:
            NotFound: There is none of that name.
        """
        answer = self._transport.json("PATCH", _path(name), {"enabled": enabled})
        return Trigger(answer, self._transport)

    def remove(self, name: str) -> None:
        """Forget it and its runs; their jobs stay.

        Raises:
            NotFound: There is none of that name.
        """
        self._transport.json("DELETE", _path(name))

    def runs(self, name: str) -> Iterator[Mapping[str, Any]]:
        """Its newest thousand runs, newest first: each the jobs of one start.

        Raises:
            NotFound: There is none of that name.
        """
        return paged(self._transport, f"{_path(name)}/runs", "runs")


def _path(name: str) -> str:
    return f"/v1/triggers/{quote(name, safe='')}"
