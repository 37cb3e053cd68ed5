"""Settings that the backends of batch schedulers have alike."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from catalog.errors import InvalidInput
from pipeline.jobs.backends.settings import settings_of
from pipeline.jobs.resources import Resources

MPIRUN = "mpirun"


@dataclass(frozen=True)
class BatchSettings:
    """Settings of a backend whose jobs a batch scheduler runs."""

    account: str = ""
    """Account that jobs are charged to; the scheduler's own default when empty."""
    accounts: tuple[str, ...] = ()
    """"USER=ACCOUNT" each: the account of a user's jobs, who may choose no other; users that are
    not named have `account`.
    """
    python: str = ""
    """Python on nodes, or in the image; the submitting machine's when empty."""
    launcher: str = MPIRUN
    """What starts the ranks of a training."""
    image: str = ""
    """Container image that programs run in where a job names none; empty for none."""
    images: tuple[str, ...] = ()
    """Further images that a job may name."""
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


SettingsT = TypeVar("SettingsT", bound=BatchSettings)


def batch_settings(
    kind: type[SettingsT],
    backend: str,
    file: Path | None,
    resources: Resources,
    user: str,
    asked: Collection[str],
    launchers: Collection[str],
) -> SettingsT:
    """The settings of a backend for a job of a user's.

    Args:
        kind: Their dataclass.
        backend: The backend's name.
        file: The home's backends.toml; None for one that has none.
        resources: What the job asks for.
        user: Whose job it is.
        asked: Settings that a request may choose; the others decide whose programs run.
        launchers: What may start ranks.

    Raises:
        InvalidInput: They cannot be used, or do not allow what the job asks for.
        UnknownName: There is no such setting.
    """
    settings = settings_of(kind, backend, file, resources.options, asked)
    need_one_of(file, backend, "launcher", settings.launcher, launchers)
    if settings.mpirun_arguments and settings.launcher != MPIRUN:
        raise InvalidInput(
            f"{file}: [{backend}] mpirun_arguments: goes with launcher = 'mpirun', not "
            f"{settings.launcher!r}; leave it out, or set the launcher"
        )
    for pair in settings.accounts:
        if not all(pair.partition("=")):
            raise InvalidInput(
                f"{file}: [{backend}] accounts = [{pair!r}]: expected 'USER=ACCOUNT' each"
            )
    if resources.image not in ("", settings.image, *settings.images):
        allowed = ", ".join(filter(None, (settings.image, *settings.images))) or "none"
        raise InvalidInput(
            f"image {resources.image}: expected one that [{backend}] of backends.toml names as "
            f"image or in images: {allowed}"
        )
    return replace(settings, account=_account(settings, backend, resources, user))


def need_one_of(
    file: Path | None, backend: str, name: str, value: str, known: Collection[str]
) -> None:
    """Accept a setting that has one of these values.

    Raises:
        InvalidInput: It has another.
    """
    if value not in known:
        *rest, last = known
        expected = f"{', '.join(rest)} or {last}" if rest else last
        raise InvalidInput(f"{file}: [{backend}] {name} = {value!r}: expected {expected}")


def _account(settings: BatchSettings, backend: str, resources: Resources, user: str) -> str:
    own = dict(pair.split("=", 1) for pair in settings.accounts).get(user)
    if own is None:
        return settings.account
    account = resources.options.get("account", own)
    if account != own:
        raise InvalidInput(
            f"option {backend}.account={account}: jobs of user '{user}' run on account {own}; "
            "leave it out"
        )
    return own
