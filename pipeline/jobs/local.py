"""Jobs on this machine: a runner process of its own, which outlives who started it."""

import os
import signal
import subprocess
import sys
from datetime import datetime
from typing import Any

from catalog.errors import InvalidInput, StorageError
from pipeline.jobs.backend import JobStatus
from pipeline.jobs.environment import inherited
from pipeline.jobs.process import ProcessId
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.request import JobPaths, JobRequest, read_json, write_json
from pipeline.jobs.state import FINISHED

_RUNNER = "pipeline.jobs.local_runner"


class LocalBackend:
    """Runs each job under `pipeline.jobs.local_runner`, in a session of its own."""

    name = "local"

    def check_workers(self, workers: int, queue: JobQueue) -> None:
        """Allow as many as the machine has cores, or its settings say."""
        if workers > queue.most_workers:
            raise InvalidInput(
                f"workers {workers:,}: a job on this machine may have at most "
                f"{queue.most_workers}; ask for fewer, or have FRAMESIFT_JOB_WORKERS say more"
            )

    def submit(self, request: JobRequest, paths: JobPaths, queue: JobQueue) -> str:
        """Start the runner, which waits for a slot; its process number with its start time."""
        slots = queue.slots(request.kind)
        arguments = (str(paths.folder), str(slots.folder), str(slots.number))
        try:
            paths.logs.mkdir(parents=True, exist_ok=True)
            for left in (paths.result, paths.progress):
                left.unlink(missing_ok=True)
            write_json(paths.request, request.to_json())
            write_json(paths.status, {"state": "pending"})
            with (paths.logs / "runner.log").open("ab") as log:
                runner = subprocess.Popen(
                    # -P: a folder "pipeline" where the user happens to stand is not ours.
                    [sys.executable, "-P", "-m", _RUNNER, *arguments],
                    cwd=paths.folder,
                    env=inherited(os.environ, request.needs, queue.inherits),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        except OSError as error:
            raise StorageError(
                f"{paths.folder}: the job cannot be started: {error.strerror}", str(paths.folder)
            ) from error
        return str(ProcessId.of(runner.pid))

    def status(self, handle: str, paths: JobPaths) -> JobStatus:
        """The runner's last status; failed when it exited without writing its final status."""
        alive = _runner(handle, paths).is_alive()
        document = read_json(paths.status)  # read after the look: a last word is not missed
        state, error = document.get("state", "unknown"), document.get("error", "")
        if state not in FINISHED and not alive:
            state, error, document = "cancelled", "cancelled", {**document, "waits": ""}
            if not paths.cancel.exists():
                log = paths.logs / "runner.log"
                state, error = (
                    "failed",
                    f"the job's runner process exited without writing its final status; see {log}",
                )
        times = _time(document, "started"), _time(document, "finished")
        return JobStatus(state, error, *times, waits=document.get("waits", ""))

    def cancel(self, handle: str, paths: JobPaths) -> None:
        """Ask the runner to end; it ends its commands first."""
        try:
            # A runner that has only begun cannot hear a signal yet; it looks here.
            paths.cancel.touch()
        except OSError as error:
            raise StorageError(
                f"{paths.cancel}: cannot be written: {error.strerror}", str(paths.cancel)
            ) from error
        _runner(handle, paths).signal(signal.SIGTERM)


def _runner(handle: str, paths: JobPaths) -> ProcessId:
    """The job's runner; from its own word where its submitter died before keeping the handle."""
    return ProcessId.parse(handle or read_json(paths.status).get("runner", ""))


def _time(status: dict[str, Any], key: str) -> datetime | None:
    return datetime.fromisoformat(status[key]) if status.get(key) else None
