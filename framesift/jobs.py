"""Training, validation and other long work on a server."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from framesift.errors import JobFailed, JobNotDone, NoAnswer, NotFound, NotSupported
from framesift.http.events import events_of
from framesift.http.pages import paged
from framesift.http.transport import Transport
from framesift.http.versions import HEADER, documents_of
from framesift.progress import ProgressLine, state_of
from framesift.record import Record

_FINISHED = ("done", "failed", "cancelled")
_UNFINISHED = ("pending", "running", "unknown")
"""A newer server may have states beside these."""

_POLL_S = 1.0
_SILENCE_S = 60.0
"""A stream of events that says nothing for so long is broken: the server comments each 15 s."""


class Job(Record):
    """A job as it was when it was last looked at."""

    def __repr__(self) -> str:
        """Name and state."""
        return f"<Job {self.name}: {state_of(self)}>"

    @property
    def name(self) -> str:
        """The job's name."""
        return str(self["name"])

    @property
    def state(self) -> str:
        """One of "pending", "running", "done", "failed", "cancelled", "unknown"."""
        return str(self["state"])

    @property
    def finished(self) -> bool:
        """True where it has ended, well or not."""
        known = (*_FINISHED, *_UNFINISHED)
        return self.state in _FINISHED or (self.state not in known and bool(self.get("finished")))

    @property
    def metrics(self) -> Mapping[str, Any]:
        """Measurements of the job so far."""
        metrics: Mapping[str, Any] = self["metrics"]
        return metrics

    def refresh(self) -> "Job":
        """Look again; the same job.

        Raises:
            FramesiftServerError: The server does not answer.
        """
        self._body = self._transport.json("GET", self._path)
        return self

    def changes(self) -> Iterator["Job"]:
        """The job at once, after every change and at least twice a minute, until it has ended.

        The server is asked to send them; where it cannot, or the connection breaks, it is asked
        for the job every second.

        Raises:
            FramesiftServerError: The server does not answer.
        """
        yield self.refresh()
        last = ""
        while not self.finished:
            try:
                for event_id, body in self._events(last):
                    last = event_id
                    self._body = body or self._body
                    yield self
            except (NoAnswer, NotFound, NotSupported, ValueError):
                pass
            if not self.finished:
                time.sleep(_POLL_S)
                yield self.refresh()

    def wait(
        self,
        *,
        progress: bool | Callable[["Job"], object] = True,
        timeout_s: float | None = None,
    ) -> "Job":
        """Wait until it has ended; the same job.

        Args:
            progress: Show on stderr how far it is; or called with the job after every change.
            timeout_s: Wait no longer than that; the job goes on. For ever when None. Looked at
                when something is heard of the job, at least twice a minute.

        Raises:
            JobFailed: It ended otherwise than done.
            JobNotDone: It has not ended in time; a TimeoutError, too.
            FramesiftServerError: The server does not answer.
        """
        ends = None if timeout_s is None else time.monotonic() + timeout_s
        line = ProgressLine(f"{self['kind']} {self.name}") if progress is True else None
        show: Callable[[Job], object] = _nothing
        if line is not None:
            show = line.show
        elif not isinstance(progress, bool):
            show = progress
        try:
            for now in self.changes():
                show(now)
                late = ends is not None and time.monotonic() >= ends
                if timeout_s is not None and late and not now.finished:
                    raise JobNotDone(self.name, self.state, timeout_s)
        finally:
            if line is not None:
                line.end()
        if self.state != "done":
            raise JobFailed(self.name, self.state, self["error"])
        return self

    def resume(self) -> "Job":
        """Start its next attempt, where it failed or was cancelled; the same job.

        A training goes on from its checkpoint, a validation does the shards that are missing.

        Raises:
            FramesiftServerError: It has not ended, or is done; or the server does not answer.
        """
        self._body = self._transport.json("POST", f"{self._path}/resume")
        return self

    def cancel(self) -> "Job":
        """Ask it to end; the same job.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        self._body = self._transport.json("POST", f"{self._path}/cancel")
        return self

    def log_chunks(self) -> Iterator[bytes]:
        """The output of its commands, each below a heading, as it arrives.

        Raises:
            FramesiftServerError: The server does not answer, or breaks off.
        """
        with self._transport.streaming("GET", f"{self._path}/logs") as answer:
            yield from answer.iter_bytes()

    def logs(self, command: str | None = None) -> str:
        """The output of its commands, each below a heading.

        Args:
            command: Only this one, such as "train-0": its text as it is.

        Raises:
            FramesiftServerError: The server does not answer.
        """
        parameters = {} if command is None else {"command": command}
        return self._transport.send("GET", f"{self._path}/logs", params=parameters).text

    def result(self) -> Any:
        """The JSON document that a scan, staging, extraction or run of a policy ended with.

        Raises:
            NotFound: It has none, or has not ended.
        """
        return json.loads(self.file("result.json"))

    def report(self) -> Mapping[str, Any]:
        """A validation's report: IoU, precision and recall of each class.

        Raises:
            NotFound: It has none, or has not ended.
        """
        return self._transport.json("GET", f"{self._path}/report")

    def file(self, path: str) -> bytes:
        """One of its files, such as "confusion_matrix.png".

        Raises:
            NotFound: There is none of that name.
        """
        return self._transport.send("GET", f"{self._path}/files/{quote(path)}").content

    def validate(self, dataset: "str | Mapping[str, Any]", **options: Any) -> "Job":
        """Validate the model that this training job made; the new job.

        Args:
            dataset: NAME, NAME@VERSION or a Dataset.
            **options: Of `framesift validate`: workers, split, name.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        request = {"kind": "validate", "model": self.name, "dataset": reference(dataset)}
        return start(self._transport, "/v1/jobs", {**request, **options})

    @property
    def _path(self) -> str:
        return f"/v1/jobs/{quote(self.name, safe='')}"

    def _events(self, last: str) -> Iterator[tuple[str, dict[str, Any]]]:
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": last} if last else {})
        path = f"{self._path}/events"
        with self._transport.streaming("GET", path, _SILENCE_S, headers=headers) as answer:
            read = documents_of(answer.headers.get(HEADER, ""))
            for event in events_of(answer.iter_lines()):
                if event.name in ("job", ""):
                    yield event.id, json.loads(event.data, object_hook=read) if event.name else {}


