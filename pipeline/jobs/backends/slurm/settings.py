"""Settings of the backend slurm: the table [slurm] of HOME/backends.toml."""

from dataclasses import dataclass, replace
from pathlib import Path

from catalog.errors import InvalidInput
from pipeline.jobs.backends.settings import settings_of
from pipeline.jobs.resources import Resources

LAUNCHERS = ("srun", "mpirun", "horovodrun")
CONTAINERS = ("outside-in", "inside-out")
_ASKED = ("partition", "account", "qos", "reservation")
"""Settings that a request may choose; the others decide whose programs run."""


@dataclass(frozen=True)
class SlurmSettings:
    """Settings of the backend slurm."""

    partition: str = ""
    """sbatch's --partition; Slurm's own default when empty, as of the next three."""
    account: str = ""
    """sbatch's --account."""
    accounts: tuple[str, ...] = ()
    """"USER=ACCOUNT" each: the account of a user's jobs, who may choose no other; users that are
    not named have `account`.
    """
    qos: str = ""
    """sbatch's --qos."""
    reservation: str = ""
    """sbatch's --reservation."""
    python: str = ""
    """Python on nodes, or in the image; the submitting machine's when empty."""
    launcher: str = "srun"
    """What starts ranks: srun, mpirun or horovodrun."""
    image: str = ""
    """Container image that programs run in where a job names none; empty for none."""
    images: tuple[str, ...] = ()
    """Further images that a job may name."""
    container: str = "outside-in"
    """Who starts whom: the launcher containers (outside-in), or a container on each node its ranks
    (inside-out).
    """
    apptainer: str = "apptainer"
    """Program that runs images: apptainer, or singularity."""
    container_arguments: tuple[str, ...] = ()
    """Further arguments of its `exec`, such as "--rocm"."""
    mpirun_arguments: tuple[str, ...] = ()
    """Further arguments of mpirun, such as "--mca", "btl_tcp_if_include", "ib0"."""
    setup: tuple[str, ...] = ()
    """Lines of bash that each batch job runs before its program, such as "module load cuda"; the
    job fails with the first one that fails.
    """
    most_ranks: int = 1024
    """Processes that a job may have."""
    checkpoint_seconds: int = 120
    """For how long before the wall time ends, and after a cancel, programs may keep what they have
    [s].
    """
    most_requeues: int = 100
    """How often a job goes on in a new turn after its wall time."""


def slurm_settings(file: Path | None, resources: Resources, user: str) -> SlurmSettings:
    """The settings for a job of a user's.

    Raises:
        InvalidInput: They cannot be used, or do not allow what the job asks for.
        UnknownName: There is no such setting.
    """
    settings = settings_of(SlurmSettings, "slurm", file, resources.options, _ASKED)
    for name, known in (("launcher", LAUNCHERS), ("container", CONTAINERS)):
        if getattr(settings, name) not in known:
            raise InvalidInput(
                f"{file}: [slurm] {name} = {getattr(settings, name)!r}: "
                f"expected {', '.join(known[:-1])} or {known[-1]}"
            )
    if settings.container == "inside-out" and settings.launcher != "srun":
        raise InvalidInput(
            f"{file}: [slurm] container = 'inside-out' goes with launcher = 'srun', not "
            f"{settings.launcher!r}"
        )
    if settings.mpirun_arguments and settings.launcher != "mpirun":
        raise InvalidInput(
            f"{file}: [slurm] mpirun_arguments: goes with launcher = 'mpirun', not "
            f"{settings.launcher!r}; leave it out, or set the launcher"
        )
    for pair in settings.accounts:
        if not all(pair.partition("=")):
            raise InvalidInput(
                f"{file}: [slurm] accounts = [{pair!r}]: expected 'USER=ACCOUNT' each"
            )
    if resources.image not in ("", settings.image, *settings.images):
        allowed = ", ".join(filter(None, (settings.image, *settings.images))) or "none"
        raise InvalidInput(
            f"image {resources.image}: expected one that [slurm] of backends.toml names as image "
            f"or in images: {allowed}"
        )
    return replace(settings, account=_account(settings, resources, user))


def _account(settings: SlurmSettings, resources: Resources, user: str) -> str:
    own = dict(pair.split("=", 1) for pair in settings.accounts).get(user)
    if own is None:
        return settings.account
    account = resources.options.get("account", own)
    if account != own:
        raise InvalidInput(
            f"option slurm.account={account}: jobs of user '{user}' run on account {own}; "
            "leave it out"
        )
    return own
