"""GPUs and cores of this machine, which jobs that ask for some have for themselves."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from pipeline.jobs.backends.turn import locked
from pipeline.jobs.request import JobRequest, Stage
from pipeline.jobs.resources import Resources

VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True)
class Share:
    """Devices of one kind that a job has for itself."""

    kind: str
    """"GPU" or "core"."""
    number: int
    """As many."""
    of: tuple[str, ...]
    """Names of those that the machine has."""

    @property
    def waits(self) -> str:
        """The reason why a job waits that does not get them, as users read it."""
        plural = "" if self.number == 1 else "s"
        return f"for {self.number} free {self.kind}{plural} of {len(self.of)}"

    def take(self, folder: Path) -> dict[str, int] | None:
        """An open file for each, to be held, by its name; None where fewer are free.

        Args:
            folder: Of this machine's locks.

        Raises:
            OSError: It cannot be written, or has no locks.
        """
        folder = folder / f"{self.kind.lower()}s"
        folder.mkdir(parents=True, exist_ok=True)
        busy: dict[str, int] = {}
        for name in self.of:
            lock = locked(folder / quote(name, safe="")) if len(busy) < self.number else None
            if lock is not None:
                busy[name] = lock
        if len(busy) < self.number:
            release(list(busy.values()))
            return None
        return busy


def release(locks: Sequence[int]) -> None:
    """Give locks back."""
    for lock in locks:
        os.close(lock)


def shares(resources: Resources) -> list[Share]:
    """The devices that a job asks for: none where it names no numbers of them."""
    cores = tuple(str(core) for core in sorted(os.sched_getaffinity(0)))
    devices = (
        Share("GPU", resources.ranks * resources.gpus, _gpus()),
        Share("core", resources.ranks * (resources.cores or 0), cores),
    )
    return [share for share in devices if share.number]


def shares_of(request: JobRequest) -> list[Share]:
    """Those of a job's own work; its steps before and after have none."""
    if any(stage.uses_gpus for stage in request.stages):
        return shares(request.resources)
    return []


def _gpus() -> tuple[str, ...]:
    """NVIDIA GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them."""
    visible = os.environ.get(VISIBLE)
    if visible is not None:
        return tuple(name.strip() for name in visible.split(",") if name.strip())
    return tuple(str(number) for number in range(len(list(Path("/dev").glob("nvidia[0-9]*")))))


def gpus_of_command(gpus: Sequence[str], stage: Stage, index: int, each: int) -> dict[str, str]:
    """Variables by which a command of a stage sees its GPUs.

    Shards have GPUs of their own; ranks of one program see those of the job, and take theirs by
    their local rank.

    Args:
        gpus: The job's.
        stage: The command's.
        index: Of the command.
        each: GPUs for each process.
    """
    if not gpus:
        return {}
    if len(stage.commands) > 1:
        first = index * each % len(gpus)
        gpus = gpus[first : first + each]
    return {VISIBLE: ",".join(gpus)}
