"""Settings of the backend slurm: the table [slurm] of HOME/backends.toml."""

from dataclasses import dataclass
from pathlib import Path

from catalog.errors import InvalidInput
from pipeline.jobs.backends.batch.settings import BatchSettings, batch_settings, need_one_of
from pipeline.jobs.resources import Resources

LAUNCHERS = ("srun", "mpirun", "horovodrun")
CONTAINERS = ("outside-in", "inside-out", "pyxis")
_ASKED = ("partition", "account", "qos", "reservation")
"""Settings that a request may choose; the others decide whose programs run."""


@dataclass(frozen=True)
class SlurmSettings(BatchSettings):
    """Settings of the backend slurm; `account` is sbatch's --account."""

    partition: str = ""
    """sbatch's --partition; Slurm's own default when empty, as of the next two."""
    qos: str = ""
    """sbatch's --qos."""
    reservation: str = ""
    """sbatch's --reservation."""
    launcher: str = "srun"
    """What starts the ranks of a training: srun, mpirun or horovodrun."""
    container: str = "outside-in"
    """Who starts whom: the launcher containers (outside-in), a container on each node its ranks
    (inside-out), or srun itself the image (pyxis), then without `apptainer`.
    """


def slurm_settings(file: Path | None, resources: Resources, user: str) -> SlurmSettings:
    """The settings for a job of a user's.

    Raises:
        InvalidInput: They cannot be used, or do not allow what the job asks for.
        UnknownName: There is no such setting.
    """
    settings = batch_settings(SlurmSettings, "slurm", file, resources, user, _ASKED, LAUNCHERS)
    need_one_of(file, "slurm", "container", settings.container, CONTAINERS)
    if settings.container != "outside-in" and settings.launcher != "srun":
        raise InvalidInput(
            f"{file}: [slurm] container = {settings.container!r} goes with launcher = 'srun', not "
            f"{settings.launcher!r}"
        )
    return settings
