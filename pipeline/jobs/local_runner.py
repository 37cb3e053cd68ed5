"""Runs one local job: stage after stage, and says in status.json how it went.

Started by `pipeline.jobs.local` as
``python -P -m pipeline.jobs.local_runner FOLDER SLOTS_FOLDER SLOTS``. It waits for a slot first,
and for what still runs of the job's last attempt. When one command fails, its stage's others are
ended unless they are independent of each other, and the job has failed. What a stage started, its
commands' own children included, is ended with it; a command is asked to end when this process dies,
however it dies.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from catalog.errors import StorageError
from pipeline.jobs.process import ProcessId, workers_of
from pipeline.jobs.queue import Slots
from pipeline.jobs.request import JobPaths, JobRequest, Stage, read_json, write_json
from pipeline.jobs.turn import Turn, locked, turn

_CHECKPOINT_S = 120.0
"""For how long a cancelled job's programs may keep what they have."""
_GRACE_S = 10.0
_POLL_S = 0.05
_TURN_POLL_S = 0.2
_LOG_END_BYTES = 65_536
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LIBC = ctypes.CDLL(None, use_errno=True)


class _Runner:
    """A job under way."""

    def __init__(self, request: JobRequest, paths: JobPaths, slots: Slots) -> None:
        self.request, self.paths, self.slots = request, paths, slots
        self.asked_to_end = False
        self.me = os.getpid()
        self.held: tuple[int, ...] = ()
        self.waits = ""

    def ask_to_end(self, _number: int, _frame: FrameType | None) -> None:
        """The handler of SIGTERM and SIGINT; the loop below acts on it."""
        self.asked_to_end = True

    @property
    def cancelled(self) -> bool:
        """True where the job is to end: by a signal, or by a cancel before the handler was set."""
        return self.asked_to_end or self.paths.cancel.exists()

    def run(self) -> int:
        """Run every stage and keep status.json; 0 when the job was done."""
        runner = str(ProcessId.of(self.me))
        status: dict[str, str] = {"state": "pending", "runner": runner}
        write_json(self.paths.status, status)
        state, error = "done", ""
        try:
            self.wait_for_turn(status)
            if not self.cancelled:
                status |= {"state": "running", "started": _now()}
                write_json(self.paths.status, status)
        except (OSError, StorageError) as problem:
            state, error = "failed", f"waiting for a slot: {_what(problem)}"
        for stage in self.request.stages:
            if self.cancelled:
                state, error = "cancelled", "cancelled"
            if state != "done":
                break
            write_json(self.paths.status, {**status, "stage": stage.title})
            try:
                error = self.run_stage(stage)
            except OSError as problem:
                error = f"{stage.title}: {_what(problem)}"
            if error:
                state = "failed"
        if self.cancelled:
            state, error = "cancelled", "cancelled"
        write_json(
            self.paths.status, {**status, "state": state, "error": error, "finished": _now()}
        )
        return 0 if state == "done" else 1

    def wait_for_turn(self, status: Mapping[str, str]) -> None:
        """Wait until no process of an earlier attempt runs and a slot is free, or for the end.

        Both are locks, which the job's commands hold with this process.

        Raises:
            OSError: A folder cannot be written, or has no locks.
        """
        while (alone := locked(self.paths.lock)) is None:
            self.say_waits(status, _EARLIER)
            if self.cancelled:
                return
        with turn(self.slots) as position:
            while not self.cancelled:
                slot = position.slot()
                if slot is not None:
                    self.held = (alone, slot)
                    return
                self.say_waits(status, _waits(position))

    def say_waits(self, status: Mapping[str, str], waits: str) -> None:
        """Have status.json say what the job waits for, and wait a moment."""
        if waits != self.waits:
            self.waits = waits
            write_json(self.paths.status, {**status, "waits": waits})
        time.sleep(_TURN_POLL_S)

    def run_stage(self, stage: Stage) -> str:
        """Why the stage failed; empty when all its commands succeeded, or it is to end."""
        waiting = deque(enumerate(stage.commands))
        started: dict[int, subprocess.Popen[bytes]] = {}
        running: set[int] = set()
        failed = ""
        try:
            while (waiting or running) and not self.cancelled:
                while waiting and len(running) < self.request.parallel:
                    index, command = waiting.popleft()
                    started[index] = self.start(command, self.paths.log(stage.title, index))
                    running.add(index)
                for index in sorted(running):
                    code = started[index].poll()
                    if code is None:
                        continue
                    running.remove(index)
                    if code != 0:
                        failed = failed or self.reason(stage.title, index, code)
                if failed and not stage.independent:
                    break
                time.sleep(_POLL_S)
            if self.cancelled:
                _let_keep(started, stage.commands)
        finally:
            _end(list(started.values()))
        return failed

    def start(self, command: tuple[str, ...], log: Path) -> subprocess.Popen[bytes]:
        """Start a command in a session of its own, its output in ``log``."""
        with log.open("ab") as output:
            if self.request.attempt > 1:
                output.write(_heading(self.request.attempt))
                output.flush()
            return subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.request.environment},
                pass_fds=self.held,
                start_new_session=True,
                preexec_fn=self.end_with_me,  # safe: this process has one thread
            )

    def end_with_me(self) -> None:
        """In a new command's process: have the kernel ask it to end when the runner dies."""
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != self.me:
            os._exit(1)

    def reason(self, title: str, index: int, code: int) -> str:
        """Why a command failed: its own last error line, or its exit code."""
        log = self.paths.log(title, index)
        for line in reversed(_last_lines(log)):
            if line == _heading(self.request.attempt).decode().strip():
                break  # what stands above is of an earlier attempt
            _, marker, message = line.partition("error: ")
            if marker:
                return f"{message.strip()} ({title} {index}, log {log})"
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return f"{title} {index} {how}; see {log}"


