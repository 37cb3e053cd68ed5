"""Training, validation and other long work on a server."""

import json
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

from framesift.errors import JobFailed, JobNotDone, NoAnswer, NotFound, NotSupported
from framesift.http.events import events_of
from framesift.http.pages import paged
from framesift.http.transport import Transport
from framesift.http.versions import HEADER, documents_of
from framesift.job_logs import followed_logs
from framesift.progress import ProgressLine, state_of
from framesift.question import Asked, data_of
from framesift.record import Record

_FINISHED = ("done", "failed", "cancelled")
_UNFINISHED = ("pending", "staging", "queued", "running", "unknown")
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
        """Such as "queued", "running", "done": docs/jobs.md has all eight."""
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
        """Ask the server for its state again; the same job.

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

    def resume(self, *, workers: int | None = None, bad_frames: str | None = None) -> "Job":
        """Start its next attempt, where it failed or was cancelled; the same job.

        A training goes on from its checkpoint, a validation does the shards that are missing.

        Args:
            workers: Processes with which a training goes on; as before when None.
            bad_frames: "fail", "skip" or "skip:20", of a training, validation or prediction; as
                before when None.

        Raises:
            FramesiftServerError: It has not ended, is done, or cannot be changed so; or the server
                does not answer.
        """
        changes = {"workers": workers, "bad_frames": bad_frames}
        body = {name: value for name, value in changes.items() if value is not None}
        self._body = self._transport.json("POST", f"{self._path}/resume", body or None)
        return self

    def cancel(self) -> "Job":
        """Ask the server to end it; the same job.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        self._body = self._transport.json("POST", f"{self._path}/cancel")
        return self

    def timeline(self) -> list[Mapping[str, Any]]:
        """Changes of its tasks' states: each `at`, `task`, `attempt`, `before`, `after`, `why`.

        Raises:
            FramesiftServerError: The server does not answer.
        """
        moves: list[Mapping[str, Any]] = self._transport.json("GET", f"{self._path}/timeline")[
            "moves"
        ]
        return moves

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

    def log_sizes(self) -> dict[str, int]:
        """Bytes of each of its logs by now, by name.

        Raises:
            FramesiftServerError: The server does not answer.
        """
        logs = self._transport.json("GET", f"{self._path}/logs/sizes")["logs"]
        return {log["name"]: log["bytes"] for log in logs}

    def follow_logs(self) -> Iterator[tuple[str, str]]:
        """Yields what its commands print, until it has ended: the name of a log, and its new text.

        Raises:
            FramesiftServerError: The server does not answer.
        """
        jobs = Jobs(self._transport)
        return followed_logs(
            lambda: self.refresh().finished, self.log_sizes, partial(jobs.log_part, self.name)
        )

    def remove(self) -> None:
        """Remove it, which has ended: its record, and its model, report and logs.

        Raises:
            FramesiftServerError: It has not ended, or the server does not answer.
        """
        self._transport.send("DELETE", self._path)

    def result(self) -> Any:
        """The JSON document that a scan, staging, extraction, policy or program ended with.

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
        """Validate the model that this training job made; options as of `Jobs.validate`."""
        return Jobs(self._transport).validate(self, dataset, **options)

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
            kind: Only of this: "train", "validate", "predict", "run", "preflight", "scaling",
                "scan", "stage", "extract", "labels", "policy".
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

    def compare(self, jobs: "Sequence[str | Job]") -> Mapping[str, Any]:
        """Jobs beside each other: lists have a value for each job, in their order.

        `job` has kind, state, dataset and the like, `settings` those in which they differ,
        `metrics` what they measured; None for a job without it.

        Args:
            jobs: Two, or more.

        Raises:
            NotFound: There is none of one of the names.
        """
        names = [job if isinstance(job, str) else job.name for job in jobs]
        return self._transport.json("POST", "/v1/jobs/compare", body={"jobs": names})

    def usage(self, by: str = "user") -> Sequence[Mapping[str, Any]]:
        """Jobs' usage of machines: sums of their attempts that have ended.

        Each has `name`, `jobs`, and `core_seconds`, `gpu_seconds`, `wait_seconds` [s].

        Args:
            by: "user", "dataset" or "kind".

        Raises:
            FramesiftServerError: The server does not answer.
        """
        answer = self._transport.json("GET", "/v1/usage", query={"by": by})
        used: Sequence[Mapping[str, Any]] = answer["usage"]
        return used

    def submit(self, order: Mapping[str, Any]) -> Job:
        """Begin a job, by a request as POST /v1/jobs takes it; the job.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        return start(self._transport, "/v1/jobs", order)

    def train(
        self,
        dataset: str | Mapping[str, Any] | None = None,
        *,
        question: Asked | None = None,
        **options: Any,
    ) -> Job:
        """Train on a dataset, or on the frames that answer a question; the job.

        Args:
            dataset: NAME, NAME@VERSION or a Dataset.
            question: In its place a question as data: steps of the job save the frames that answer
                it as a dataset, `save_as`, divided by `divide` ({"split":
                "train=0.8,validation=0.2"}, and what else `datasets.divide` takes), and stage it.
            **options: Of `framesift train`: workers, batch_size, max_steps or epochs,
                learning_rate, height, width, seed, split, continue_from (name of a training job,
                with @STEP or @best too), name, backend, stage (False: read files where their
                sources are mounted), start_after (percent of the split that is staged before it
                begins), attempts (how often it may begin where it is lost), prepare (True: first
                decode a staged dataset's frames once, False: do not; by default where that is less
                work than decoding all that it reads), classes ("all",
                "a2d2-8", "cityscapes-19", or a map
                {"classes": {"Vehicle": ["Car", "Truck"]}, "ignored": ["Ego car"]}), model
                ("small_unet" or "deeplabv3plus_resnet50"), augment (some of "mirror", "crop",
                "scale", "colour"), checkpoint_every (steps), checkpoint_minutes, keep_checkpoints
                (so many can be validated as NAME@STEP), evaluate_every (epochs), evaluate_split
                ("validation" by default), bad_frames ("fail", "skip" or "skip:20"), target_miou,
                horovod ({"fusion_mb": 32, "cycle_ms": 1, "compression": "fp16", "reduce":
                "average"}), label_smoothing (0 to 1), precision ("auto", "float32" or
                "mixed_float16"), save_as, evict (True: remove the dataset from the cache when the
                job is done), migrate (True: have its files migrated back to tape then).

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        return self.submit({"kind": "train", **_frames(dataset, question), **options})

    def validate(
        self,
        model: str | Job | None = None,
        dataset: str | Mapping[str, Any] | None = None,
        *,
        question: Asked | None = None,
        **options: Any,
    ) -> Job:
        """Validate a model; the job.

        Args:
            model: The training job that made it, or NAME@STEP, its checkpoint of
                then, or NAME@best, the best model that its evaluate_every found; None to score
                predictions that another program made.
            dataset: NAME, NAME@VERSION or a Dataset.
            question: In its place, as of `train`.
            **options: Of `framesift validate`: workers, split, name, backend, stage (False: read
                files where their sources are mounted), start_after (percent of the split that is
                staged before it begins), attempts, fail_below ({"miou": 0.4}: the job's metrics
                say what was not reached, "below"), bad_frames ("fail", "skip" or "skip:20": frames
                that cannot be read are left out, and named),
                compare (another training job, whose model is put through the same frames, or a
                validation of predictions: the report's "comparison" and the job's metrics say where
                this one is worse), slices
                (tags by whose values the report scores parts, ["weather"], or ["all"]),
                augment_test ("mirror": how many pixels change in the mirrored image), save_as,
                evict, migrate. Of predictions: predictions (their folder or .tar, on the server's
                machine), model_name, model_info ({"commit": "4f2a91c"}), encoding ("ids",
                "labels", or a class list), named_by ("name", "fkey", or the path of a CSV file),
                classes ("cityscapes-19", or a class map), trained_on (a dataset);
                onnx (facts that an ONNX file of a program's job does not say, such as
                {"scale": "1/255"}).

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        name = model.name if isinstance(model, Job) else model
        frames = _frames(dataset, question)
        named = {} if name is None else {"model": name}
        return self.submit({"kind": "validate", **named, **frames, **options})

    def predict(
        self,
        model: str | Job,
        dataset: str | Mapping[str, Any] | None = None,
        *,
        question: Asked | None = None,
        **options: Any,
    ) -> Job:
        """Let a model say what is in frames, with or without labels; the job.

        Args:
            model: The training job that made it, or NAME@STEP, its checkpoint of
                then, or NAME@best, the best model that its evaluate_every found.
            dataset: NAME, NAME@VERSION or a Dataset.
            question: In its place a question as data: the frames that answer it, which are saved
                as a dataset, predict-MODEL.
            **options: Of `framesift predict`: workers, split, name, backend, stage (False: read
                files where their sources are mounted), start_after (percent of the split that is
                staged before it begins), attempts, bad_frames ("fail", "skip" or "skip:20"),
                save_as, evict, migrate; for an ONNX file of a program's job onnx (facts that it
                does not say, such as {"scale": "1/255"}), classes and model_name.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        name = model if isinstance(model, str) else model.name
        frames = _frames(dataset, question)
        return self.submit({"kind": "predict", "model": name, **frames, **options})

    def run(
        self,
        dataset: str | Mapping[str, Any] | None,
        command: str | Sequence[str],
        *,
        question: Asked | None = None,
        **options: Any,
    ) -> Job:
        """Run a program of yours on a dataset, where the server allows it; the job.

        Args:
            dataset: NAME, NAME@VERSION or a Dataset.
            command: Program and arguments, in which {files}, {files:SPLIT}, {classes}, {manifest},
                {prepared}, {job} and {checkpoint} stand for paths; as one text it is quoted as for
                a shell.
            question: In the dataset's place (None), as of `train`.
            **options: Of `framesift run`: ranks, torchrun (True: PyTorch's launcher starts them),
                split, prepare (WIDTHxHEIGHT, full), checkpoint (NAME@STEP of another such job, to
                begin with), folder, name, backend, stage (False: read files where their sources are
                mounted), start_after (percent of the split that is staged before it begins),
                attempts, save_as, evict, migrate.

        Raises:
            NotAllowed: The server runs no programs of this user.
            FramesiftServerError: The server refuses, or does not answer.
        """
        text = command if isinstance(command, str) else shlex.join(command)
        frames = _frames(dataset, question)
        return self.submit({"kind": "run", "command": text, **frames, **options})

    def preflight(self, **options: Any) -> Job:
        """Have ranks measure what they find of their machines before a training; the job.

        Its metrics have figures, `warnings` and `tables`.

        Args:
            **options: Of `framesift preflight`: ranks, backend, through ("horovod", or "torch":
                torch.distributed), largest_mib (of an allreduce), dataset and path (to be read),
                synthetic (True: ResNet-50 on generated data, with batch_size and steps), name,
                attempts.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        return self.submit({"kind": "preflight", **options})

    def scaling(
        self,
        dataset: str | Mapping[str, Any] | None = None,
        *,
        question: Asked | None = None,
        **options: Any,
    ) -> Job:
        """Train the same on several numbers of ranks, several times each; the study's job.

        Its metrics have the medians of each number of ranks, and `tables`.

        Args:
            dataset: NAME, NAME@VERSION or a Dataset.
            question: In the dataset's place (None), as of `train`: its frames become a dataset
                once, which each training reads.
            **options: Of `framesift scaling`: ranks ([1, 2, 4]), repeats, and each training's, as
                of `train`: batch_size, max_steps, epochs, learning_rate, height, width, seed (one
                more in each repeat), split, continue_from, classes, augment, evaluate_every,
                evaluate_split, target_miou, bad_frames, horovod, label_smoothing, checkpoint_every,
                checkpoint_minutes, keep_checkpoints, model, precision, prepare, stage, name,
                backend, attempts, save_as, divide.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        return self.submit({"kind": "scaling", **_frames(dataset, question), **options})

    def dry_run(self, kind: str, **options: Any) -> Mapping[str, Any]:
        """The hand-over to the backend of a job, as "submission"; nothing begins.

        `steps` has each step's, `dataset` and `frames` say what it would work on: of a question the
        frames that answer it now.

        Args:
            kind: "train", "validate", "predict", "run", "preflight" or "scaling".
            **options: Of that method, dataset or question, model and command too.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        options |= _frames(options.get("dataset"), options.get("question"))
        return self._transport.json("POST", "/v1/jobs/dry-run", body={"kind": kind, **options})

    def cancel(self, name: str) -> Job:
        """Ask a job to end: see `Job.cancel`."""
        return self._named(name).cancel()

    def resume(
        self, name: str, *, workers: int | None = None, bad_frames: str | None = None
    ) -> Job:
        """Start a job's next attempt; arguments as of `Job.resume`."""
        return self._named(name).resume(workers=workers, bad_frames=bad_frames)

    def wait(
        self,
        name: str,
        *,
        progress: bool | Callable[[Job], object] = True,
        timeout_s: float | None = None,
    ) -> Job:
        """Wait until a job has ended; the job. Arguments and errors as of `Job.wait`."""
        return self.get(name).wait(progress=progress, timeout_s=timeout_s)

    def timeline(self, name: str) -> Mapping[str, Any]:
        """`moves`: those of `Job.timeline`."""
        return {"moves": self._named(name).timeline()}

    def log_chunks(self, name: str) -> Iterator[bytes]:
        """The output of a job's commands: see `Job.log_chunks`."""
        return self._named(name).log_chunks()

    def log_sizes(self, name: str) -> Mapping[str, Any]:
        """`logs`: name and bytes of each of a job's logs."""
        sizes = self._named(name).log_sizes()
        return {"logs": [{"name": log, "bytes": size} for log, size in sizes.items()]}

    def log_part(self, name: str, log: str, offset: int) -> Iterator[bytes]:
        """A log of a job as it is now, from a byte on."""
        path = f"/v1/jobs/{quote(name, safe='')}/logs?command={quote(log, safe='')}&offset={offset}"
        with self._transport.streaming("GET", path) as answer:
            yield from answer.iter_bytes()

    def remove(self, name: str) -> None:
        """Remove a job that has ended: see `Job.remove`."""
        self._named(name).remove()

    def _named(self, name: str) -> Job:
        """A job that was not looked at yet."""
        return Job({"name": name}, self._transport)


def _frames(dataset: str | Mapping[str, Any] | None, question: Asked | None) -> dict[str, Any]:
    """The frames that a job works on, as the server takes it."""
    return {
        **({} if dataset is None else {"dataset": reference(dataset)}),
        **({} if question is None else {"question": data_of(question)}),
    }


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
