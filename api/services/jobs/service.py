"""Jobs: what can be done with them."""

import builtins
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from api.schemas.accounts.usage import By, UsageBody
from api.schemas.jobs import DryRunBody, DryStepBody, JobBody
from api.schemas.timeline import LogSizeBody, LogSizesAnswer, MoveBody, TimelineAnswer
from api.services.call import Service
from api.services.jobs.current import bring_up_to_date, current_job
from catalog.errors import StorageError
from catalog.records.jobs import job_counts, recorded_job, recorded_jobs, recorded_moves

if TYPE_CHECKING:
    from api.schemas.comparisons import ComparisonBody
    from api.services.jobs.confused_frames import ConfusedFrames
    from api.services.jobs.files import JobFile
    from api.services.jobs.log_search import FoundLines
    from api.services.jobs.logs import LogEnd
    from api.services.jobs.running import RunningJob
    from catalog.records.tables import Job
    from pipeline.jobs.accounting.usage import Usage
    from pipeline.runs.job_order import JobOrder
    from query.frames.frame_place import FramePlace

_SHOWN = 100
"""Most jobs that have gauges of their own."""


class Jobs(Service):
    """Jobs of a home; a command may name models by their folders."""

    def list(
        self,
        *,
        kind: str | None = None,
        state: str | None = None,
        before: int | None = None,
        limit: int | None = None,
        holding: str = "",
    ) -> list[JobBody]:
        """Jobs as they stand now, newest first.

        Args:
            kind: Only of this kind.
            state: Only in this state.
            before: Only those whose number is lower.
            limit: At most this many.
            holding: Only those whose name holds this text, in whatever case.
        """
        bring_up_to_date(self._workspace)
        records = self._workspace.readable_records
        states = None if state is None else [state]
        jobs = recorded_jobs(
            records, kind=kind, states=states, account=self._account, before=before, limit=limit,
            holding=holding,
        )  # fmt: skip
        return [self._body(job) for job in jobs]

    def counts(self) -> dict[tuple[str, str], int]:
        """Number of jobs of each kind in each state now."""
        bring_up_to_date(self._workspace)
        return job_counts(self._workspace.readable_records)

    def running(self) -> "builtins.list[RunningJob]":
        """Figures and machines of the newest 100 jobs that run, as far as they were looked at."""
        from api.services.jobs.running import running_job

        jobs = recorded_jobs(self._workspace.readable_records, states=("running",), limit=_SHOWN)
        return [running_job(job) for job in jobs]

    def usage(self, by: By = "user") -> builtins.list[UsageBody]:
        """Jobs' usage of machines.

        Args:
            by: What the sums are of.
        """
        from pipeline.jobs.accounting.usage import job_usage

        bring_up_to_date(self._workspace)
        records = self._workspace.readable_records
        return [
            UsageBody(
                name=name,
                jobs=used.jobs,
                core_seconds=round(used.core_s, 3),
                gpu_seconds=round(used.gpu_s, 3),
                wait_seconds=round(used.wait_s, 3),
            )
            for (name,), used in job_usage(records, by, account=self._account).items()
        ]

    def usage_of_all(self) -> "Mapping[tuple[str, ...], Usage]":
        """The same by user, dataset and kind, as far as jobs have been looked at."""
        from pipeline.jobs.accounting.usage import job_usage

        return job_usage(self._workspace.readable_records, "user", "dataset", "kind")

    def get(self, name: str) -> JobBody:
        """A job as it stands now.

        Raises:
            NotFound: There is none of that name.
        """
        return self._body(self._current(name))

    def compare(self, jobs: Sequence[str]) -> "ComparisonBody":
        """Jobs beside each other: settings in which they differ, and what they measured.

        Raises:
            NotFound: There is none of one of the names.
        """
        from api.services.jobs.compare import comparison

        return comparison([self.get(name) for name in jobs])

    def timeline(self, name: str) -> TimelineAnswer:
        """Every change of the states of a job's tasks, the first one first.

        Raises:
            NotFound: There is no job of that name.
        """
        job = self._current(name)
        folder = str(job.paths["folder"])
        visible_folder = self._workspace.place(folder)
        moves = recorded_moves(self._workspace.readable_records, job)
        return TimelineAnswer(moves=[MoveBody.of(move, folder, visible_folder) for move in moves])

    def follower(self, name: str) -> Callable[[], JobBody]:
        """Gives a job as it stands then, for as many listeners as there are to it.

        Args:
            name: A job that the caller may see, which is looked at once: what it gives is the same
                for all who are told paths as the caller is.
        """
        from pipeline.jobs.follow import refresh

        records, locate = self._session.whole.records, self._workspace.place
        return lambda: JobBody.of(refresh(records, recorded_job(records, name)), locate)

    def submit(self, order: "JobOrder | Mapping[str, Any]") -> JobBody:
        """Begin the job of an order: on a dataset, on the frames of a question, on neither.

        Args:
            order: The order, or its JSON as POST /v1/jobs takes it.

        Raises:
            NotAllowed: The server runs no programs of this caller.
            NotFound: There is no such dataset or model.
            InvalidInput: A setting cannot be used, or a source is not mounted.
            StorageError: A source's mount is not there.
        """
        from api.services.jobs.orders import begin
        from pipeline.runs.job_order import JobOrder
        from pipeline.runs.job_orders import job_order_of

        value = order if isinstance(order, JobOrder) else job_order_of(order)
        job, notes = begin(self._session, value)
        return self._body(job).model_copy(update={"notes": [*notes]})

    def train(self, dataset: str | None = None, **settings: Any) -> JobBody:
        """Submit pipeline.runs.orders.Training."""
        return self.submit({"kind": "train", "dataset": dataset, **settings})

    def validate(
        self, model: str | None = None, dataset: str | None = None, **settings: Any
    ) -> JobBody:
        """Submit pipeline.runs.orders.Validation."""
        return self.submit({"kind": "validate", "model": model, "dataset": dataset, **settings})

    def predict(self, model: str, dataset: str | None = None, **settings: Any) -> JobBody:
        """Submit pipeline.runs.orders.Prediction."""
        return self.submit({"kind": "predict", "model": model, "dataset": dataset, **settings})

    def run(self, dataset: str | None = None, command: str = "", **settings: Any) -> JobBody:
        """Submit pipeline.runs.orders.Program."""
        return self.submit({"kind": "run", "command": command, "dataset": dataset, **settings})

    def preflight(self, **settings: Any) -> JobBody:
        """Submit pipeline.runs.preflight_order.Preflight."""
        return self.submit({"kind": "preflight", **settings})

    def scaling(self, dataset: str | None = None, **settings: Any) -> JobBody:
        """Submit pipeline.runs.scaling_order.Scaling."""
        return self.submit({"kind": "scaling", "dataset": dataset, **settings})

    def dry_run(self, kind: str, **settings: Any) -> DryRunBody:
        """The hand-over to the backend of an order of a kind with these settings: `describe`."""
        from pipeline.runs.job_orders import job_order_of

        return self.describe(job_order_of({"kind": kind, **settings}))

    def describe(self, order: "JobOrder") -> DryRunBody:
        """The hand-over to a job's backend; nothing is recorded or started.

        Raises:
            FramesiftError: As `submit` does.
        """
        from api.services.jobs.orders import dry_run
        from pipeline.jobs.workflow.task_paths import RUN

        dataset, steps, notes = dry_run(self._session, order)
        own = [step.submission for step in steps if step.name == RUN]
        return DryRunBody(
            dataset=None if dataset is None else f"{dataset.name}@{dataset.version}",
            frames=0 if dataset is None else dataset.frames,
            notes=[*notes],
            submission=own[0] if own else "\n".join(step.submission for step in steps),
            steps=[DryStepBody(**vars(step)) for step in steps],
        )

    def backends(self) -> builtins.list[str]:
        """The names of the backends that jobs run on."""
        from pipeline.jobs.backends.registry import BACKENDS

        return [*BACKENDS]

    def usual_resources(self, backend: str, ranks: int) -> dict[str, str]:
        """What a job of so many processes has of a backend's machines where it asks for nothing.

        Numbers and names, by the names of resources; without those that the backend takes no
        setting of.

        Raises:
            UnknownName: There is no such backend.
        """
        from pipeline.jobs.backends.usual import usual_resources

        return usual_resources(backend, ranks, self._workspace.job_queue)

    def free_name(self, kind: str, subject: str) -> str:
        """The name that a job gets that is begun now without one.

        Args:
            subject: What it is about: a dataset's name without its version, or a backend.
        """
        from pipeline.jobs.names import free_name

        base = f"{kind}-{subject}".rstrip("-")
        return free_name(self._workspace.records, self._workspace.job_queue.folder, base, None)

    def cancel(self, name: str) -> JobBody:
        """Ask a job to end: pipeline.jobs.follow.cancel."""
        from pipeline.jobs.follow import cancel

        return self._body(cancel(self._workspace.records, self._job_to_change(name)))

    def resume(
        self, name: str, *, workers: int | None = None, bad_frames: str | None = None
    ) -> JobBody:
        """Start the next attempt of a job that failed or was cancelled.

        Args:
            name: The job.
            workers: Processes with which a training goes on; as before when None.
            bad_frames: What becomes of frames that cannot be read (pipeline.runs.bad_frames), of a
                training, validation or prediction; as before when None.

        Raises:
            NotFound: There is none of that name.
            InvalidInput: It has not ended, is done, or cannot be changed so.
        """
        from api.services.jobs.orders import go_on

        return self._body(go_on(self._session, self._job_to_change(name), workers, bad_frames))

    def wait(self, name: str, *, progress: Callable[[JobBody], object]) -> JobBody:
        """Wait until a job has ended.

        Args:
            name: The job.
            progress: Called with the job after every look at it.

        Raises:
            JobFailed: It ended otherwise than done.
        """
        from pipeline.jobs.follow import wait

        def show(job: "Job") -> None:
            progress(self._body(job))

        queue = self._workspace.job_queue
        return self._body(wait(self._workspace.records, self._job_to_change(name), show, queue))

    def log_chunks(self, name: str) -> Iterator[bytes]:
        """The output of a job's commands, each log under a heading."""
        return self.joined_logs(name, None, 0)[1]

    def joined_logs(
        self, name: str, command: str | None, offset: int
    ) -> tuple[int, Iterator[bytes]]:
        """Bytes of a job's logs: api.services.jobs.logs.joined_logs."""
        from api.services.jobs.logs import joined_logs

        return joined_logs(Path(self._job(name).paths["folder"]), command, offset)

    def log_sizes(self, name: str) -> LogSizesAnswer:
        """The names of a job's logs, and their bytes by now."""
        from api.services.jobs.logs import log_sizes

        sizes = log_sizes(Path(self._job(name).paths["folder"]))
        return LogSizesAnswer(
            logs=[LogSizeBody(name=log, bytes=size) for log, size in sizes.items()]
        )

    def log_part(self, name: str, log: str, offset: int) -> Iterator[bytes]:
        """A log of a job as it is now, from a byte on."""
        return self.joined_logs(name, log, offset)[1]

    def remove(self, name: str) -> None:
        """Remove a job that has ended: its record, and its folder with model, report and logs.

        Raises:
            NotFound: There is none of that name.
            InUse: It has not ended, or a job that has not ended uses its model.
            StorageError: Its folder cannot be removed.
        """
        from pipeline.jobs.workflow.remove import remove

        remove(self._workspace.records, self._job_to_change(name))

    def log_end(self, name: str, log: str, most_bytes: int) -> "LogEnd | None":
        """The end of one of a job's logs: api.services.jobs.logs.log_end."""
        from api.services.jobs.logs import log_end

        return log_end(Path(self._job(name).paths["folder"]), log, most_bytes)

    def log_lines(self, name: str, log: str, text: str) -> "FoundLines | None":
        """Lines of one of a job's logs that have a text: api.services.jobs.log_search."""
        from api.services.jobs.log_search import found_lines

        return found_lines(Path(self._job(name).paths["folder"]), log, text)

    def curves(self, name: str) -> "Mapping[str, tuple[builtins.list[int], builtins.list[float]]]":
        """Steps and values of what a user's program logs, by name; none of other jobs."""
        from pipeline.jobs.program.scalars import scalars_of

        job = self._job(name)
        series = scalars_of(Path(job.paths["folder"])).curves if job.kind == "run" else {}
        return {name: (each.steps, each.values) for name, each in series.items()}

    def file_sizes(self, name: str) -> dict[str, int]:
        """Bytes of each file that a job made and callers may read, by its name for `file`."""
        from api.services.jobs.files import file_sizes

        return file_sizes(self._current(name), tells_paths=not self._workspace.is_limited)

    def file(self, name: str, path: str) -> "JobFile":
        """A file that a job made: api.services.jobs.files.report_file."""
        from api.services.jobs.files import report_file

        job = self._current(name)
        return report_file(job, path, tells_paths=not self._workspace.is_limited)

    def report(self, name: str) -> dict[str, Any]:
        """A validation's report: api.schemas.validation_reports.ReportAnswer.

        Raises:
            NotFound: The job has none, or has not ended.
            StorageError: It is damaged.
        """
        from pydantic import ValidationError

        from api.schemas.validation_reports import ReportAnswer

        report = self.file(name, "report.json").document()
        try:
            ReportAnswer.model_validate(report)
        except ValidationError as error:
            path = ".".join(str(key) for key in error.errors()[0]["loc"])
            raise StorageError(
                f"report.json of job {name}: is none that this version reads, in '{path}': "
                "validate again"
            ) from error
        return report

    def confused_frames(
        self, name: str, truth: str, predicted: str, *, begin: int = 0, most: int = 48
    ) -> "ConfusedFrames":
        """Frames of a cell of a validation's matrix: api.services.jobs.confused_frames.

        Raises:
            NotFound: The job has no cells, or has not ended.
            UnknownName: It has no such class.
        """
        from api.services.jobs.confused_frames import confused_frames  # with DuckDB, as below

        path, classes = self._cells(name)
        cell = (truth, predicted)
        return confused_frames(self._workspace, path, classes, cell, begin, most)

    def known_frames(self, fkeys: Collection[str]) -> dict[str, dict[str, Any]]:
        """fkey, scene, camera and frame_number of those frames that the caller may see, by fkey."""
        from api.services.jobs.confused_frames import known_frames

        return known_frames(self._workspace, fkeys)

    def place_in_cell(
        self, name: str, truth: str, predicted: str, fkey: str
    ) -> "FramePlace | None":
        """The place of a frame among those of a cell; None where it is none of them.

        Raises as `confused_frames` does.
        """
        from api.services.jobs.confused_frames import place_in_cell

        path, classes = self._cells(name)
        return place_in_cell(self._workspace, path, classes, (truth, predicted), fkey)

    def cell_fkeys(self, name: str, truth: str, predicted: str) -> "builtins.list[str]":
        """Every frame of a cell that the catalog has; raises as `confused_frames` does."""
        from api.services.jobs.confused_frames import cell_fkeys

        path, classes = self._cells(name)
        return cell_fkeys(self._workspace, path, classes, (truth, predicted))

    def _cells(self, name: str) -> "tuple[Path, dict[str, str]]":
        """The file of a validation's cells, and tag and name of each of its classes."""
        classes = {row["tag"]: row["class"] for row in self.report(name)["per_class"]}
        return self.file(name, "frame_cells.parquet").path, classes

    @property
    def _account(self) -> str | None:
        """The account whose jobs alone the caller may see and end; None for those of all."""
        is_admin = self._session.is_command or "admin" in self._session.caller.roles
        # The records of a limited user hold no others' jobs.
        sees_all = is_admin or self._workspace.is_limited
        return None if sees_all else self._session.caller.account

    def _job(self, name: str) -> "Job":
        """A job that the caller may see.

        Raises:
            NotFound: There is none of that name, or another user began it.
        """
        return recorded_job(self._workspace.readable_records, name, account=self._account)

    def _job_to_change(self, name: str) -> "Job":
        """The same, as the records' database has it."""
        return recorded_job(self._workspace.records, name, account=self._account)

    def _current(self, name: str) -> "Job":
        """The same, as it stands now."""
        return current_job(self._workspace, name, account=self._account)

    def _body(self, job: "Job") -> JobBody:
        return JobBody.of(job, self._workspace.place)