class Jobs:
    """The server's jobs."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __repr__(self) -> str:
        """The server; nothing is asked."""
        return f"<Jobs of {self._transport.url}>"

    def __iter__(self) -> Iterator[Job]:
        """Every job, newest first."""
        return self.list()

    def list(self, *, kind: str | None = None, state: str | None = None) -> Iterator[Job]:
        """Jobs, newest first, fetched as they are wanted.

        Args:
            kind: Only of this: "train", "validate", "scan", "stage", "extract", "policy".
            state: Only those in this state.

        Raises:
            FramesiftServerError: The server does not answer.
        """
        bodies = paged(self._transport, "/v1/jobs", "jobs", kind=kind, state=state)
        return (Job(body, self._transport) for body in bodies)

    def get(self, name: str) -> Job:
        """A job.

        Raises:
            NotFound: There is none of that name.
        """
        path = f"/v1/jobs/{quote(name, safe='')}"
        return Job(self._transport.json("GET", path), self._transport)

    def train(self, dataset: str | Mapping[str, Any], **options: Any) -> Job:
        """Train on a dataset; the job.

        Args:
            dataset: NAME, NAME@VERSION or a Dataset.
            **options: Of `framesift train`: workers, batch_size, max_steps or epochs,
                learning_rate, height, width, seed, split, continue_from (name of a training job),
                name, backend.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        request = {"kind": "train", "dataset": reference(dataset), **options}
        return start(self._transport, "/v1/jobs", request)

    def validate(self, model: str | Job, dataset: str | Mapping[str, Any], **options: Any) -> Job:
        """Validate a model; the job.

        Args:
            model: The training job that made it.
            dataset: NAME, NAME@VERSION or a Dataset.
            **options: Of `framesift validate`: workers, split, name, backend.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        name = model if isinstance(model, str) else model.name
        request = {"kind": "validate", "model": name, "dataset": reference(dataset), **options}
        return start(self._transport, "/v1/jobs", request)

    def cancel(self, name: str) -> Job:
        """Ask a job to end; the job.

        Raises:
            NotFound: There is none of that name.
        """
        return self._named(name).cancel()

    def resume(self, name: str) -> Job:
        """Start the next attempt of a job that failed or was cancelled; the job.

        Raises:
            NotFound: There is none of that name.
            FramesiftServerError: It has not ended, or is done; or the server does not answer.
        """
        return self._named(name).resume()

    def wait(
        self,
        name: str,
        *,
        progress: bool | Callable[[Job], object] = True,
        timeout_s: float | None = None,
    ) -> Job:
        """Wait until a job has ended; the job. Arguments and errors as of `Job.wait`."""
        return self.get(name).wait(progress=progress, timeout_s=timeout_s)

    def log_chunks(self, name: str) -> Iterator[bytes]:
        """The output of a job's commands, each below a heading, as it arrives.

        Raises:
            NotFound: There is none of that name.
        """
        return self._named(name).log_chunks()

    def _named(self, name: str) -> Job:
        """A job that was not looked at yet."""
        return Job({"name": name}, self._transport)


def start(transport: Transport, path: str, request: Mapping[str, Any]) -> Job:
    """Ask for long work; its job.

    Raises:
        FramesiftServerError: The server refuses, or does not answer.
    """
    return Job(transport.json("POST", path, dict(request), creates=True), transport)


def reference(dataset: str | Mapping[str, Any]) -> str:
    """NAME@VERSION of a dataset; a text as it is."""
    return dataset if isinstance(dataset, str) else f"{dataset['name']}@{dataset['version']}"


def _nothing(_: Job) -> None:
    """Show nothing."""
