"""Settings of the backend hosts: the table [hosts] of HOME/backends.toml."""

import re
from dataclasses import dataclass
from pathlib import Path

from catalog.errors import InvalidInput
from pipeline.jobs.backends.settings import settings_of
from pipeline.jobs.resources import Resources

_HOST = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.@-]*)(?::([1-9]\d{0,4}))?")


@dataclass(frozen=True)
class Host:
    """A machine, as ssh knows it, and the processes that it takes at once."""

    name: str
    slots: int


@dataclass(frozen=True)
class HostsSettings:
    """Settings of the backend hosts."""

    hosts: tuple[str, ...] = ()
    """Machines as ssh knows them, each with its slots: "node7:4"; one slot without."""
    python: str = ""
    """Python on them; the submitting machine's when empty."""
    ssh_config: str = ""
    """ssh's configuration file; the user's own when empty."""
    silence_seconds: int = 60
    """After which both ends of a broken connection give it up [s]."""
    checkpoint_seconds: int = 110
    """For how long a cancelled program may keep what it has [s]."""

    @property
    def machines(self) -> tuple[Host, ...]:
        """The machines.

        Raises:
            InvalidInput: A text names none.
        """
        matches = [_HOST.fullmatch(text) for text in self.hosts]
        for text, match in zip(self.hosts, matches, strict=True):
            if match is None:
                raise InvalidInput(f"[hosts] hosts: {text!a}: expected NAME:SLOTS, such as node7:4")
        machines = tuple(Host(match[1], int(match[2] or 1)) for match in matches if match)
        if len({machine.name for machine in machines}) < len(machines):
            raise InvalidInput(f"[hosts] hosts: {', '.join(self.hosts)}: name each machine once")
        return machines


def hosts_settings(file: Path | None, resources: Resources) -> HostsSettings:
    """The settings for a job.

    Raises:
        InvalidInput: They cannot be used, or name no machine.
        UnknownName: There is no such setting.
    """
    settings = settings_of(HostsSettings, "hosts", file, resources.options, ())
    if not settings.machines:
        raise InvalidInput(
            f'backend hosts: no machine is known; expected hosts = ["node7:4", ...] below [hosts] '
            f"in {file or 'backends.toml of the home'}"
        )
    for name in ("silence_seconds", "checkpoint_seconds"):
        if getattr(settings, name) < 1:
            raise InvalidInput(f"[hosts] {name} = {getattr(settings, name)}: expected at least 1")
    return settings


def spread(machines: tuple[Host, ...], resources: Resources) -> tuple[Host, ...]:
    """Slots of each machine that one job may take.

    Raises:
        InvalidInput: They are fewer than its ranks.
    """
    most = resources.ranks_per_node
    each = [Host(host.name, min(host.slots, most or host.slots)) for host in machines]
    total = sum(host.slots for host in each)
    if resources.ranks > total:
        per_node = f", {most} on each machine" if most else ""
        raise InvalidInput(
            f"workers {resources.ranks:,}: a job on hosts may have at most {total:,}{per_node}; "
            "ask for fewer, or name more machines or slots below [hosts] in backends.toml"
        )
    return tuple(each)
