"""Jobs: what can be done with them."""

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from api.schemas.accounts.usage import By, UsageBody
from api.schemas.comparisons import ComparisonBody
from api.schemas.jobs import DryRunBody, DryStepBody, JobBody, ReportAnswer
from api.schemas.timeline import LogSizeBody, LogSizesAnswer, MoveBody, TimelineAnswer
from api.services.jobs.compare import comparison
from api.services.jobs.files import JobFile, report_file
from api.services.jobs.logs import LogEnd, joined_logs, log_end, log_sizes
from api.services.jobs.programs import need_programs
from api.services.jobs.question_jobs import Asked, Foreseen, begin_with_steps, or_question
from catalog.errors import InvalidInput, NotFound, StorageError
from catalog.records.datasets import complete_dataset
from catalog.records.jobs import job_counts, recorded_job, recorded_jobs, recorded_moves
from catalog.records.tables import Dataset, Job
from pipeline.jobs.accounting.usage import Usage, job_usage
from pipeline.jobs.attempts import ATTEMPTS
from pipeline.jobs.changes import Changes
from pipeline.jobs.follow import cancel, refresh, refresh_all, wait
from pipeline.jobs.inference.prediction import submit_prediction
from pipeline.jobs.inference.validation import submit_validation
from pipeline.jobs.program.command_line import CommandLine
from pipeline.jobs.program.submit import ProgramSettings, submit_program
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.resources import Resources
from pipeline.jobs.run import submit_training
from pipeline.jobs.submit import Described, DryRun, resume
from pipeline.jobs.train_settings import TrainSettings
from pipeline.jobs.workflow.moves import RUN
from pipeline.jobs.workflow.remove import remove
from pipeline.runs.checkpoint_steps import named_checkpoint
from pipeline.runs.size import Size

_MODEL_KINDS = ("validate", "predict")
"""Kinds of jobs that put a dataset through a model."""

if TYPE_CHECKING:
    import pyarrow as pa

    from api.services.call import Call
    from api.services.jobs.confused_frames import ConfusedFrames


