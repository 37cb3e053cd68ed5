"""Settings of the backend lsf: the table [lsf] of HOME/backends.toml."""

from dataclasses import dataclass
from pathlib import Path

from pipeline.jobs.backends.batch.settings import BatchSettings, batch_settings
from pipeline.jobs.resources import Resources

LAUNCHERS = ("blaunch", "mpirun", "jsrun")
_ASKED = ("queue", "account", "group", "application", "reservation")
"""Settings that a request may choose; the others decide whose programs run."""


@dataclass(frozen=True)
class LsfSettings(BatchSettings):
    """Settings of the backend lsf; `account` is a project, bsub's -P."""

    queue: str = ""
    """bsub's -q; LSF's own default when empty, as of the next three."""
    group: str = ""
    """bsub's -G, a user group."""
    application: str = ""
    """bsub's -app, an application profile."""
    reservation: str = ""
    """bsub's -U, an advance reservation."""
    launcher: str = "blaunch"
    """What starts the ranks of a training: blaunch, mpirun or jsrun."""
    most_ranks: int = 1000
    """Processes that a job may have; shards are tasks of one array, of which LSF takes
    MAX_JOB_ARRAY_SIZE of lsb.params, 1,000 by default.
    """


def lsf_settings(file: Path | None, resources: Resources, user: str) -> LsfSettings:
    """The settings for a job of a user's.

    Raises:
        InvalidInput: They cannot be used, or do not allow what the job asks for.
        UnknownName: There is no such setting.
    """
    return batch_settings(LsfSettings, "lsf", file, resources, user, _ASKED, LAUNCHERS)
