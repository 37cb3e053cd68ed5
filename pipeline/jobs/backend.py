"""The interface of backends."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from pipeline.jobs.queue import JobQueue
from pipeline.jobs.request import JobPaths, JobRequest
from pipeline.jobs.state import JobState


@dataclass(frozen=True)
class JobStatus:
    """Where a job stands.

    Attributes:
        state: Its state.
        error: Why it failed, in one line; empty otherwise.
        started: When its first command began, naive UTC.
        finished: When it ended, naive UTC.
        waits: What it waits for before it begins; empty otherwise.
    """

    state: JobState
    error: str = ""
    started: datetime | None = None
    finished: datetime | None = None
    waits: str = ""


class Backend(Protocol):
    """Runs jobs."""

    name: str

    def check_workers(self, workers: int, queue: JobQueue) -> None:
        """Go on only with as many workers as there can be of one job.

        Raises:
            InvalidInput: They are more.
        """
        ...

    def submit(self, request: JobRequest, paths: JobPaths, queue: JobQueue) -> str:
        """Start the job, whose folder exists; what the backend knows it by.

        An earlier attempt in the folder has ended, and what it left there stays.

        Raises:
            StorageError: Its folder cannot be written.
            JobFailed: The backend refuses it.
        """
        ...

    def status(self, handle: str, paths: JobPaths) -> JobStatus:
        """Where it stands."""
        ...

    def cancel(self, handle: str, paths: JobPaths) -> None:
        """Ask it to end, with time to keep what it has; nothing happens where it has ended.

        Raises:
            StorageError: Its folder cannot be written.
        """
        ...
