"""Jobs: what can be done with them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from api.schemas.jobs import JobBody
from api.services.jobs.files import JobFile, joined_logs, report_file
from catalog.errors import InvalidInput, NotFound
from catalog.records.datasets import whole_dataset
from catalog.records.jobs import job_counts, recorded_job, recorded_jobs
from catalog.records.tables import Job
from pipeline.jobs.follow import cancel, refresh, refresh_all, wait
from pipeline.jobs.run import submit_training, submit_validation
from pipeline.jobs.submit import resume
from pipeline.jobs.train_settings import TrainSettings

if TYPE_CHECKING:
    from api.services.call import Call


class Jobs:
    """Jobs of a home."""

    def __init__(self, session: "Call") -> None:
        """Those that the session's caller may see; a command may name models by their folders."""
        self._session, self._workspace = session, session.workspace

    def list(
        self,
        *,
        kind: str | None = None,
        state: str | None = None,
        before: int | None = None,
        limit: int | None = None,
    ) -> list[JobBody]:
        """Jobs as they stand now, newest first.

        Args:
            kind: Only of this kind.
            state: Only in this state.
            before: Only those whose number is lower.
            limit: At most this many.
        """
        records = self._workspace.records
        refresh_all(records)
        states = None if state is None else [state]
        jobs = recorded_jobs(records, kind=kind, states=states, before=before, limit=limit)
        return [self._body(job) for job in jobs]

    def counts(self) -> dict[tuple[str, str], int]:
        """How many jobs there are of each kind in each state now."""
        records = self._workspace.records
        refresh_all(records)  # of those that have not ended
        return job_counts(records)

    def get(self, name: str) -> JobBody:
        """A job as it stands now.

        Raises:
            NotFound: There is none of that name.
        """
        records = self._workspace.records
        return self._body(refresh(records, recorded_job(records, name)))

    def follower(self, name: str) -> Callable[[], JobBody]:
        """Gives a job as it stands then, for as many listeners as there are to it.

        Args:
            name: A job that the caller may see, which is looked at once: what it gives is the same
                for all who are told paths as the caller is.
        """
        records, place = self._session.whole.records, self._workspace.place
        return lambda: JobBody.of(refresh(records, recorded_job(records, name)), place)

    def train(
        self, dataset: str, *, name: str | None = None, backend: str = "local", **settings: Any
    ) -> JobBody:
        """Train on a dataset; the job.

        Args:
            dataset: NAME, or NAME@VERSION.
            name: The job's; made up when None.
            backend: Where it runs.
            **settings: Of TrainSettings.

        Raises:
            NotFound: There is no such dataset or model.
            InvalidInput: A setting cannot be used.
        """
        records = self._workspace.records
        whole, parent = whole_dataset(records, dataset), settings.get("continue_from")
        if parent is not None:
            settings = settings | {"continue_from": self._model(parent)}
        job = submit_training(
            records,
            self._workspace.job_queue,
            whole,
            TrainSettings(**settings),
            name=name,
            backend_name=backend,
        )
        return self._body(job)

    def validate(
        self,
        model: str,
        dataset: str,
        *,
        workers: int = 2,
        split: str | None = None,
        trust_model: bool = False,
        name: str | None = None,
        backend: str = "local",
    ) -> JobBody:
        """Validate a model; the job.

        Args:
            model: The name of a training job; a command may name a folder.
            dataset: NAME, or NAME@VERSION.
            workers: Shards, each a process.
            split: Which one; the usual one when None.
            trust_model: Whether a foreign model may run what its author put into it.
            name: The job's; made up when None.
            backend: Where it runs.

        Raises:
            NotFound: There is no such dataset or model.
            InvalidInput: An option cannot be used.
        """
        records = self._workspace.records
        whole = whole_dataset(records, dataset)
        job = submit_validation(
            records,
            self._workspace.job_queue,
            self._model(model),
            whole,
            workers=workers,
            split=split,
            trust_model=trust_model,
            name=name,
            backend_name=backend,
        )
        return self._body(job)

    def cancel(self, name: str) -> JobBody:
        """Ask a job to end: pipeline.jobs.follow.cancel."""
        return self._body(cancel(self._workspace.records, self._job(name)))

    def resume(self, name: str) -> JobBody:
        """Start the next attempt of a job that failed or was cancelled."""
        job = self._job(name)
        return self._body(resume(self._workspace.records, self._workspace.job_queue, job))

    def wait(self, name: str, *, progress: Callable[[JobBody], object]) -> JobBody:
        """Wait until a job has ended.

        Args:
            name: The job.
            progress: Called with the job after every look at it.

        Raises:
            JobFailed: It ended otherwise than done.
        """

        def show(job: Job) -> None:
            progress(self._body(job))

        return self._body(wait(self._workspace.records, self._job(name), show))

    def log_chunks(self, name: str) -> Iterator[bytes]:
        """The output of a job's commands, each log under a heading."""
        return self.joined_logs(name, None, 0)[1]

    def joined_logs(
        self, name: str, command: str | None, offset: int
    ) -> tuple[int, Iterator[bytes]]:
        """Bytes of a job's logs: api.services.jobs.files.joined_logs."""
        return joined_logs(Path(self._job(name).paths["logs"]), command, offset)

    def file(self, name: str, path: str) -> JobFile:
        """A file that a job made: api.services.jobs.files.report_file."""
        return report_file(refresh(self._workspace.records, self._job(name)), path)

    def report(self, name: str) -> dict[str, Any]:
        """A validation's report: api.schemas.jobs.ReportAnswer.

        Raises:
            NotFound: The job has none, or has not ended.
        """
        return self.file(name, "report.json").document()

    def _job(self, name: str) -> Job:
        return recorded_job(self._workspace.records, name)

    def _body(self, job: Job) -> JobBody:
        return JobBody.of(job, self._workspace.place)

    def _model(self, name: str) -> str:
        """A model as a job takes it; only a command may name a folder.

        Raises:
            NotFound: There is no job of that name.
            InvalidInput: The job is no training.
        """
        if self._session.is_command:
            return name
        try:
            job = self._job(name)
        except NotFound as error:
            raise NotFound(
                "model",
                name,
                "expected the name of a training job that is done; GET /v1/models lists them",
            ) from error
        if job.kind != "train":
            raise InvalidInput(f"model {job.name}: is a job of kind {job.kind}, not train")
        return job.name
