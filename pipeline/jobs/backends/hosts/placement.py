"""The machine of each process of a stage, and the command lines that start them there."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from framesift_start import start
from pipeline.jobs.backends.hosts.remote import STEP
from pipeline.jobs.backends.launch import LAUNCHER, on_this_machine, with_python
from pipeline.jobs.request import Stage

_CONNECT = "pipeline.jobs.backends.hosts.connect"
_STARTER = "training.slurm_ranks"
"""Serves the ranks' rendezvous, and knows its place by variables like those of a Slurm step."""


@dataclass(frozen=True)
class Placement:
    """Slots that a job holds."""

    hosts: tuple[str, ...]
    """The machine of each rank; those of one machine stand together."""
    file: Path
    """What `connect` reads of the settings."""
    python: str
    """Python on the machines."""
    name: str
    """Of the attempt."""

    def commands(self, stage: Stage) -> list[tuple[str, ...]]:
        """The command lines of a stage, as this machine starts them."""
        if _is_of_home(stage):
            return on_this_machine(stage, sys.executable)
        programs = [with_python(command, self.python) for command in stage.commands]
        if stage.ranks == 1 and stage.launcher == "horovod":
            count = len(self.hosts)
            return [
                self._there(self.hosts[index % count], (), each)
                for index, each in enumerate(programs)
            ]
        hosts, per_task = self.hosts[: stage.ranks], "0"
        if stage.launcher == "torchrun":  # one process on each machine
            hosts = tuple(dict.fromkeys(hosts))
            counts = [str(self.hosts[: stage.ranks].count(host)) for host in hosts]
            per_task = f"{LAUNCHER}{','.join(counts)}"
        starter = (self.python, *start(_STARTER), str(self.file.parent))
        return [
            self._there(
                host, self._place(stage, hosts, task), (*starter, str(stage.ranks), per_task, *each)
            )
            for each in programs
            for task, host in enumerate(hosts)
        ]

    def _place(self, stage: Stage, hosts: Sequence[str], task: int) -> tuple[str, ...]:
        """Variables that tell a process its place, as those of a Slurm step do.

        Args:
            hosts: The machine of each process.
            task: The process.
        """
        machines = list(dict.fromkeys(hosts))
        counts = ",".join(str(hosts.count(machine)) for machine in machines)
        variables = {
            "JOB_ID": self.name,
            "STEP_ID": stage.title,
            "STEP_NUM_TASKS": len(hosts),
            "STEP_NUM_NODES": len(machines),
            "STEP_TASKS_PER_NODE": counts,
            "NODEID": machines.index(hosts[task]),
            "PROCID": task,
            "LOCALID": hosts[:task].count(hosts[task]),
        }
        return tuple(f"{STEP}{name}={value}" for name, value in variables.items())

    def _there(
        self, host: str, variables: Sequence[str], program: Sequence[str]
    ) -> tuple[str, ...]:
        connect = (sys.executable, *start(_CONNECT), str(self.file), host)
        return (*connect, *variables, "--", *program)


def _is_of_home(stage: Stage) -> bool:
    """True for what prepares or collects: one command that needs neither ranks nor GPUs."""
    return not stage.uses_gpus and stage.ranks == 1 and len(stage.commands) == 1
