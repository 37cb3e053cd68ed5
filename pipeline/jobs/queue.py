"""The jobs of a home: where they lie, and how many of them run at once."""

import os
import socket
from dataclasses import dataclass
from pathlib import Path

_TRAINING = ("train", "validate")


@dataclass(frozen=True)
class Slots:
    """Slots that jobs of some kinds share (pipeline.jobs.turn).

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
        training_slots: Trainings and validations that run at once.
        command_slots: Scans, stagings and other commands that run at once: none waits for a
            training.
        jobs_each: Jobs that one user may have waiting or running.
        workers: Workers that a training or validation may have here; None for as many as there are
            cores, and 2 at least.
        inherits: Variables that every job inherits besides those of pipeline.jobs.environment:
            names or patterns.
    """

    folder: Path
    training_slots: int = 1
    command_slots: int = 8
    inherits: tuple[str, ...] = ()
    jobs_each: int = 20
    workers: int | None = None

    @property
    def most_workers(self) -> int:
        """Workers that a training or validation may have on this machine."""
        return self.workers or max(2, len(os.sched_getaffinity(0)))

    def slots(self, kind: str) -> Slots:
        """Those that a job of a kind waits for: each machine that shares the home has its own."""
        of_machine = self.folder / ".slots" / socket.gethostname()
        if kind in _TRAINING:
            return Slots(of_machine / "training", self.training_slots)
        return Slots(of_machine / "commands", self.command_slots)