def main(folder: Path, slots: Slots) -> int:
    """Run the job in ``folder``; 0 when it was done."""
    paths = JobPaths(folder)
    runner = _Runner(JobRequest.from_json(read_json(paths.request)), paths, slots)
    signal.signal(signal.SIGTERM, runner.ask_to_end)
    signal.signal(signal.SIGINT, runner.ask_to_end)
    # Orphans of a command come to this process, which so can end them too.
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    return runner.run()


def _let_keep(
    started: Mapping[int, subprocess.Popen[bytes]], commands: Sequence[tuple[str, ...]]
) -> None:
    """Ask the programs that do the work to end, and give them time to keep what they have.

    Before their launchers: horovodrun kills its workers five seconds after it is asked.
    """
    for index, process in started.items():
        for pid in workers_of(process.pid, commands[index]):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + _CHECKPOINT_S
    while time.monotonic() < deadline and any(p.poll() is None for p in started.values()):
        time.sleep(_POLL_S)


def _end(started: list[subprocess.Popen[bytes]]) -> None:
    """End what still runs, with all it started: first asked, then killed."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + _GRACE_S
        signalled: set[int] = set()
        while (left := _left(started)) and time.monotonic() < deadline:
            for target in left - signalled:
                with suppress(ProcessLookupError):
                    os.kill(target, number)
            signalled |= left
            time.sleep(_POLL_S)


def _left(started: list[subprocess.Popen[bytes]]) -> set[int]:
    """Targets of os.kill that still run: groups of commands, and orphans of other groups."""
    groups = {-process.pid for process in started if _group_runs(process)}
    orphans = _children() - {process.pid for process in started}
    return groups | {pid for pid in orphans if not _reap(pid)}


def _group_runs(process: subprocess.Popen[bytes]) -> bool:
    if process.poll() is None:
        return True
    while _reap(-process.pid):
        pass
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return False
    return True


def _reap(target: int) -> bool:
    """Take leave of an ended orphan (or one of a group); False where there is none."""
    try:
        return os.waitpid(target, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return False


def _children() -> set[int]:
    try:
        text = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    except OSError:
        return set()
    return {int(pid) for pid in text.split()}


def _last_lines(log: Path) -> list[str]:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _LOG_END_BYTES))
        return file.read().decode("utf-8", errors="replace").splitlines()


_EARLIER = "for the end of what its last attempt started"


def _waits(position: Turn) -> str:
    """The reason why a job waits, as users read it."""
    earlier, slots = position.before, position.slots.number
    before = f"; {earlier} came before it" if earlier else ""
    return f"for one of {slots} slot{'s' if slots > 1 else ''}{before}"


def _heading(attempt: int) -> bytes:
    return f"==> attempt {attempt} <==\n".encode()


def _what(problem: OSError | StorageError) -> str:
    if isinstance(problem, StorageError):
        return str(problem)
    return f"{problem.filename or 'the system'}: {problem.strerror}"


def _now() -> str:
    return datetime.now(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Slots(Path(sys.argv[2]), int(sys.argv[3]))))
