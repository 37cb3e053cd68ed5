"""Jobs on this machine: a runner process of its own, which outlives who started it."""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from catalog.errors import InvalidInput
from framesift_start import start
from pipeline.job_state import FINISHED
from pipeline.jobs.backends.devices import shares
from pipeline.jobs.backends.interface import JobStatus
from pipeline.jobs.backends.job_folder import ask_to_end, begin_attempt, not_started
from pipeline.jobs.backends.launch import on_this_machine
from pipeline.jobs.backends.log_end import full_disk
from pipeline.jobs.backends.process import ProcessId
from pipeline.jobs.environment import Need, inherited
from pipeline.jobs.installed import need_installed
from pipeline.jobs.queue import JobQueue, Slots
from pipeline.jobs.request import JobPaths, JobRequest, read_json, write_json
from pipeline.jobs.resources import Resources

_ACTIVE = frozenset({"VIRTUAL_ENV", "CONDA_PREFIX"})
"""Variables of a Python environment that a user has activated, which so leads PATH."""


class LocalBackend:
    """Runs each job under `pipeline.jobs.backends.local_runner`, in a session of its own."""

    name = "local"
    stages_beside = True
    runner = "pipeline.jobs.backends.local_runner"
    """Module of the process that runs a job."""

    def check(self, resources: Resources, queue: JobQueue) -> None:
        """Allow as many ranks, GPUs and cores as the machine has, or its settings say.

        A job shares the machine's memory with all that runs there, and GPUs and cores, too, where
        it asks for no number of them.
        """
        resources.need_only(self.name, "ranks", "gpus", "cores", "environment", "packages")
        if resources.ranks > queue.most_workers:
            raise InvalidInput(
                f"workers {resources.ranks:,}: a job on this machine may have at most "
                f"{queue.most_workers}; ask for fewer, or have FRAMESIFT_JOB_WORKERS say more"
            )
        for share in shares(resources):
            if share.number > len(share.of):
                raise InvalidInput(
                    f"{share.kind}s: a job of {resources.ranks} process"
                    f"{'es' if resources.ranks > 1 else ''} asks for {share.number}, and this "
                    f"machine has {len(share.of)}; ask for fewer, or choose another backend"
                )
        need_installed(*resources.packages)

    def submit(self, request: JobRequest, paths: JobPaths, queue: JobQueue, name: str) -> str:
        """Start the runner, which waits for a slot; its process number with its start time."""
        runs, variables = self._runner_command(request, paths, queue, name)
        try:
            begin_attempt(paths, request)
            write_json(paths.status, {"state": "pending", "name": name})
            with (paths.logs / "runner.log").open("ab") as log:
                runner = subprocess.Popen(
                    runs,
                    cwd=paths.folder,
                    env=variables,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        except OSError as error:
            raise not_started(paths, error) from error
        return str(ProcessId.of(runner.pid))

    def find(self, name: str, paths: JobPaths) -> str | None:
        """The runner: of itself, as it says; before it says so, as it was started."""
        document = read_json(paths.status)
        if document.get("name") == name and document.get("runner"):
            return str(document["runner"])
        return _started(self.runner, name, paths)

    def statuses(self, handles: Mapping[str, JobPaths]) -> dict[str, JobStatus]:
        """The last word of each runner; failed where it ended without a last word."""
        return {handle: _status(handle, paths) for handle, paths in handles.items()}

    def cancel(self, handle: str, paths: JobPaths) -> None:
        """Ask the runner to end; it ends its commands first."""
        # A runner that has only begun cannot hear a signal yet; it looks here.
        ask_to_end(paths)
        _runner(handle, paths).signal(signal.SIGTERM)

    def describe(self, request: JobRequest, paths: JobPaths, queue: JobQueue, name: str) -> str:
        """The runner's command line, and those of each stage that it starts."""
        lines = [shlex.join(self._runner_command(request, paths, queue, name)[0])]
        for stage in request.stages:
            commands = on_this_machine(stage, sys.executable)
            lines += [f"# {stage.title}", *map(shlex.join, commands)]
        return "\n".join(lines)

    def slots(self, request: JobRequest, queue: JobQueue) -> Slots:
        """Those that a job waits for."""
        return queue.slots(request.kind)

    def variables(
        self, request: JobRequest, queue: JobQueue, needs: Iterable[Need]
    ) -> dict[str, str]:
        """The variables of the job's programs, of which "python" is this software's own Python.

        Unless another environment was active where the job was submitted: then it is that one's.
        """
        passed = inherited(os.environ, needs, queue.inherits, request.submitted)
        if not _ACTIVE & passed.keys():
            folders = (str(Path(sys.executable).parent), passed.get("PATH", os.defpath))
            passed["PATH"] = os.pathsep.join(folders)
        return passed

    def _runner_command(
        self, request: JobRequest, paths: JobPaths, queue: JobQueue, name: str
    ) -> tuple[list[str], dict[str, str]]:
        """The runner's command line, and its variables."""
        slots = self.slots(request, queue)
        variables = self.variables(request, queue, request.needs)
        withheld: list[str] = []
        if request.staging is not None:
            needs = {*request.needs, *request.staging.needs}
            of_commands, variables = variables, self.variables(request, queue, needs)
            withheld = sorted(variables.keys() - of_commands.keys())
        # -P: a folder "pipeline" where the user happens to stand is not ours.
        command = [sys.executable, *start(self.runner), name, str(paths.folder)]
        return [*command, str(slots.folder), str(slots.number), *withheld], variables


def _status(handle: str, paths: JobPaths) -> JobStatus:
    alive = _runner(handle, paths).is_alive()
    document = read_json(paths.status)  # read after the look: a last word is not missed
    state, error = document.get("state", "unknown"), document.get("error", "")
    is_lost = bool(document.get("lost", False))
    if state not in FINISHED and not alive:
        state, error, document = "cancelled", "cancelled", {**document, "waits": ""}
        if not paths.cancel.exists():
            log = paths.logs / "runner.log"
            is_lost = True
            error = f"the job's runner process exited without writing its final status; see {log}"
            state, error = "failed", error + full_disk(paths.folder)
    times = _time(document, "started"), _time(document, "finished")
    return JobStatus(
        state, error, *times, document.get("waits", ""), is_lost=is_lost and state == "failed"
    )


def _started(runner: str, name: str, paths: JobPaths) -> str | None:
    """The runner of that name, where it runs, by the command lines of this machine."""
    arguments = [*map(os.fsencode, (runner, name, str(paths.folder)))]
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if words[4:7] == arguments:
                return str(ProcessId.of(int(entry.name)))
    return None


def _runner(handle: str, paths: JobPaths) -> ProcessId:
    """The job's runner; from its own word where its submitter died before keeping the handle."""
    return ProcessId.parse(handle or read_json(paths.status).get("runner", ""))


def _time(status: dict[str, Any], key: str) -> datetime | None:
    return datetime.fromisoformat(status[key]) if status.get(key) else None
