"""Stagings of a server: datasets' files brought near the jobs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from framesift.http.pages import paged
from framesift.http.transport import Transport


class Stagings:
    """The server's stagings; `Dataset.stage` begins one."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __repr__(self) -> str:
        """The server; nothing is asked."""
        return f"<Stagings of {self._transport.url}>"

    def list(self, *, dataset: str | None = None) -> Iterator[Mapping[str, Any]]:
        """Those that are done or failed, newest first, fetched as they are wanted.

        Args:
            dataset: Only of this NAME, or NAME@VERSION.

        Raises:
            NotFound: There is no such dataset.
            FramesiftServerError: The server does not answer.
        """
        return paged(self._transport, "/v1/stagings", "stagings", dataset=dataset)

    def get(self, number: int) -> Mapping[str, Any]:
        """One that is done.

        Raises:
            NotFound: There is none of that number.
        """
        return self._transport.json("GET", f"/v1/stagings/{number}")

    def plan(self, dataset: str, *, workers: int | None = None) -> Mapping[str, Any]:
        """The plan of a staging: files to fetch, room, evictions, time.

        Args:
            dataset: NAME, or NAME@VERSION.
            workers: Files fetched at once; 4 by default.

        Raises:
            NotFound: There is no such dataset.
            FramesiftServerError: The server refuses, or does not answer.
        """
        query = {"dataset": dataset, "workers": workers}
        return self._transport.json("GET", "/v1/stagings/plan", query=query)

    def running(self) -> Sequence[Mapping[str, Any]]:
        """Those into the server's cache that run or wait to, with plan and progress.

        Raises:
            FramesiftServerError: The server does not answer.
        """
        running: Sequence[Mapping[str, Any]] = self._transport.json("GET", _RUNNING)["running"]
        return running

    def get_running(self, name: str) -> Mapping[str, Any]:
        """One of them, by its name: its job's, where a job does it.

        Raises:
            NotFound: None of that name runs.
        """
        return self._transport.json("GET", f"{_RUNNING}/{quote(name, safe='')}")

    def cancel(self, name: str) -> Mapping[str, Any]:
        """Ask one of them to end; it, as it was. What has come stays in the cache.

        Raises:
            NotFound: None of that name runs.
            FramesiftServerError: The server refuses, or does not answer.
        """
        return self._transport.json("POST", f"{_RUNNING}/{quote(name, safe='')}/cancel")


_RUNNING = "/v1/stagings/running"
