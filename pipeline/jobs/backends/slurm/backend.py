"""Jobs of a Slurm cluster whose nodes see the home's folders: a batch job for each stage."""

import os
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from catalog.errors import InvalidInput, JobFailed, StorageError
from catalog.storage.atomic_write import atomic_write
from pipeline.jobs.backends.interface import JobStatus
from pipeline.jobs.backends.slurm import scheduler
from pipeline.jobs.backends.slurm.scheduler import SlurmSilent
from pipeline.jobs.backends.slurm.script import SlurmJob
from pipeline.jobs.backends.slurm.settings import slurm_settings
from pipeline.jobs.backends.slurm.standing import Handle, standing
from pipeline.jobs.environment import inherited
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.request import JobPaths, JobRequest, Stage, read_json, write_json
from pipeline.jobs.resources import Resources

_HANDLE = "handle"
_CONFIGURED = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "SLURM_CONF", "LD_LIBRARY_PATH")


class SlurmBackend:
    """Hands each stage of a job to sbatch, its commands as a job array, after the one before."""

    name = "slurm"
    stages_beside = False

    def check(self, resources: Resources, queue: JobQueue) -> None:
        """Allow what settings allow, and what fits together."""
        settings = slurm_settings(queue.backends, resources, queue.user)
        if resources.ranks > settings.most_ranks:
            raise InvalidInput(
                f"workers {resources.ranks:,}: a job on slurm may have at most "
                f"{settings.most_ranks:,}; ask for fewer, or have most_ranks of [slurm] say more"
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
                "programs have for their checkpoint (checkpoint_seconds of [slurm])"
            )

    def submit(self, request: JobRequest, paths: JobPaths, queue: JobQueue, name: str) -> str:
        """Hand over all stages on hold, keep their numbers in the job's folder, release them."""
        job = _job(request, paths, queue, name)
        variables = inherited(os.environ, (), queue.inherits, request.submitted)
        numbers: list[str] = []
        try:
            paths.logs.mkdir(parents=True, exist_ok=True)
            for leftover in (paths.result, paths.progress, paths.staging):
                leftover.unlink(missing_ok=True)
            # Nodes may go on where this machine loses its power.
            write_json(paths.request, request.to_json(), fsync=True)
            job.notes.mkdir(parents=True, exist_ok=True)
            for flags, script in _stages(job, numbers):
                numbers.append(scheduler.submit(flags, script, variables))
            return _kept(job.notes, Handle(name, tuple(numbers)), variables)
        except (SlurmSilent, OSError, StorageError) as error:
            with suppress(SlurmSilent):  # also one whose number nobody was told
                submitted = {*numbers, *scheduler.numbers_of(name, variables)}
                scheduler.cancel([], submitted, variables)
            if isinstance(error, SlurmSilent):
                raise JobFailed(request.name, f"job {request.name}: {error}") from error
            if isinstance(error, OSError):
                raise StorageError(
                    f"{paths.folder}: the job cannot be started: {error.strerror}",
                    str(paths.folder),
                ) from error
            raise

    def find(self, name: str, paths: JobPaths) -> str | None:
        """The handle in the job's folder; what is on hold of a submission that was cut off goes."""
        notes, variables = paths.folder / "slurm" / name, _variables(paths)
        handle_file = notes / _HANDLE
        try:
            if handle_file.exists():
                handle = Handle.parse(handle_file.read_text(encoding="utf-8"))
                with suppress(SlurmSilent):  # begun or ended long ago
                    scheduler.release(handle.numbers, variables)
                return str(handle)
            if notes.exists():
                pending = scheduler.numbers_of(name, variables)
                scheduler.cancel(["--state=PENDING"], pending, variables)
        except SlurmSilent as error:
            raise JobFailed(name, f"{name}: {error}") from error
        except OSError as error:
            raise StorageError(f"{handle_file}: {error.strerror}", str(handle_file)) from error
        return None

    def statuses(self, handles: Mapping[str, JobPaths]) -> dict[str, JobStatus]:
        """The states by the scripts' words, and by what squeue says of a cluster's jobs at once."""
        clusters: dict[tuple[tuple[str, str], ...], dict[str, Handle]] = defaultdict(dict)
        for text, paths in handles.items():
            clusters[tuple(sorted(_variables(paths).items()))][text] = Handle.parse(text)
        statuses_by_handle: dict[str, JobStatus] = {}
        for of_cluster, known in clusters.items():
            variables = dict(of_cluster)
            rows: dict[tuple[str, int], scheduler.Row] | SlurmSilent
            try:
                numbers = [number for handle in known.values() for number in handle.numbers]
                rows = scheduler.rows(numbers, variables)
            except SlurmSilent as error:
                rows = error
            for text, handle in known.items():
                statuses_by_handle[text] = standing(handle, handles[text], rows, variables)
        return statuses_by_handle

    def cancel(self, handle: str, paths: JobPaths) -> None:
        """Have what waits never begin, and what runs keep what it has and end."""
        try:
            paths.cancel.touch()
        except OSError as error:
            raise StorageError(
                f"{paths.cancel}: cannot be written: {error.strerror}", str(paths.cancel)
            ) from error
        numbers, variables = Handle.parse(handle).numbers, _variables(paths)
        try:
            scheduler.cancel(["--state=PENDING"], numbers, variables)
            scheduler.cancel(["--signal=USR1", "--batch", "--state=RUNNING"], numbers, variables)
        except SlurmSilent as error:
            raise JobFailed(paths.folder.name, f"job {paths.folder.name}: {error}") from error

    def describe(self, request: JobRequest, paths: JobPaths, queue: JobQueue, name: str) -> str:
        """Each command line of sbatch, and the script that it reads."""
        numbers: list[str] = []
        lines = []
        job = _job(request, paths, queue, name)
        for flags, script in _stages(job, numbers):
            lines += [shlex.join(["sbatch", "--parsable", *flags]), script]
            numbers.append(f"JOB{len(numbers) + 1}")
        return "\n".join(lines)


def _job(request: JobRequest, paths: JobPaths, queue: JobQueue, name: str) -> SlurmJob:
    settings = slurm_settings(queue.backends, request.resources, request.user)
    return SlurmJob(request, paths, name, settings, queue.folder)


def _stages(job: SlurmJob, numbers: list[str]) -> Iterator[tuple[list[str], str]]:
    """Flags and script of each stage; ``numbers`` gets those of the stages before, one by one."""
    before: Stage | None = None
    for stage in job.request.stages:
        flags = job.flags(stage)
        if before is not None:
            condition = "afterany" if before.optional else "afterok"
            flags.append(f"--dependency={condition}:{numbers[-1]}")
        yield flags, job.script(stage)
        before = stage


def _variables(paths: JobPaths) -> dict[str, str]:
    """The variables by which Slurm's commands find the cluster of a job that was submitted."""
    own = {name: os.environ[name] for name in _CONFIGURED if name in os.environ}
    passed = inherited(own, (), (), read_json(paths.request).get("submitted"))
    return {name: passed[name] for name in _CONFIGURED if name in passed}


def _kept(notes: Path, handle: Handle, variables: Mapping[str, str]) -> str:
    """Keep a handle before any of its jobs may begin, then have them begin.

    Raises:
        SlurmSilent: Slurm does not answer.
        StorageError: The folder cannot be written.
    """
    atomic_write(notes / _HANDLE, str(handle))
    try:
        scheduler.release(handle.numbers, variables)
    except SlurmSilent:
        (notes / _HANDLE).unlink()
        raise
    return str(handle)
