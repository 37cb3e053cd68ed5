"""Tags that a server sets on what a condition finds, on time or when it is told to."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from framesift.http.pages import paged
from framesift.http.transport import Transport
from framesift.jobs import Job, start
from framesift.record import Record


class Policy(Record):
    """A policy as it was when it was asked for."""

    @property
    def name(self) -> str:
        """Its name."""
        return str(self["name"])

    def run(self) -> Job:
        """Run it now, whatever its schedule; the job.

        Raises:
            InvalidQuestion: It is inactive, or running already.
        """
        return start(self._transport, f"{self._path}/runs", {})

    def runs(self) -> Iterator[Mapping[str, Any]]:
        """Its newest thousand runs, newest first, fetched as they are wanted.

        Raises:
            FramesiftServerError: The server does not answer.
        """
        return paged(self._transport, f"{self._path}/runs", "runs")

    def change(self, **changes: Any) -> "Policy":
        """Change it while it does not run; the policy as it is then.

        Args:
            **changes: parameters, condition, schedule, state ("active" or "inactive"),
                collections, as of `Policies.add`.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        return Policy(self._transport.json("PATCH", self._path, changes), self._transport)

    def remove(self) -> None:
        """Forget it and its runs; tags that it set stay.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        self._transport.json("DELETE", self._path)

    @property
    def _path(self) -> str:
        return f"/v1/policies/{quote(self.name, safe='')}"


class Policies:
    """The server's policies."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __repr__(self) -> str:
        """The server; nothing is asked."""
        return f"<Policies of {self._transport.url}>"

    def __iter__(self) -> Iterator[Policy]:
        """Every policy."""
        return self.list()

    def list(self) -> Iterator[Policy]:
        """Every policy, fetched as they are wanted.

        Raises:
            FramesiftServerError: The server does not answer.
        """
        bodies = paged(self._transport, "/v1/policies", "policies")
        return (Policy(body, self._transport) for body in bodies)

    def get(self, name: str) -> Policy:
        """A policy.

        Raises:
            NotFound: There is none of that name.
        """
        path = f"/v1/policies/{quote(name, safe='')}"
        return Policy(self._transport.json("GET", path), self._transport)

    def add(self, name: str, action: str, parameters: Mapping[str, Any], **more: Any) -> Policy:
        """Make a policy, which runs on its schedule or when it is told to.

        Args:
            action: "AUTOTAG", "IMPORT_TAGS" or "DEEPINSPECT".
            parameters: Of the action: ``{"tags": {"project": "bikes"}}`` for AUTOTAG.
            **more: condition, a WHERE body; schedule, such as ``{"hour": 5, "minute": 15}``;
                state; collections.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        request = {"name": name, "action": action, "parameters": dict(parameters), **more}
        answer = self._transport.json("POST", "/v1/policies", request, creates=True)
        return Policy(answer, self._transport)

    def start_due(self) -> Sequence[Mapping[str, Any]]:
        """Start those whose time has come, as a timer would; their runs, each a job.

        Raises:
            FramesiftServerError: The server does not answer.
        """
        started: Sequence[Mapping[str, Any]] = self._transport.json("POST", "/v1/policies/due")[
            "started"
        ]
        return started
