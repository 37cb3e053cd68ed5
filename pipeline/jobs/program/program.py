"""A user's program as a job: what runs."""

from dataclasses import replace
from typing import Any

from catalog.errors import InvalidInput
from catalog.records.tables import Dataset
from pipeline.jobs.in_place import in_cache
from pipeline.jobs.job_input import JobInput, job_input
from pipeline.jobs.program.chosen_checkpoint import chosen_checkpoint
from pipeline.jobs.program.collect import LINEAGE
from pipeline.jobs.program.command_line import FILES, HANDED_OVER, PREPARED, CommandLine
from pipeline.jobs.program.paths import ProgramPaths
from pipeline.jobs.program.rank import FILLED, TORCHRUN
from pipeline.jobs.request import PYTHON, JobPaths, Stage
from pipeline.jobs.resources import asked_resources
from pipeline.jobs.work import JobHome, Work
from pipeline.manifest import Manifest
from pipeline.runs.orders import Program


def program_work(
    home: JobHome, order: Program, dataset: Dataset, paths: JobPaths, manifest: Manifest | None
) -> Work:
    """The work of a user's program; see pipeline.jobs.plan.work_of.

    It begins when every file of its frames is on the machine, or so much as the order says.

    Raises:
        InvalidInput: A placeholder stands for what is not made, or a source is not mounted.
        StorageError: A source's mount is not there.
        UnknownName: The dataset has no such split.
        NotFound: There is no job of the checkpoint to begin with.
    """
    frames = job_input(home, order, dataset, manifest, order.start_after)
    waits = ["--waits"] if frames.cache is not None and order.start_after is not None else []
    if frames.cache is not None and not waits:
        frames = replace(frames, start_after=100.0)  # nobody says that the program waits for files
    command = CommandLine.parse(order.command)
    _check(order, command, frames)
    if order.prepare is not None:
        frames = _to_be_prepared(home, frames, order.prepare)
    program_paths = ProgramPaths(paths.folder)
    give = [
        flag
        for name, split in command.placeholders()
        for flag in ("--give", f"{name}:{split}" if split else name)
        if name in HANDED_OVER
    ]
    split = [] if order.split is None else ["--split", order.split]
    size = [] if order.prepare is None else ["--prepare", order.prepare]
    first: list[str] = []
    if order.checkpoint is not None:
        named, path = chosen_checkpoint(home.records, order.checkpoint)
        first = ["--checkpoint", named, str(path)]
    # -P: a folder "pipeline" where the user happens to stand is not ours.
    python = (PYTHON, "-P", "-m")
    hands_over = (
        *python, "pipeline.jobs.program.hand_over", str(paths.folder), *frames.flags(paths),
        *waits, *split, *size, *first, *give, "--job", paths.folder.name,
        "--user", home.records.user,
    )  # fmt: skip
    runs = (
        *python, "pipeline.jobs.program.rank", str(paths.folder),
        order.folder or str(program_paths.output), *([TORCHRUN] if order.torchrun else []),
        *([FILLED] if command.takes_checkpoint else []), "--",
        *command.filled(program_paths),
    )  # fmt: skip
    collects = (*python, "pipeline.jobs.program.collect", str(paths.folder))
    return Work(
        (
            Stage("input", (hands_over,), uses_gpus=False),
            Stage(
                "run",
                (runs,),
                ranks=order.ranks,
                launcher="torchrun" if order.torchrun else "ranks",
            ),
            Stage("collect", (collects,), uses_gpus=False),
        ),
        asked_resources(order),
        {**frames.shown, "input": str(program_paths.input), "output": str(program_paths.output)},
        settings=_settings(order, command, frames),
        reads=frames.reads,
        staging=frames.beside(paths, order.split, order.ranks),
        writes=frames.writes,
    )


def _check(order: Program, command: CommandLine, frames: JobInput) -> None:
    """Accept splits that the dataset has, and placeholders that stand for something."""
    frames.whole.split(order.split)
    for placeholder, split in command.placeholders():
        if placeholder == FILES:
            frames.whole.split(split)
        if placeholder == PREPARED and order.prepare is None:
            raise InvalidInput(
                "command: {prepared} stands for arrays, and nothing is prepared; say at which "
                "size with --prepare, such as 240x152 or full"
            )


def _to_be_prepared(home: JobHome, frames: JobInput, size: str) -> JobInput:
    """The frames by a manifest in a cache, beside which they can be prepared.

    Raises:
        InvalidInput: They are neither staged nor in folders of this machine.
    """
    if frames.whole.header.staged or frames.cache is not None:
        return frames
    if frames.is_in_place and home.queue.cache is not None:
        return in_cache(frames, home.queue.cache)
    of = f"{frames.dataset.name}@{frames.dataset.version}"
    raise InvalidInput(
        f"prepare {size}: goes with frames that are staged or lie in folders of this machine, and "
        f"{of} does not, or is read without staging; stage it first (framesift stage {of})"
    )


def _settings(order: Program, command: CommandLine, frames: JobInput) -> dict[str, Any]:
    """The job's settings as its record has them, and from what its outputs are made."""
    header = frames.whole.header
    chosen = {"ranks": order.ranks, "split": order.split, "prepare": order.prepare,
              "folder": order.folder, "checkpoint": order.checkpoint,
              "torchrun": order.torchrun or None}  # fmt: skip
    description: dict[str, Any] = {
        name: value for name, value in chosen.items() if value is not None
    }
    lineage = {
        "dataset": f"{header.name}@{header.version}",
        "dataset_id": header.id,
        "snapshot": header.snapshot,
        "frames": len(frames.whole.split(order.split)),
        "command": list(command.arguments),
        **description,
    }
    return {"command": str(command), **description, LINEAGE: lineage, **frames.settings}
