"""Settings of the backend pbs: the table [pbs] of HOME/backends.toml."""

from dataclasses import dataclass
from pathlib import Path

from pipeline.jobs.backends.batch.settings import BatchSettings, batch_settings
from pipeline.jobs.resources import Resources

LAUNCHERS = ("pbs_tmrsh", "mpirun")
_ASKED = ("queue", "account", "place")
"""Settings that a request may choose; the others decide whose programs run."""


@dataclass(frozen=True)
class PbsSettings(BatchSettings):
    """Settings of the backend pbs; `account` is qsub's -A."""

    queue: str = ""
    """qsub's -q; the server's own default when empty."""
    place: str = ""
    """Further words of qsub's -l place=, such as "excl"."""
    launcher: str = "pbs_tmrsh"
    """What starts the ranks of a training: pbs_tmrsh or mpirun."""
    most_requeues: int = 19
    """How often a job goes on in a new turn after its wall time; PBS holds a job that ran more than
    20 times.
    """


def pbs_settings(file: Path | None, resources: Resources, user: str) -> PbsSettings:
    """The settings for a job of a user's.

    Raises:
        InvalidInput: They cannot be used, or do not allow what the job asks for.
        UnknownName: There is no such setting.
    """
    return batch_settings(PbsSettings, "pbs", file, resources, user, _ASKED, LAUNCHERS)
