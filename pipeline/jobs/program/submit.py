"""A user's program as a job: what runs, submitted."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from catalog.errors import InvalidInput
from catalog.records.store import RecordStore
from catalog.records.tables import Dataset, Job
from pipeline.jobs.in_place import in_cache
from pipeline.jobs.job_input import JobInput, job_input
from pipeline.jobs.program.collect import LINEAGE
from pipeline.jobs.program.command_line import FILES, HANDED_OVER, PREPARED, CommandLine
from pipeline.jobs.program.paths import ProgramPaths
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.request import PYTHON, JobPaths, Stage
from pipeline.jobs.resources import Resources
from pipeline.jobs.submit import JobOrder, Plan, submit
from pipeline.runs.size import Size

_USUAL = Resources()


@dataclass(frozen=True)
class ProgramSettings:
    """Settings of a job that runs a user's program.

    Attributes:
        command: The program and its arguments.
        ranks: Processes of it, which run at once.
        split: Whose frames it is given; None for all.
        prepare: The size at which the frames are decoded once for it; None for no arrays.
        folder: Where it runs; None for the folder of its outputs.
    """

    command: CommandLine
    ranks: int = 1
    split: str | None = None
    prepare: Size | None = None
    folder: Path | None = None


def submit_program(
    records: RecordStore,
    queue: JobQueue,
    dataset: Dataset,
    settings: ProgramSettings,
    *,
    stage: bool = True,
    attempts: int = 1,
    name: str | None = None,
    backend_name: str = "local",
    resources: Resources = _USUAL,
) -> Job:
    """Start a user's program on a dataset; its record.

    It begins when every file of its frames is on the machine.

    Args:
        records: The records.
        queue: The home's jobs.
        dataset: What it works on.
        settings: What runs, and how.
        stage: Whether it reads what is staged; else files where their sources are mounted.
        attempts: How often it may begin without a user's word, where it is lost.
        name: The job's name; made up when None.
        backend_name: Where it runs.
        resources: What it asks of the machines there, besides processes.

    Raises:
        InvalidInput: A setting cannot be used, or a source is not mounted.
        StorageError: A source's mount is not there.
        UnknownName: The dataset has no such split.
        AlreadyExists: A job has that name.
    """
    frames = _frames(records, queue, dataset, stage=stage)
    _check(settings, frames)
    if settings.prepare is not None:
        frames = _to_be_prepared(queue, frames, settings.prepare)
    needs = replace(resources, ranks=settings.ranks)

    def plan(paths: JobPaths) -> Plan:
        return _plan(paths, frames, settings, records.user)

    order = JobOrder("run", f"run-{dataset.name}", name, dataset, backend_name, needs, attempts)
    return submit(records, queue, order, plan)


def _frames(records: RecordStore, queue: JobQueue, dataset: Dataset, *, stage: bool) -> JobInput:
    frames = job_input(records, queue, dataset, stage=stage)
    if frames.cache is None:
        return frames
    return replace(frames, start_after=100.0)  # a program does not wait for its files


def _check(settings: ProgramSettings, frames: JobInput) -> None:
    """Accept settings that go together.

    Raises:
        InvalidInput: They do not.
        UnknownName: The dataset has no such split.
    """
    if settings.ranks < 1:
        raise InvalidInput(f"ranks {settings.ranks}: expected at least 1")
    if settings.folder is not None and not settings.folder.is_absolute():
        raise InvalidInput(f"folder {settings.folder}: expected an absolute path")
    frames.whole.split(settings.split)
    uses_prepared = False
    for placeholder, split in settings.command.placeholders():
        uses_prepared = uses_prepared or placeholder == PREPARED
        if placeholder == FILES:
            frames.whole.split(split)
    if uses_prepared and settings.prepare is None:
        raise InvalidInput(
            "command: {prepared} stands for arrays, and nothing is prepared; say at which size "
            "with --prepare, such as 240x152"
        )


def _to_be_prepared(queue: JobQueue, frames: JobInput, size: Size) -> JobInput:
    """The frames by a manifest in a cache, beside which they can be prepared.

    Raises:
        InvalidInput: They are neither staged nor in folders of this machine.
        StorageError: The cache cannot be written.
    """
    if frames.whole.header.staged or frames.cache is not None:
        return frames
    if frames.is_in_place and queue.cache is not None:
        return in_cache(frames, queue.cache, writes=not queue.dry_run)
    of = f"{frames.dataset.name}@{frames.dataset.version}"
    raise InvalidInput(
        f"prepare {size}: goes with frames that are staged or lie in folders of this machine, and "
        f"{of} does not, or is read without staging; stage it first (framesift stage {of})"
    )


def _plan(paths: JobPaths, frames: JobInput, settings: ProgramSettings, user: str) -> Plan:
    program_paths = ProgramPaths(paths.folder)
    give = [
        flag
        for name, split in settings.command.placeholders()
        for flag in ("--give", f"{name}:{split}" if split else name)
        if name in HANDED_OVER
    ]
    split = [] if settings.split is None else ["--split", settings.split]
    size = [] if settings.prepare is None else ["--prepare", str(settings.prepare)]
    # -P: a folder "pipeline" where the user happens to stand is not ours.
    python = (PYTHON, "-P", "-m")
    hands_over = (
        *python, "pipeline.jobs.program.hand_over", str(paths.folder), *frames.flags(paths),
        *split, *size, *give, "--job", paths.folder.name, "--user", user,
    )  # fmt: skip
    runs = (
        *python, "pipeline.jobs.program.rank", str(paths.folder),
        str(settings.folder or program_paths.output), "--", *settings.command.filled(program_paths),
    )  # fmt: skip
    collects = (*python, "pipeline.jobs.program.collect", str(paths.folder))
    return Plan(
        (
            Stage("input", (hands_over,), uses_gpus=False),
            Stage("run", (runs,), ranks=settings.ranks, launcher="ranks"),
            Stage("collect", (collects,), uses_gpus=False),
        ),
        {**frames.shown, "input": str(program_paths.input), "output": str(program_paths.output)},
        settings=_shown(settings, frames),
        reads=frames.reads,
        staging=frames.beside(paths, settings.split, settings.ranks),
    )


def _shown(settings: ProgramSettings, frames: JobInput) -> dict[str, Any]:
    """The job's settings as its record has them, and from what its outputs are made."""
    header = frames.whole.header
    description: dict[str, Any] = {"command": str(settings.command), "ranks": settings.ranks}
    if settings.split is not None:
        description["split"] = settings.split
    if settings.prepare is not None:
        description["prepare"] = str(settings.prepare)
    if settings.folder is not None:
        description["folder"] = str(settings.folder)
    lineage: dict[str, Any] = {
        "dataset": f"{header.name}@{header.version}",
        "dataset_id": header.id,
        "snapshot": header.snapshot,
        "frames": len(frames.whole.split(settings.split)),
        "command": list(settings.command.arguments),
        **{
            name: description[name]
            for name in ("split", "prepare", "folder", "ranks")
            if name in description
        },
    }
    return {**description, LINEAGE: lineage, **frames.settings}
