"""Where a job stands, by what its scripts wrote and what its scheduler says."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pipeline.jobs.backends.batch.commands import SchedulerSilent, Variables
from pipeline.jobs.backends.batch.dialect import Dialect, Row
from pipeline.jobs.backends.batch.job import notes_of
from pipeline.jobs.backends.interface import JobStatus
from pipeline.jobs.backends.log_end import full_disk, was_killed, why_failed
from pipeline.jobs.request import JobPaths, JobRequest, Stage, read_json


@dataclass(frozen=True)
class Handle:
    """The batch jobs of an attempt, one for each stage."""

    name: str
    """Of the attempt."""
    numbers: tuple[str, ...]
    """Of the batch jobs."""

    @classmethod
    def parse(cls, text: str) -> "Handle":
        """The handle that ``str`` wrote."""
        name, _, numbers = text.strip().rpartition(":")
        return cls(name, tuple(filter(None, numbers.split(","))))

    def __str__(self) -> str:
        return f"{self.name}:{','.join(self.numbers)}"


@dataclass(frozen=True)
class _Task:
    """A command of a stage: what its script wrote, and what the scheduler says of it."""

    stage: Stage
    number: str
    index: int
    note: Mapping[str, Any]
    row: Row | None

    @property
    def code(self) -> int | None:
        """Its exit code; None until it ended by itself."""
        code = self.note.get("code")
        return code if isinstance(code, int) else None

    @property
    def is_active(self) -> bool:
        """True when more is to come of it: what the scheduler ended may be in its queue again."""
        is_unended = self.code is None or self.note.get("end") == "scheduler"
        return is_unended and self.row is not None and self.row.standing != "ended"


def standing(
    dialect: Dialect,
    handle: Handle,
    paths: JobPaths,
    rows: Mapping[tuple[str, int], Row] | SchedulerSilent,
    variables: Variables,
) -> JobStatus:
    """Where a job stands.

    Args:
        dialect: The scheduler's.
        handle: Of the job.
        paths: Of its folder.
        rows: What the scheduler knows, asked before this is called, so that no last word is
            missed; or why it does not say.
        variables: By which the scheduler's commands find the job's cluster.
    """
    request = JobRequest.from_json({"stages": [], **_EMPTY, **read_json(paths.request)})
    notes = notes_of(paths, dialect.name, handle.name)
    tasks = [
        _Task(stage, number, index, note, _row(rows, number, index))
        for stage, number in zip(request.stages, handle.numbers, strict=False)
        for index in range(len(stage.commands))
        for note in (read_json(notes / f"{stage.title}-{index}.json"),)
    ]
    started = min(filter(None, (_time(task.note, "started") for task in tasks)), default=None)
    for stage in request.stages:
        own = [task for task in tasks if task.stage is stage]
        unended = [task for task in own if task.code is None]
        if isinstance(rows, SchedulerSilent) and unended:
            return JobStatus("unknown", str(rows), started)
        if active := [task for task in own if task.is_active]:
            return _under_way(dialect, active, started, is_first=stage is request.stages[0])
        if stage.optional or all(task.code == 0 for task in own):
            continue
        return _ended_badly(dialect, request, paths, own, started, variables)
    finished = max(filter(None, (_time(task.note, "finished") for task in tasks)), default=None)
    if not tasks:
        error = f"{paths.request}: is not there, or damaged: nobody knows what was submitted"
        return JobStatus("failed", error)
    return JobStatus("done", "", started, finished)


_ENDED_BEFORE_THE_WALL_TIME = {
    "wall": "without a checkpoint to go on from",
    "turn": "and is not in the queue again",
}
_EMPTY: dict[str, Any] = {"name": "", "kind": "", "environment": {}, "parallel": 1}


def _under_way(
    dialect: Dialect, active: list[_Task], started: datetime | None, is_first: bool
) -> JobStatus:
    rows = [task.row for task in active if task.row is not None]
    waits = f"for {dialect.title}: {rows[0].reason}"
    if any(row.standing == "runs" for row in rows):
        waits = ""
    if waits and (is_first or not started):
        return JobStatus("queued", "", None, waits=waits)
    return JobStatus("running", "", started, waits=waits)


def _ended_badly(
    dialect: Dialect,
    request: JobRequest,
    paths: JobPaths,
    tasks: list[_Task],
    started: datetime | None,
    variables: Variables,
) -> JobStatus:
    finished = max(filter(None, (_time(task.note, "finished") for task in tasks)), default=None)
    if paths.cancel.exists():
        return JobStatus("cancelled", "cancelled", started, finished)
    failed = [task for task in tasks if task.code != 0]
    # One that failed by itself says more than those that were ended with it.
    failed.sort(key=lambda task: (task.code is None, bool(task.note.get("end"))))
    task = failed[0]
    what, log = f"{task.stage.title} {task.index}", paths.log(task.stage.title, task.index)
    if task.code is not None and not task.note.get("end"):
        code = 128 - task.code if task.code > 128 else task.code
        error = why_failed(what, log, request.attempt, code)
        is_lost = was_killed(log, request.attempt, code)
        return JobStatus("failed", error, started, finished, is_lost=is_lost)
    if task.note.get("end") in _ENDED_BEFORE_THE_WALL_TIME:
        error = f"{what} was ended before its wall time did"
        error = f"{error}, {_ENDED_BEFORE_THE_WALL_TIME[task.note['end']]}"
        return JobStatus("failed", f"{error}; see {log}", started, finished, is_lost=True)
    number = task.number
    how = task.row.state if task.row else dialect.last_state(number, task.index, variables)
    how = how or "it no longer knows the job"
    error = f"{dialect.title} ended job {number} ({how}), {what}"
    error = f"{error}; see {log}{full_disk(paths.folder)}"
    return JobStatus("failed", error, started, finished, is_lost=True)


def _row(
    rows: Mapping[tuple[str, int], Row] | SchedulerSilent, number: str, index: int
) -> Row | None:
    return None if isinstance(rows, SchedulerSilent) else rows.get((number, index))


def _time(note: Mapping[str, Any], key: str) -> datetime | None:
    try:
        return datetime.fromisoformat(note.get(key) or "")
    except (TypeError, ValueError):
        return None
