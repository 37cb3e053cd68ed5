"""Runs one job of the backend hosts: as local_runner does, its programs on other machines.

Started by `pipeline.jobs.backends.hosts.backend` with the arguments of local_runner.
"""

import os
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

from pipeline.jobs.backends.hosts.placement import Placement
from pipeline.jobs.backends.hosts.remote import CONNECTION_BROKE
from pipeline.jobs.backends.local_runner import Runner, run_job
from pipeline.jobs.backends.turn import Turn, locked
from pipeline.jobs.queue import Slots
from pipeline.jobs.request import JobPaths, JobRequest, Stage, read_json, write_json

PLACE, LOST = "place.json", "lost.json"


def notes_of(paths: JobPaths, name: str) -> Path:
    """Folder of what an attempt says of its machines."""
    return paths.folder / "hosts" / name


class HostsRunner(Runner):
    """A job under way on other machines."""

    def __init__(
        self,
        name: str,
        request: JobRequest,
        paths: JobPaths,
        slots: Slots,
        withheld: Collection[str],
    ) -> None:
        """Hold no slot yet."""
        super().__init__(name, request, paths, slots, withheld)
        self.notes = notes_of(paths, name)
        self.place: dict[str, Any] = read_json(self.notes / PLACE)
        self.hosts: tuple[str, ...] = ()

    def slots_of_turn(self, position: Turn) -> tuple[int, ...] | None:
        """Slots for all ranks of the job, machine by machine; None where fewer are free."""
        if not position.line.is_turn(position.ticket):
            return None
        ranks = self.request.resources.ranks
        granted: list[tuple[str, int]] = []
        for host, slots in self.place["hosts"]:
            folder = self.slots.folder / host
            folder.mkdir(parents=True, exist_ok=True)
            busy_slots = 0
            for number in range(self.place["all_slots"][host]):
                if len(granted) < ranks and busy_slots < slots:
                    lock = locked(folder / f"slot-{number}")
                    if lock is not None:
                        granted.append((host, lock))
                        busy_slots += 1
        if len(granted) < ranks:
            for _, lock in granted:
                os.close(lock)
            return None
        self.hosts = tuple(host for host, _ in granted)
        return tuple(lock for _, lock in granted)

    def machines(self) -> tuple[str, ...]:
        """The machines of its slots, as the settings call them."""
        return tuple(dict.fromkeys(self.hosts))

    def commands(self, stage: Stage) -> list[tuple[str, ...]]:
        """Command lines that connect to the machines of the job's slots."""
        placement = Placement(self.hosts, self.notes / PLACE, self.place["python"], self.name)
        return placement.commands(stage)

    def reason(self, title: str, index: int, code: int) -> str:
        """Why a command failed; that it was the connection, is kept."""
        if code == CONNECTION_BROKE:
            write_json(self.notes / LOST, {"title": title, "index": index})
        return super().reason(title, index, code)


if __name__ == "__main__":
    _name, _folder, _slots, _number, *_withheld = sys.argv[1:]
    _paths = JobPaths(Path(_folder))
    _request = JobRequest.from_json(read_json(_paths.request))
    _of = Slots(Path(_slots), int(_number))
    sys.exit(run_job(HostsRunner(_name, _request, _paths, _of, _withheld)))
