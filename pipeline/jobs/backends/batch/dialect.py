"""What one batch scheduler says otherwise than others: its commands, options and states."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from pipeline.jobs.backends.batch.commands import Variables
from pipeline.jobs.backends.batch.job import BatchJob
from pipeline.jobs.backends.batch.settings import BatchSettings
from pipeline.jobs.request import Stage
from pipeline.jobs.resources import Resources

Standing = Literal["waits", "runs", "ended"]
"""Where a scheduler's job stands; one that waits or runs may yet say more."""


@dataclass(frozen=True)
class Row:
    """A job of a scheduler's, or a task of a job array."""

    state: str
    """The scheduler's word: "PENDING", "RUN", "Q"..."""
    reason: str
    """Why it waits or ended, the scheduler's words."""
    standing: Standing
    """What the state means."""


@dataclass(frozen=True)
class Predecessor:
    """The batch job that one follows."""

    number: str
    """The scheduler's."""
    may_fail: bool
    """Whether the next one begins however this one ended."""


class Dialect(Protocol):
    """The words of a batch scheduler.

    Each method that asks the scheduler raises `SchedulerSilent` where nobody knows the answer.
    """

    name: str
    """Of the backend: its table in backends.toml, and its folder in a job's."""
    title: str
    """The scheduler's name, for people."""
    configured: tuple[str, ...]
    """Variables by which its commands find the cluster."""
    words: str
    """What its scripts say otherwise (stage.sh)."""
    passes_variables: bool
    """Whether a job has the environment and the umask of the command that submits it; else its
    script sets them.
    """

    warns: bool
    """Whether the scheduler signals a script (USR1) before its wall time ends, which administrators
    may change meanwhile; else the script watches the clock.
    """

    def settings(self, file: Path | None, resources: Resources, user: str) -> BatchSettings:
        """The settings for a job of a user's.

        Raises:
            InvalidInput: They cannot be used, or do not allow what the job asks for.
            UnknownName: There is no such setting.
        """
        ...

    def check(self, resources: Resources, settings: BatchSettings) -> None:
        """Go on only with resources that the scheduler has words for.

        Raises:
            InvalidInput: It has none.
        """
        ...

    def submission(
        self, job: BatchJob, stage: Stage, predecessor: Predecessor | None
    ) -> tuple[str, ...]:
        """The command line that reads a stage's script, and submits it on hold."""
        ...

    def container(self, job: BatchJob, stage: Stage) -> list[str]:
        """The words before a program of one rank that runs in an image; none without one."""
        ...

    def launcher(self, job: BatchJob, stage: Stage) -> list[str]:
        """The words before a program of several ranks, container included."""
        ...

    def signals_ranks(self, job: BatchJob, stage: Stage) -> bool:
        """Whether the scheduler signals the ranks itself, and not their launcher."""
        ...

    def submit(self, command: Sequence[str], script: str, variables: Variables) -> str:
        """Submit a script; the job's number."""
        ...

    def rows(self, numbers: Iterable[str], variables: Variables) -> dict[tuple[str, int], Row]:
        """Jobs that the scheduler still knows, by number and by the index of a task from 0."""
        ...

    def numbers_of(self, name: str, variables: Variables) -> list[str]:
        """Jobs of a name that the scheduler still knows, in the order in which they came."""
        ...

    def last_state(self, number: str, index: int, variables: Variables) -> str:
        """The last state of a job that is in no row, where the cluster keeps accounts; else ""."""
        ...

    def release(self, numbers: Sequence[str], variables: Variables) -> None:
        """Let jobs begin that were submitted on hold."""
        ...

    def withdraw(self, numbers: Sequence[str], variables: Variables) -> None:
        """Have those that wait never begin; nothing happens to others."""
        ...

    def delete(self, numbers: Sequence[str], variables: Variables) -> None:
        """End jobs whatever they do; nothing happens to those that have ended."""
        ...

    def warn(self, numbers: Sequence[str], variables: Variables) -> None:
        """Tell scripts that run to look for the file `cancel` at once, where that is possible.

        They look every two seconds by themselves.
        """
        ...
