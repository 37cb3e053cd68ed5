"""The interface of backends."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from pipeline.job_state import JobState
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.request import JobPaths, JobRequest
from pipeline.jobs.resources import Resources


@dataclass(frozen=True)
class JobStatus:
    """Where a job stands."""

    state: JobState
    """Its state."""
    error: str = ""
    """Why it failed, in one line; empty otherwise."""
    started: datetime | None = None
    """When its first command began, naive UTC."""
    finished: datetime | None = None
    """When it ended, naive UTC."""
    waits: str = ""
    """What it waits for before it begins; empty otherwise."""
    is_lost: bool = False
    """Whether it failed with its machine or its turn, or was killed, and not by itself: then
    another attempt may go well.
    """


class Backend(Protocol):
    """Runs jobs."""

    name: str
    """What users call it."""
    stages_beside: bool
    """Whether it runs the staging that a job may have beside it."""

    def check(self, resources: Resources, queue: JobQueue) -> None:
        """Go on only with resources that this backend can give a job.

        Raises:
            InvalidInput: It cannot.
        """
        ...

    def submit(self, request: JobRequest, paths: JobPaths, queue: JobQueue, name: str) -> str:
        """Start the job, whose folder exists; the handle that the backend knows it by.

        An earlier attempt in the folder has ended, and what it left there stays.

        Args:
            request: What runs.
            paths: Of the job's folder.
            queue: The home's jobs.
            name: Of this attempt, the same however often its submission is tried, and no other's.

        Raises:
            StorageError: Its folder cannot be written.
            JobFailed: The backend refuses it.
        """
        ...

    def find(self, name: str, paths: JobPaths) -> str | None:
        """The handle of what was submitted by that name; None where nothing was.

        For a caller that ended between ``submit`` and keeping the handle.

        Raises:
            JobFailed: The backend does not answer, so nobody knows.
        """
        ...

    def statuses(self, handles: Mapping[str, JobPaths]) -> dict[str, JobStatus]:
        """Where each of these jobs stands; one question to the scheduler for all of them.

        Nothing is raised: where the scheduler does not answer, a state is "unknown".
        """
        ...

    def cancel(self, handle: str, paths: JobPaths) -> None:
        """Ask it to end, with time to keep what it has; nothing happens where it has ended.

        Raises:
            StorageError: Its folder cannot be written.
            JobFailed: The backend does not answer.
        """
        ...

    def describe(self, request: JobRequest, paths: JobPaths, queue: JobQueue, name: str) -> str:
        """The hand-over of ``submit``, command lines and scripts word for word."""
        ...
