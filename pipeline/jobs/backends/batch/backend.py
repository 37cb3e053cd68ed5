"""Jobs of a cluster whose nodes see the home's folders: a batch job for each stage."""

import os
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from catalog.errors import InvalidInput, JobFailed, StorageError
from catalog.storage.atomic_write import atomic_write
from pipeline.jobs.backends.batch.commands import SchedulerSilent, Variables
from pipeline.jobs.backends.batch.dialect import Dialect, Predecessor, Row
from pipeline.jobs.backends.batch.job import BatchJob, notes_of
from pipeline.jobs.backends.batch.script import script
from pipeline.jobs.backends.batch.standing import Handle, standing
from pipeline.jobs.backends.interface import JobStatus
from pipeline.jobs.backends.job_folder import ask_to_end, begin_attempt, not_started
from pipeline.jobs.environment import inherited
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.request import JobPaths, JobRequest, read_json
from pipeline.jobs.resources import Resources

_HANDLE = "handle"
_CONFIGURED = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LD_LIBRARY_PATH")


class BatchBackend:
    """Submits each stage of a job, its commands as a job array, after the one before."""

    stages_beside = False

    def __init__(self, dialect: Dialect) -> None:
        """Speak a scheduler's words."""
        self.dialect = dialect
        self.name = dialect.name

    def check(self, resources: Resources, queue: JobQueue) -> None:
        """Allow what settings allow, and what fits together."""
        settings = self.dialect.settings(queue.backends, resources, queue.user)
        if resources.ranks > settings.most_ranks:
            raise InvalidInput(
                f"workers {resources.ranks:,}: a job on {self.name} may have at most "
                f"{settings.most_ranks:,}; ask for fewer, or have most_ranks of [{self.name}] say "
                "more"
            )
        if resources.mounts and not (resources.image or settings.image):
            raise InvalidInput("mounts: go with an image; name one, or leave them out")
        for here, there in resources.mounts.items():
            if not here.startswith("/") or not there.startswith("/") or {*":,"} & {*here, *there}:
                raise InvalidInput(
                    f"mount {here}={there}: expected two absolute paths without ':' and ','"
                )
        keep = settings.checkpoint_seconds
        if resources.wall_minutes and resources.wall_minutes * 60 <= keep:
            raise InvalidInput(
                f"wall minutes {resources.wall_minutes}: expected more than the {keep} s that "
                f"programs have for their checkpoint (checkpoint_seconds of [{self.name}])"
            )
        self.dialect.check(resources, settings)

    def submit(self, request: JobRequest, paths: JobPaths, queue: JobQueue, name: str) -> str:
        """Submit all stages on hold, keep their numbers in the job's folder, release them."""
        job = self._job(request, paths, queue, name)
        variables = inherited(os.environ, (), queue.inherits, request.submitted)
        numbers: list[str] = []
        try:
            begin_attempt(paths, request, fsync=True)
            job.notes.mkdir(parents=True, exist_ok=True)
            for command, text in self._stages(job, numbers, variables):
                numbers.append(self.dialect.submit(command, text, variables))
            return self._kept(job.notes, Handle(name, tuple(numbers)), variables)
        except (SchedulerSilent, OSError, StorageError) as error:
            with suppress(SchedulerSilent):  # also one whose number nobody was told
                submitted = {*numbers, *self.dialect.numbers_of(name, variables)}
                self.dialect.delete(sorted(submitted), variables)
            if isinstance(error, SchedulerSilent):
                raise JobFailed(request.name, f"job {request.name}: {error}") from error
            if isinstance(error, OSError):
                raise not_started(paths, error) from error
            raise

    def find(self, name: str, paths: JobPaths) -> str | None:
        """The handle in the job's folder; what is on hold of a submission that was cut off goes."""
        notes, variables = notes_of(paths, self.name, name), self._variables(paths)
        handle_file = notes / _HANDLE
        try:
            if handle_file.exists():
                handle = Handle.parse(handle_file.read_text(encoding="utf-8"))
                with suppress(SchedulerSilent):  # begun or ended long ago
                    self.dialect.release(handle.numbers, variables)
                return str(handle)
            if notes.exists():
                numbers = self.dialect.numbers_of(name, variables)
                self.dialect.withdraw(numbers, variables)
        except SchedulerSilent as error:
            raise JobFailed(name, f"{name}: {error}") from error
        except OSError as error:
            raise StorageError(f"{handle_file}: {error.strerror}", str(handle_file)) from error
        return None

    def statuses(self, handles: Mapping[str, JobPaths]) -> dict[str, JobStatus]:
        """The states by the scripts' words, and by what the scheduler says of all jobs at once."""
        clusters: dict[tuple[tuple[str, str], ...], dict[str, Handle]] = defaultdict(dict)
        for text, paths in handles.items():
            clusters[tuple(sorted(self._variables(paths).items()))][text] = Handle.parse(text)
        statuses_by_handle: dict[str, JobStatus] = {}
        for of_cluster, known in clusters.items():
            variables = dict(of_cluster)
            rows: dict[tuple[str, int], Row] | SchedulerSilent
            try:
                numbers = [number for handle in known.values() for number in handle.numbers]
                rows = self.dialect.rows(numbers, variables)
            except SchedulerSilent as error:
                rows = error
            for text, handle in known.items():
                statuses_by_handle[text] = standing(
                    self.dialect, handle, handles[text], rows, variables
                )
        return statuses_by_handle

    def cancel(self, handle: str, paths: JobPaths) -> None:
        """Have what waits never begin, and what runs keep what it has and end."""
        ask_to_end(paths)
        numbers, variables = Handle.parse(handle).numbers, self._variables(paths)
        try:
            self.dialect.withdraw(numbers, variables)
            self.dialect.warn(numbers, variables)
        except SchedulerSilent as error:
            raise JobFailed(paths.folder.name, f"job {paths.folder.name}: {error}") from error

    def describe(self, request: JobRequest, paths: JobPaths, queue: JobQueue, name: str) -> str:
        """Each command line that submits a stage, and the script that it reads."""
        numbers: list[str] = []
        lines = []
        job = self._job(request, paths, queue, name)
        variables = inherited(os.environ, (), queue.inherits, request.submitted)
        for command, text in self._stages(job, numbers, variables):
            lines += [shlex.join(command), text]
            numbers.append(f"JOB{len(numbers) + 1}")
        return "\n".join(lines)

    def _job(self, request: JobRequest, paths: JobPaths, queue: JobQueue, name: str) -> BatchJob:
        settings = self.dialect.settings(queue.backends, request.resources, request.user)
        return BatchJob(request, paths, name, settings, queue.folder, self.name)

    def _stages(
        self, job: BatchJob, numbers: list[str], variables: Variables
    ) -> Iterator[tuple[tuple[str, ...], str]]:
        """Command line and script of each stage; ``numbers`` gets those of the stages before."""
        predecessor: Predecessor | None = None
        for stage in job.request.stages:
            command = self.dialect.submission(job, stage, predecessor)
            yield command, script(job, stage, self.dialect, variables)
            predecessor = Predecessor(numbers[-1], may_fail=stage.optional)

    def _variables(self, paths: JobPaths) -> dict[str, str]:
        """Variables by which the scheduler's commands find the cluster of a submitted job."""
        names = (*_CONFIGURED, *self.dialect.configured)
        own = {name: os.environ[name] for name in names if name in os.environ}
        passed = inherited(own, (), (), read_json(paths.request).get("submitted"))
        return {name: passed[name] for name in names if name in passed}

    def _kept(self, notes: Path, handle: Handle, variables: Variables) -> str:
        """Keep a handle before any of its jobs may begin, then have them begin.

        Raises:
            SchedulerSilent: The scheduler does not answer.
            StorageError: The folder cannot be written.
        """
        atomic_write(notes / _HANDLE, str(handle))
        try:
            self.dialect.release(handle.numbers, variables)
        except SchedulerSilent:
            (notes / _HANDLE).unlink()
            raise
        return str(handle)
