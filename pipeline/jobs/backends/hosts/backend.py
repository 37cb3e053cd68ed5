"""Jobs on machines that ssh reaches and that see the home's folders: ranks spread by slots."""

import os
import shlex
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

from catalog.errors import StorageError
from pipeline.jobs.backends.hosts.connect import ssh_command
from pipeline.jobs.backends.hosts.placement import Placement
from pipeline.jobs.backends.hosts.runner import LOST, PLACE, notes_of
from pipeline.jobs.backends.hosts.settings import hosts_settings, spread
from pipeline.jobs.backends.interface import JobStatus
from pipeline.jobs.backends.local import LocalBackend
from pipeline.jobs.environment import Need, inherited
from pipeline.jobs.queue import JobQueue, Slots
from pipeline.jobs.request import JobPaths, JobRequest, read_json, write_json
from pipeline.jobs.resources import Resources

_KNOWN = ("ranks", "ranks_per_node", "environment", "packages", "options")


class HostsBackend(LocalBackend):
    """Runs each job under `hosts.runner`, in a session of its own on this machine."""

    name = "hosts"
    runner = "pipeline.jobs.backends.hosts.runner"

    def check(self, resources: Resources, queue: JobQueue) -> None:
        """Allow as many ranks as the machines have slots; packages are the machines' own."""
        resources.need_only(self.name, *_KNOWN)
        spread(hosts_settings(queue.backends, resources).machines, resources)

    def submit(self, request: JobRequest, paths: JobPaths, queue: JobQueue, name: str) -> str:
        """Keep the machines in the job's folder, and start the runner."""
        notes = notes_of(paths, name)
        try:
            notes.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"{notes}: {error.strerror}", str(notes)) from error
        write_json(notes / PLACE, _place(request, paths, queue))
        return super().submit(request, paths, queue, name)

    def statuses(self, handles: Mapping[str, JobPaths]) -> dict[str, JobStatus]:
        """The last word of each runner; lost, too, where a machine could not be reached."""
        statuses = super().statuses(handles)
        for handle, status in statuses.items():
            paths = handles[handle]
            name = read_json(paths.status).get("name", "")
            if status.state == "failed" and (notes_of(paths, name) / LOST).exists():
                statuses[handle] = replace(status, is_lost=True)
        return statuses

    def variables(
        self, request: JobRequest, queue: JobQueue, needs: Iterable[Need]
    ) -> dict[str, str]:
        """As the job's record has them: each machine has Python where its settings say."""
        return inherited(os.environ, needs, queue.inherits, request.submitted)

    def slots(self, request: JobRequest, queue: JobQueue) -> Slots:  # noqa: ARG002
        """Those of all machines, for all that submit to this home."""
        return Slots(queue.folder / ".slots" / "hosts", 1)

    def describe(self, request: JobRequest, paths: JobPaths, queue: JobQueue, name: str) -> str:
        """The way to each machine, and the commands of each stage with their machine."""
        target = _place(request, paths, queue)
        slots = [host for host, count in target["hosts"] for _ in range(count)]
        hosts = tuple(slots[: request.resources.ranks])
        lines = []
        for host in dict.fromkeys(hosts):
            command = ssh_command(host, target["python"], target["ssh_config"], target["silence_s"])
            lines.append(shlex.join(command))
        file = notes_of(paths, name) / PLACE
        placement = Placement(hosts, file, target["python"], name)
        for stage in request.stages:
            lines += [f"# {stage.title}", *map(shlex.join, placement.commands(stage))]
        return "\n".join(lines)


def _place(request: JobRequest, paths: JobPaths, queue: JobQueue) -> dict[str, Any]:
    settings = hosts_settings(queue.backends, request.resources)
    machines = spread(settings.machines, request.resources)
    return {
        "hosts": [list(asdict(machine).values()) for machine in machines],
        "all_slots": {machine.name: machine.slots for machine in settings.machines},
        "python": settings.python or sys.executable,
        "ssh_config": settings.ssh_config,
        "silence_s": settings.silence_seconds,
        "checkpoint_s": settings.checkpoint_seconds,
        "folder": str(paths.folder),
    }
