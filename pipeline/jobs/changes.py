"""The changes that a user may make to a job that goes on: workers, and limit of bad frames."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from catalog.errors import InvalidInput
from catalog.records.tables import Job
from pipeline.jobs.accounting.quotas import ranks_of
from pipeline.jobs.installed import training_packages
from pipeline.jobs.workflow.moves import ASKED
from pipeline.runs.bad_frames import BadFrames

_OF_FRAMES = ("train", "validate", "predict")
"""Kinds of jobs that read frames, and titles of the stages that do."""


@dataclass(frozen=True)
class Changes:
    """The changes to a job in its next attempts; None for what stays.

    Attributes:
        workers: Processes of a training: its checkpoint says which frames are left for them.
        bad_frames: What becomes of frames that cannot be read (pipeline.runs.bad_frames).
    """

    workers: int | None = None
    bad_frames: str | None = None

    def ranks(self, job: Job) -> int:
        """Ranks that the job then has."""
        return ranks_of(job.request) if self.workers is None else self.workers

    def request(self, job: Job) -> dict[str, Any]:
        """The job's request with these changes.

        Raises:
            InvalidInput: The job cannot have one of them.
        """
        request: dict[str, Any] = dict(job.request)
        if self.workers is not None:
            if job.kind != "train":
                raise InvalidInput(
                    f"workers {self.workers}: job {job.name} is of kind {job.kind}, and only a "
                    "training goes on with another number; leave it out, or begin another job"
                )
            if self.workers < 1:
                raise InvalidInput(f"workers {self.workers}: expected at least 1")
            request = _with_workers(request, self.workers)
        if self.bad_frames is not None:
            if job.kind not in _OF_FRAMES:
                raise InvalidInput(
                    f"bad frames {self.bad_frames}: job {job.name} is of kind {job.kind}, which "
                    "leaves no frames out; leave it out"
                )
            BadFrames.parse(self.bad_frames)
            request = _with_bad_frames(request, self.bad_frames)
        return request


def _with_workers(request: Mapping[str, Any], workers: int) -> dict[str, Any]:
    packages = [*training_packages(workers, request.get("settings", {}).get("model"))]
    number, staging = str(workers), request.get("staging")
    if staging is not None:
        staging = {**staging, "command": _with_flag(staging["command"], "--readers", number)}
    changed = {
        **request,
        "stages": _stages(
            request,
            ("train",),
            lambda command: _with_flag(command, "--num_workers", number),
            ranks=workers,
        ),
        "resources": {**request.get("resources", {}), "ranks": workers, "packages": packages},
        "staging": staging,
    }
    return _with_setting(changed, "workers", workers)


def _with_bad_frames(request: Mapping[str, Any], bad_frames: str) -> dict[str, Any]:
    stages = _stages(
        request,
        (*_OF_FRAMES, "merge"),
        lambda command: _with_flag(command, "--bad_frames", bad_frames),
    )
    return _with_setting({**request, "stages": stages}, "bad_frames", bad_frames)


def _stages(
    request: Mapping[str, Any],
    titles: Sequence[str],
    change: Callable[[Sequence[str]], list[str]],
    **fields: Any,
) -> list[dict[str, Any]]:
    """The stages, of which those with these titles are changed."""
    return [
        {**stage, "commands": [change(command) for command in stage["commands"]], **fields}
        if stage["title"] in titles
        else stage
        for stage in request["stages"]
    ]


def _with_setting(request: Mapping[str, Any], name: str, value: object) -> dict[str, Any]:
    """The request whose settings, and those that its steps still read, have a value."""
    changed = {**request, "settings": {**request.get("settings", {}), name: value}}
    if ASKED in request:
        options = {**request[ASKED]["options"], name: value}
        changed[ASKED] = {**request[ASKED], "options": options}
    return changed


def _with_flag(command: Sequence[str], flag: str, value: str) -> list[str]:
    """A command whose flag has that value, at its end where it did not have the flag."""
    if flag not in command:
        return [*command, flag, value]
    at = command.index(flag) + 1
    return [*command[:at], value, *command[at + 1 :]]