class Jobs:
    """Jobs of a home."""

    def __init__(self, session: "Call") -> None:
        """Those that the session's caller may see; a command may name models by their folders."""
        self.session, self._workspace = session, session.workspace
        self._is_dry, self._begun = False, ""
        self._foreseen: Foreseen | None = None

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
        jobs = recorded_jobs(
            records, kind=kind, states=states, account=self._account, before=before, limit=limit
        )
        return [self._body(job) for job in jobs]

    def counts(self) -> dict[tuple[str, str], int]:
        """Number of jobs of each kind in each state now."""
        records = self._workspace.records
        refresh_all(records)  # of those that have not ended
        return job_counts(records)

    def usage(self, by: By = "user") -> builtins.list[UsageBody]:
        """Jobs' usage of machines.

        Args:
            by: What the sums are of.
        """
        records = self._workspace.records
        refresh_all(records)
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

    def usage_of_all(self) -> Mapping[tuple[str, ...], Usage]:
        """The same by user, dataset and kind, as far as jobs have been looked at."""
        return job_usage(self._workspace.records, "user", "dataset", "kind")

    def get(self, name: str) -> JobBody:
        """A job as it stands now.

        Raises:
            NotFound: There is none of that name.
        """
        return self._body(refresh(self._workspace.records, self._job(name)))

    def compare(self, jobs: Sequence[str]) -> ComparisonBody:
        """Jobs beside each other: settings in which they differ, and what they measured.

        Raises:
            NotFound: There is none of one of the names.
        """
        return comparison([self.get(name) for name in jobs])

    def timeline(self, name: str) -> TimelineAnswer:
        """Every change of the states of a job's tasks, the first one first.

        Raises:
            NotFound: There is no job of that name.
        """
        records = self._workspace.records
        job = refresh(records, self._job(name))
        folder = str(job.paths["folder"])
        told = self._workspace.place(folder)
        moves = recorded_moves(records, job)
        return TimelineAnswer(moves=[MoveBody.of(move, folder, told) for move in moves])

    def follower(self, name: str) -> Callable[[], JobBody]:
        """Gives a job as it stands then, for as many listeners as there are to it.

        Args:
            name: A job that the caller may see, which is looked at once: what it gives is the same
                for all who are told paths as the caller is.
        """
        records, tell = self.session.whole.records, self._workspace.place
        return lambda: JobBody.of(refresh(records, recorded_job(records, name)), tell)

    @or_question
    def train(
        self,
        dataset: str,
        *,
        name: str | None = None,
        backend: str = "local",
        stage: bool = True,
        start_after: float | None = None,
        resources: Mapping[str, Any] | None = None,
        attempts: int = ATTEMPTS,
        **settings: Any,
    ) -> JobBody:
        """Train on a dataset; the job.

        Args:
            dataset: NAME, or NAME@VERSION.
            name: The job's; made up when None.
            backend: Where it runs.
            stage: Whether it reads what is staged; else its files where its sources are mounted.
            start_after: Share of the split that is staged before it begins [percent]; see
                pipeline.jobs.job_input.
            resources: Of pipeline.jobs.resources.Resources, besides processes.
            attempts: How often it may begin without a user's word, where it is lost.
            **settings: Of TrainSettings.

        Raises:
            NotFound: There is no such dataset or model.
            InvalidInput: A setting cannot be used, or a source is not mounted.
            StorageError: A source's mount is not there.
        """
        records = self._workspace.records
        whole, parent = self._whole(dataset), settings.get("continue_from")
        if parent is not None:
            settings = settings | {"continue_from": self.model(parent)}
        job = submit_training(
            records,
            self.queue,
            whole,
            TrainSettings(**settings),
            stage=stage,
            start_after=start_after,
            attempts=attempts,
            name=name,
            backend_name=backend,
            resources=Resources.from_json(resources or {}),
        )
        return self._body(job)

    @or_question
    def validate(
        self,
        model: str,
        dataset: str,
        *,
        workers: int = 2,
        split: str | None = None,
        trust_model: bool = False,
        fail_below: Mapping[str, float] | None = None,
        bad_frames: str | None = None,
        compare: str | None = None,
        slices: Sequence[str] | None = None,
        augment_test: str | None = None,
        name: str | None = None,
        backend: str = "local",
        stage: bool = True,
        start_after: float | None = None,
        resources: Mapping[str, Any] | None = None,
        attempts: int = ATTEMPTS,
    ) -> JobBody:
        """Validate a model; the job.

        Args:
            model: The name of a training job; a command may name a folder.
            dataset: NAME, or NAME@VERSION.
            workers: Shards, each a process.
            split: Which one; the usual one when None.
            trust_model: Whether a foreign model may run what its author put into it.
            fail_below: The least score by name: "miou", "frequency_weighted_iou", "boundary_iou",
                "pixel_accuracy", or a class's tag for its IoU. The job is done all the same; its
                metrics say what was not reached, as "below".
            bad_frames: What becomes of frames that cannot be read: pipeline.runs.bad_frames.
            compare: Another model, as `model`: it is validated on the same frames, and the report
                says where this one is worse.
            slices: Tags by whose values the report scores parts, besides camera and scene; "all"
                for each that has few values (pipeline.datasets.slice_values).
            augment_test: "mirror" to put each image through the model mirrored, too: the report
                tells how many pixels get another class.
            name: The job's; made up when None.
            backend: Where it runs.
            stage: Whether it reads what is staged; else its files where its sources are mounted.
            start_after: Share of the split that is staged before it begins [percent]; see
                pipeline.jobs.job_input.
            resources: Of pipeline.jobs.resources.Resources, besides processes.
            attempts: How often it may begin without a user's word, where it is lost.

        Raises:
            NotFound: There is no such dataset or model.
            InvalidInput: An option cannot be used, or a source is not mounted.
            StorageError: A source's mount is not there.
        """
        records = self._workspace.records
        whole = self._whole(dataset)
        job = submit_validation(
            records,
            self.queue,
            self.model(model),
            whole,
            workers=workers,
            split=split,
            trust_model=trust_model,
            fail_below=fail_below,
            bad_frames=bad_frames,
            compare=None if compare is None else self.model(compare),
            slices=self._slices(whole, slices) if slices else None,
            augment_test=augment_test,
            stage=stage,
            start_after=start_after,
            attempts=attempts,
            name=name,
            backend_name=backend,
            resources=Resources.from_json(resources or {}),
        )
        return self._body(job)

    @or_question
    def predict(
        self,
        model: str,
        dataset: str,
        *,
        workers: int = 2,
        split: str | None = None,
        trust_model: bool = False,
        bad_frames: str | None = None,
        name: str | None = None,
        backend: str = "local",
        stage: bool = True,
        start_after: float | None = None,
        resources: Mapping[str, Any] | None = None,
        attempts: int = ATTEMPTS,
    ) -> JobBody:
        """Let a model say what is in frames, with or without labels; the job.

        Args:
            model: The name of a training job; a command may name a folder.
            dataset: NAME, or NAME@VERSION.
            workers: Shards, each a process.
            split: Which one; the usual one when None.
            trust_model: Whether a foreign model may run what its author put into it.
            bad_frames: What becomes of frames that cannot be read: pipeline.runs.bad_frames.
            name: The job's; made up when None.
            backend: Where it runs.
            stage: Whether it reads what is staged; else its files where its sources are mounted.
            start_after: Share of the split that is staged before it begins [percent]; see
                pipeline.jobs.job_input.
            resources: Of pipeline.jobs.resources.Resources, besides processes.
            attempts: How often it may begin without a user's word, where it is lost.

        Raises:
            NotFound: There is no such dataset or model.
            InvalidInput: An option cannot be used, or a source is not mounted.
            StorageError: A source's mount is not there.
        """
        records = self._workspace.records
        job = submit_prediction(
            records,
            self.queue,
            self.model(model),
            self._whole(dataset),
            workers=workers,
            split=split,
            trust_model=trust_model,
            bad_frames=bad_frames,
            stage=stage,
            start_after=start_after,
            attempts=attempts,
            name=name,
            backend_name=backend,
            resources=Resources.from_json(resources or {}),
        )
        return self._body(job)

    @or_question
    def run(
        self,
        dataset: str,
        command: str,
        *,
        ranks: int = 1,
        split: str | None = None,
        prepare: str | None = None,
        folder: str | None = None,
        name: str | None = None,
        backend: str = "local",
        stage: bool = True,
        resources: Mapping[str, Any] | None = None,
        attempts: int = 1,
    ) -> JobBody:
        """Run a user's own program on a dataset; the job.

        Args:
            dataset: NAME, or NAME@VERSION.
            command: Program and arguments: pipeline.jobs.program.command_line.
            ranks: Processes of it, at once.
            split: Whose frames it is given; all when None.
            prepare: Size at which the frames are decoded once, WIDTHxHEIGHT; not at all when None.
            folder: Where it runs; the folder of its outputs when None.
            name: The job's; made up when None.
            backend: Where it runs.
            stage: Whether it reads what is staged; else its files where its sources are mounted.
            resources: Of pipeline.jobs.resources.Resources, besides processes.
            attempts: How often it may begin without a user's word, where it is lost.

        Raises:
            NotAllowed: The server runs no programs of this caller.
            NotFound: There is no such dataset.
            InvalidInput: An option cannot be used, or a source is not mounted.
            StorageError: A source's mount is not there.
        """
        need_programs(self.session)
        records = self._workspace.records
        settings = ProgramSettings(
            CommandLine.parse(command),
            ranks,
            split,
            None if prepare is None else Size.parse(prepare),
            None if folder is None else Path(folder),
        )
        job = submit_program(
            records,
            self.queue,
            self._whole(dataset),
            settings,
            stage=stage,
            attempts=attempts,
            name=name,
            backend_name=backend,
            resources=Resources.from_json(resources or {}),
        )
        return self._body(job)

    def dry_run(self, kind: str, **options: Any) -> DryRunBody:
        """The hand-over to a job's backend; nothing is recorded or started.

        Args:
            kind: "train", "validate", "predict" or "run".
            **options: Of that method.

        Raises:
            FramesiftError: As that method does.
        """
        described = Jobs(self.session)
        described._is_dry = True
        dataset, steps = described._described(kind, options)
        return DryRunBody(
            dataset=f"{dataset.name}@{dataset.version}",
            frames=dataset.frames,
            notes=self.notes(kind, options),
            submission=next(step.submission for step in steps if step.name == RUN),
            steps=[DryStepBody(**vars(step)) for step in steps],
        )

    def version(self, kind: str, options: Mapping[str, Any]) -> str:
        """The dataset of a job's options, with the version that is meant beside its model."""
        if kind not in _MODEL_KINDS:
            return str(options["dataset"])
        # With pyarrow, which those who list jobs do without.
        from api.services.jobs.trained_frames import version_for

        model = self.model(options["model"])
        return version_for(self._workspace, model, options["dataset"], options.get("split"))

    def notes(self, kind: str, options: Mapping[str, Any]) -> builtins.list[str]:
        """Statements that the user should know before a job with these options runs."""
        if kind not in _MODEL_KINDS or not options.get("dataset"):
            return []
        from api.services.jobs.trained_frames import notes_on

        dataset = options["dataset"]
        complete_dataset(self._workspace.records, dataset)  # before anything is said of the model
        return notes_on(
            self._workspace,
            self.model(options["model"]),
            dataset,
            options.get("split"),
            scores=kind == "validate",
        )

    def foresee(
        self, kind: str, job: str, foreseen: Foreseen, options: Mapping[str, Any]
    ) -> Described:
        """The plan that the step "run" of a job of several steps would hand to its backend.

        Args:
            kind: "train", "validate", "predict" or "run".
            job: Its name.
            foreseen: What it would work on.
            options: Of that method.

        Raises:
            FramesiftError: As that method does.
        """
        planning = Jobs(self.session)
        planning._is_dry, planning._foreseen = True, foreseen
        _, (run,) = planning._described(kind, {**options, "dataset": "", "name": job})
        return run

    def _described(
        self, kind: str, options: Mapping[str, Any]
    ) -> tuple[Dataset, Sequence[Described]]:
        """The dataset and the steps of a job that is described only."""
        try:
            getattr(self, kind)(**options)
        except DryRun as told:
            if told.dataset is not None:
                return told.dataset, told.steps
        raise AssertionError(f"a dry run of {kind} submitted a job, or one without frames")

    @property
    def queue(self) -> JobQueue:
        """The home's jobs, submitted by the caller."""
        foreseen = None if self._foreseen is None else self._foreseen.manifest
        return replace(
            self.session.job_queue, dry_run=self._is_dry, begun=self._begun, foreseen=foreseen
        )

    def _whole(self, dataset: str) -> Dataset:
        """The dataset of a job; of one that is foreseen, what its question would be saved as."""
        if self._foreseen is not None:
            return self._foreseen.dataset
        return complete_dataset(self._workspace.records, dataset)

    def ask(
        self,
        kind: str,
        asked: Asked,
        options: Mapping[str, Any],
    ) -> JobBody:
        """Begin a job of several steps: api.services.jobs.question_jobs."""
        return self._body(begin_with_steps(self, kind, asked, options))

    def planned(self, name: str, kind: str, **options: Any) -> JobBody:
        """Plan what a job of several steps, which has begun, hands to its backend.

        Args:
            name: The job.
            kind: "train", "validate", "predict" or "run".
            **options: Of that method.

        Raises:
            FramesiftError: As that method does.
        """
        planning = Jobs(self.session)
        planning._begun = name
        begin: Callable[..., JobBody] = getattr(planning, kind)
        return begin(**options)

    def cancel(self, name: str) -> JobBody:
        """Ask a job to end: pipeline.jobs.follow.cancel."""
        return self._body(cancel(self._workspace.records, self._job(name)))

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
        job = self._job(name)
        if job.kind == "run":
            need_programs(self.session)
        changes = Changes(workers, bad_frames)
        return self._body(resume(self._workspace.records, self.session.job_queue, job, changes))

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

        queue = self._workspace.job_queue
        return self._body(wait(self._workspace.records, self._job(name), show, queue))

    def log_chunks(self, name: str) -> Iterator[bytes]:
        """The output of a job's commands, each log under a heading."""
        return self.joined_logs(name, None, 0)[1]

    def joined_logs(
        self, name: str, command: str | None, offset: int
    ) -> tuple[int, Iterator[bytes]]:
        """Bytes of a job's logs: api.services.jobs.logs.joined_logs."""
        return joined_logs(Path(self._job(name).paths["folder"]), command, offset)

    def log_sizes(self, name: str) -> LogSizesAnswer:
        """The names of a job's logs, and their bytes by now."""
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
        remove(self._workspace.records, self._job(name))

    def log_end(self, name: str, log: str, most_bytes: int) -> LogEnd | None:
        """The end of one of a job's logs: api.services.jobs.logs.log_end."""
        return log_end(Path(self._job(name).paths["folder"]), log, most_bytes)

    def file(self, name: str, path: str) -> JobFile:
        """A file that a job made: api.services.jobs.files.report_file."""
        job = refresh(self._workspace.records, self._job(name))
        return report_file(job, path, tells_paths=not self._workspace.is_limited)

    def report(self, name: str) -> dict[str, Any]:
        """A validation's report: api.schemas.jobs.ReportAnswer.

        Raises:
            NotFound: The job has none, or has not ended.
            StorageError: It is damaged.
        """
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

        classes, path = self.report(name)["classes"], self.file(name, "frame_cells.parquet").path
        cell = (truth, predicted)
        return confused_frames(self._workspace, path, classes, cell, begin, most)

    def _slices(self, dataset: Dataset, names: Sequence[str]) -> Callable[[str], "pa.Table"]:
        """Gives of a split of a dataset the parts that its frames are in, by tags."""
        # With DuckDB, which those who list jobs do without.
        from api.services.datasets.new_dataset import stores_of
        from pipeline.datasets.slice_values import slice_values
        from pipeline.manifest_store import read_manifest

        foreseen = self._foreseen
        manifest = (
            foreseen.manifest if foreseen else read_manifest(self._workspace.records, dataset)
        )
        return partial(slice_values, stores_of(self._workspace), manifest, names=names)

    @property
    def _account(self) -> str | None:
        """The account whose jobs alone the caller may see and end; None for those of all."""
        is_admin = self.session.is_command or "admin" in self.session.caller.roles
        # The records of a limited user hold no others' jobs.
        sees_all = is_admin or self._workspace.is_limited
        return None if sees_all else self.session.caller.account

    def _job(self, name: str) -> Job:
        """A job that the caller may see.

        Raises:
            NotFound: There is none of that name, or another user began it.
        """
        return recorded_job(self._workspace.records, name, account=self._account)

    def _body(self, job: Job) -> JobBody:
        return JobBody.of(job, self._workspace.place)

    def model(self, name: str) -> str:
        """A model as a job takes it, maybe with @STEP or @best; only a command may name a folder.

        Raises:
            NotFound: There is no job of that name.
            InvalidInput: The job is no training.
        """
        if self.session.is_command:
            return name
        base, checkpoint = named_checkpoint(name)
        try:
            job = recorded_job(self._workspace.records, base)
        except NotFound as error:
            raise NotFound(
                "model",
                name,
                "expected the name of a training job that is done; GET /v1/models lists them",
            ) from error
        if job.kind != "train":
            raise InvalidInput(f"model {job.name}: is a job of kind {job.kind}, not train")
        return job.name if checkpoint is None else f"{job.name}@{checkpoint}"
