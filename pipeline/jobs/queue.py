"""The jobs of a home: where they lie, and how many of them run at once."""

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # runners of jobs do without pyarrow
    from pipeline.manifest import Manifest

from catalog.errors import StorageError

OF_DATASETS = ("train", "validate", "predict", "run")
"""Kinds of jobs that read a dataset, and that a trigger may begin."""


@dataclass(frozen=True)
class Slots:
    """Slots that jobs of some kinds share (pipeline.jobs.backends.turn).

    Attributes:
        folder: Of the locks.
        number: Jobs that run at once.
    """

    folder: Path
    number: int


@dataclass(frozen=True)
class JobQueue:
    """Jobs of a home on this machine.

    Attributes:
        folder: Where jobs' folders lie.
        training_slots: Trainings, validations and users' programs that run at once.
        command_slots: Scans, stagings and other commands that run at once: none waits for a
            training.
        jobs_each: Jobs that its user may have waiting or running; None for any number.
        ranks_each: Ranks that these may have together; None for any number.
        workers: Workers that a training or validation may have here; None for as many as there are
            cores, and 2 at least.
        inherits: Variables that every job inherits besides those of pipeline.jobs.environment:
            names or patterns.
        in_container: Whether jobs run in containers, where sources are mounted at other folders.
        cache: Folder of the home's cache, which stagings beside jobs fetch into; None for none.
        environment: Variables by which a command opens the home. The records show them: nothing
            secret.
        user: The user who submits to it, by whom caches count; empty where nobody authenticates.
        dry_run: Whether jobs are described, and none is recorded (pipeline.jobs.submit.DryRun).
        begun: Name of a job of several steps that has begun, for which what it runs is planned
            (pipeline.jobs.steps); empty for jobs that begin now.
        foreseen: The manifest of the dataset that a job of several steps would have, which is
            described only.
        backends: File of the backends' settings (pipeline.jobs.backends.settings); None for none.
    """

    folder: Path
    training_slots: int = 1
    command_slots: int = 8
    inherits: tuple[str, ...] = ()
    jobs_each: int | None = 20
    ranks_each: int | None = None
    workers: int | None = None
    in_container: bool = False
    cache: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    dry_run: bool = False
    begun: str = ""
    foreseen: "Manifest | None" = None
    backends: Path | None = None

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
        """Those that a job of a kind waits for: each machine that shares the home has its own."""
        of_machine = self.folder / ".slots" / socket.gethostname()
        if kind in OF_DATASETS:
            return Slots(of_machine / "training", self.training_slots)
        return Slots(of_machine / "commands", self.command_slots)
