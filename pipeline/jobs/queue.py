"""The jobs of a home: where they lie, and how many of them run at once."""

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from catalog.errors import StorageError


@dataclass(frozen=True)
class Slots:
    """Slots that jobs of some kinds share (pipeline.jobs.backends.turn)."""

    folder: Path
    """Of the locks."""
    number: int
    """Jobs that run at once."""


@dataclass(frozen=True)
class JobQueue:
    """Jobs of a home on this machine."""

    folder: Path
    """Where jobs' folders lie."""
    training_slots: int = 1
    """How many trainings, validations and users' programs run at once."""
    command_slots: int = 8
    """How many scans, stagings and other commands run at once; they do not wait for trainings."""
    inherits: tuple[str, ...] = ()
    """Variables that every job inherits besides those of pipeline.jobs.environment: names or
    patterns.
    """
    jobs_each: int | None = 20
    """How many jobs the user may have waiting or running; None for no limit."""
    ranks_each: int | None = None
    """How many ranks these jobs may have together; None for no limit."""
    workers: int | None = None
    """How many workers a training or validation may have here; None for one a core, at least 2."""
    in_container: bool = False
    """Whether jobs run in containers, where sources are mounted at other folders."""
    cache: Path | None = None
    """Folder of the home's cache, which stagings beside jobs fetch into; None for none."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables by which a command opens the home. The records show them: nothing secret."""
    user: str = ""
    """The user who submits jobs, and to whom caches count their datasets; empty where the server
    does not authenticate.
    """
    account: str = ""
    """Which user of that name (catalog.values)."""
    backends: Path | None = None
    """File of the backends' settings (pipeline.jobs.backends.settings); None for none."""

    def make_folder(self) -> None:
        """Make the folder of the jobs, where it is not there.

        Raises:
            StorageError: It cannot be made.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            where = str(self.folder)
            raise StorageError(f"{where}: cannot be made: {error.strerror}", where) from error

    @property
    def most_workers(self) -> int:
        """Workers that a training or validation may have on this machine."""
        return self.workers or max(2, len(os.sched_getaffinity(0)))

    def slots(self, kind: str) -> Slots:
        """The slots that a job of a kind waits for; each machine of a home has its own."""
        from pipeline.runs.job_orders import JOB_ORDERS  # 20 ms of CPU: other commands do without

        of_machine = self.folder / ".slots" / socket.gethostname()
        if kind in JOB_ORDERS and not JOB_ORDERS[kind].drives:
            return Slots(of_machine / "training", self.training_slots)
        return Slots(of_machine / "commands", self.command_slots)
