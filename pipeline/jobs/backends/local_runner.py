"""Runs one local job: stage after stage, and says in status.json how it went.

Started by `pipeline.jobs.backends.local` as
``python -P -m framesift_start pipeline.jobs.backends.local_runner NAME FOLDER SLOTS_FOLDER SLOTS
WITHHELD...``,
where NAME is the attempt's. It waits for a slot first, and for what still runs of the job's last
attempt; then for the first part of what a staging beside the job fetches, which alone gets the
variables WITHHELD, such as keys. When one command fails, its stage's others are ended unless they
are independent of each other, and the job has failed. What a stage started, its commands' own
children included, is ended with it; a command is asked to end when this process dies, however it
dies. What the job reads from a cache is leased from its turn to its end.
"""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Final

from catalog.errors import StorageError
from catalog.storage.to_disk import living_tree_to_disk
from pipeline.cache.lease import Holder, Lease, cache_of
from pipeline.job_state import JobState
from pipeline.jobs.backends.devices import gpus_of_command, release, shares_of
from pipeline.jobs.backends.launch import on_this_machine
from pipeline.jobs.backends.log_end import heading, was_killed, why_failed
from pipeline.jobs.backends.process import ProcessId, workers_of
from pipeline.jobs.backends.turn import Turn, locked, turn
from pipeline.jobs.job_staging import staging_waits
from pipeline.jobs.queue import Slots
from pipeline.jobs.request import (
    JobPaths,
    JobRequest,
    Stage,
    overwrite_json,
    read_json,
    write_json,
)

_CHECKPOINT_S = 120.0
"""For how long a cancelled job's programs may keep what they have."""
_GRACE_S = 10.0
_POLL_S = 0.05
_TURN_POLL_S = 0.2
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LIBC = ctypes.CDLL(None, use_errno=True)


class Runner:
    """A job under way."""

    def __init__(
        self,
        name: str,
        request: JobRequest,
        paths: JobPaths,
        slots: Slots,
        withheld: Collection[str],
    ) -> None:
        self.name = name
        self.request, self.paths, self.slots, self.withheld = request, paths, slots, withheld
        self.staging: subprocess.Popen[bytes] | None = None
        self.asked_to_end = False
        self.me = os.getpid()
        self.held: tuple[int, ...] = ()
        self.leases: list[Lease] = []
        self.waits = ""
        self.lacks = ""
        self.gpus: tuple[str, ...] = ()
        self.was_killed = False

    def ask_to_end(self, _number: int, _frame: FrameType | None) -> None:
        """The handler of SIGTERM and SIGINT; the loop below acts on it."""
        self.asked_to_end = True

    @property
    def cancelled(self) -> bool:
        """True where the job is to end: by a signal, or by a cancel before the handler was set."""
        return self.asked_to_end or self.paths.cancel.exists()

    def first_status(self) -> dict[str, object]:
        """What status.json says before anything has begun."""
        runner = str(ProcessId.of(self.me))
        return {"state": "pending", "name": self.name, "runner": runner}

    def run(self) -> int:
        """Run every stage and keep status.json; 0 when the job was done."""
        status = self.first_status()
        self.say(status)
        error = self.begin(status)
        for stage in self.request.stages:
            if error or self.cancelled:
                break
            self.say({**status, "stage": stage.title})
            try:
                error = self.run_stage(stage)
            except OSError as problem:
                error = f"{stage.title}: {_what(problem)}"
            if error and stage.optional:
                sys.stderr.write(f"{stage.title} failed, and the job goes on: {error}\n")
                error = ""
            error = error and error + self.of_staging()
        state = "failed" if error else "done"
        if self.cancelled:
            state, error = "cancelled", "cancelled"
        if self.staging is not None:
            _end([self.staging], self.pause)
        for lease in self.leases:
            lease.release()
        try:
            # Logs, metrics and whatever else its programs wrote: what is done survives a power cut.
            living_tree_to_disk(self.paths.folder)
        except OSError as problem:
            if state == "done":
                state, error = "failed", _what(problem)
        last = {**status, "state": state, "error": error, "finished": _now()}
        self.say({**last, "lost": state == "failed" and self.was_killed})
        return 0 if state == "done" else 1

    def machines(self) -> tuple[str, ...]:
        """Names of the machines that run the job's programs."""
        return (socket.gethostname(),)

    def begin(self, status: dict[str, object]) -> str:
        """Wait for the job's turn, and hold what it needs; why that failed, else empty."""
        try:
            self.wait_for_turn(status)
        except (OSError, StorageError) as problem:
            return f"waiting for a slot: {_what(problem)}"
        try:
            if not self.cancelled:
                self.take_leases()
            error = self.begin_staging(status)
            if not error and not self.cancelled:
                status |= {"state": "running", "started": _now(), "hosts": [*self.machines()]}
                self.say(status)
        except OSError as problem:
            return f"{_STAGING}: {_what(problem)}"
        except StorageError as problem:
            return str(problem)
        return error

    def take_leases(self) -> None:
        """Have nobody evict what the job reads from a cache until its end.

        Raises:
            StorageError: It was evicted while the job waited.
        """
        for manifest, dataset in self.request.reads.items():
            cache = cache_of(Path(manifest))
            if cache is None:
                continue
            holder = Holder(dataset, self.request.name, self.request.user or self.request.owner)
            try:
                self.leases.append(Lease(cache, Path(manifest).name, holder))
            except StorageError as problem:
                # A cache that is mounted read-only is evicted by others, who then do not know.
                sys.stderr.write(f"without a lease on {dataset}: {problem}\n")
                continue
            self.leases[-1].need_manifest()

    def pause(self) -> None:
        """Wait a moment, as a living process."""
        for lease in self.leases:
            lease.beat()
        time.sleep(_POLL_S)

    def wait_for_turn(self, status: Mapping[str, object]) -> None:
        """Wait until no process of an earlier attempt runs and a slot is free, or for the end.

        Both are locks, which the job's commands hold with this process.

        Raises:
            OSError: A folder cannot be written, or has no locks.
        """
        while (alone := locked(self.paths.lock)) is None:
            self.say_waits(status, "queued", _EARLIER)
            if self.cancelled:
                return
        with turn(self.slots) as position:
            while not self.cancelled:
                slots = self.slots_of_turn(position)
                if slots is not None:
                    self.held = (alone, *slots)
                    return
                self.say_waits(status, "queued", self.lacks or _waits(position))

    def slots_of_turn(self, position: Turn) -> tuple[int, ...] | None:
        """Open files that are the job's slots; None as long as it has to wait for them.

        They are a slot for jobs, and one for each GPU and core that it asks for: all, or none.

        Raises:
            OSError: The folder cannot be written, or has no locks.
        """
        slot, self.lacks = position.slot(), ""
        if slot is None:
            return None
        locks, names = [slot], dict[str, tuple[str, ...]]()
        for share in shares_of(self.request):
            share_of_devices = share.take(self.slots.folder.parent)
            if share_of_devices is None:
                release(locks)
                self.lacks = share.waits
                return None
            locks += share_of_devices.values()
            names[share.kind] = tuple(share_of_devices)
        self.gpus = names.get("GPU", ())
        if cores := names.get("core"):
            os.sched_setaffinity(0, map(int, cores))  # which all that it starts inherits
        return tuple(locks)

    def commands(self, stage: Stage) -> list[tuple[str, ...]]:
        """The command lines of a stage."""
        return on_this_machine(stage, sys.executable)

    def say(self, document: Mapping[str, object]) -> None:
        """Write status.json; where there is no room for another one, over that which is there.

        Raises:
            StorageError: Neither can be done.
        """
        try:
            write_json(self.paths.status, document)
        except StorageError as refused:
            try:
                overwrite_json(self.paths.status, document)
            except OSError:
                raise refused from None

    def say_waits(self, status: Mapping[str, object], state: JobState, waits: str) -> None:
        """Have status.json say what the job waits for, and wait a moment."""
        if waits != self.waits:
            self.waits = waits
            self.say({**status, "state": state, "waits": waits})
        time.sleep(_TURN_POLL_S)

    def begin_staging(self, status: Mapping[str, object]) -> str:
        """Start the staging beside the job, and wait until its readers may begin.

        Returns:
            Why it failed; empty when they may, there is none, or the job is to end.

        Raises:
            OSError: It cannot be started.
        """
        staging = self.request.staging
        if staging is None or self.cancelled:
            return ""
        log = self.paths.log(_STAGING, 0)
        self.staging = self.start(staging.command, log, {**os.environ, **staging.environment})
        while not self.cancelled:
            staged = read_json(self.paths.staging)
            if staged.get("ready"):
                break
            code = self.staging.poll()
            if code is not None:
                return self.reason(_STAGING, 0, code)
            self.say_waits(status, _STAGING, staging_waits(staged))
        return ""

    def of_staging(self) -> str:
        """Why the staging beside the job ended, where it did; to be added to the job's error."""
        code = None if self.staging is None else self.staging.poll()
        return f"; its staging: {self.reason(_STAGING, 0, code)}" if code else ""

    def run_stage(self, stage: Stage) -> str:
        """Why the stage failed; empty when all its commands succeeded, or it is to end."""
        commands = self.commands(stage)
        # A command's ranks wait for each other, so all of them begin at once.
        most = self.request.parallel * len(commands) // len(stage.commands)
        waiting = deque(enumerate(commands))
        started: dict[int, subprocess.Popen[bytes]] = {}
        running: set[int] = set()
        failed, killed = "", list[bool]()
        try:
            while (waiting or running) and not self.cancelled:
                while waiting and len(running) < most:
                    index, command = waiting.popleft()
                    log = self.paths.log(stage.title, index)
                    variables = self.variables(stage, index)
                    started[index] = self.start(command, log, variables)
                    running.add(index)
                for index in sorted(running):
                    code = started[index].poll()
                    if code is None:
                        continue
                    running.remove(index)
                    if code != 0:
                        failed = failed or self.reason(stage.title, index, code)
                        log = self.paths.log(stage.title, index)
                        killed.append(was_killed(log, self.request.attempt, code))
                if failed and not stage.independent:
                    break
                self.pause()
            if self.cancelled:
                if self.staging is not None:  # a program that waits for a file shall not wait on
                    self.staging.terminate()
                _let_keep(started, commands, self.pause)
        finally:
            _end(list(started.values()), self.pause, self.staging)
        self.was_killed = bool(killed) and all(killed)
        return failed

    def variables(self, stage: Stage, index: int) -> dict[str, str]:
        """The environment of a command of a stage."""
        own = {name: os.environ[name] for name in os.environ if name not in self.withheld}
        gpus = gpus_of_command(self.gpus, stage, index, self.request.resources.gpus)
        return {**own, **self.request.environment, **gpus}

    def start(
        self, command: tuple[str, ...], log: Path, variables: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        """Start a command in a session of its own, its output in ``log``.

        Args:
            command: Program and arguments.
            log: Its output.
            variables: Its environment.
        """
        with log.open("ab") as output:
            if self.request.attempt > 1:
                output.write(f"{heading(self.request.attempt)}\n".encode())
                output.flush()
            return subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=variables,
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
        """Why a command failed."""
        log = self.paths.log(title, index)
        return why_failed(f"{title} {index}", log, self.request.attempt, code)


def main(name: str, folder: Path, slots: Slots, withheld: Collection[str] = ()) -> int:
    """Run the job in ``folder``, an attempt of that name; 0 when it was done."""
    paths = JobPaths(folder)
    request = JobRequest.from_json(read_json(paths.request))
    return run_job(Runner(name, request, paths, slots, withheld))


def run_job(runner: Runner) -> int:
    """Run a job in this process; 0 when it was done."""
    signal.signal(signal.SIGTERM, runner.ask_to_end)
    signal.signal(signal.SIGINT, runner.ask_to_end)
    # Orphans of a command come to this process, which so can end them too.
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    return runner.run()


def _let_keep(
    started: Mapping[int, subprocess.Popen[bytes]],
    commands: Sequence[tuple[str, ...]],
    pause: Callable[[], None],
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
        pause()


def _end(
    started: list[subprocess.Popen[bytes]],
    pause: Callable[[], None],
    spared: subprocess.Popen[bytes] | None = None,
) -> None:
    """End what still runs, with all it started: first asked, then killed."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + _GRACE_S
        signalled: set[int] = set()
        while (left := _left(started, spared)) and time.monotonic() < deadline:
            for target in left - signalled:
                with suppress(ProcessLookupError):
                    os.kill(target, number)
            signalled |= left
            pause()


def _left(
    started: list[subprocess.Popen[bytes]], spared: subprocess.Popen[bytes] | None
) -> set[int]:
    """Targets of os.kill that still run: groups of commands, and orphans of other groups."""
    groups = {-process.pid for process in started if _group_runs(process)}
    known = [*started, spared] if spared is not None else started
    orphans = _children() - {process.pid for process in known}
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


_STAGING: Final = "staging"
_EARLIER = "for the end of what its last attempt started"


def _waits(position: Turn) -> str:
    """The reason why a job waits, as users read it."""
    earlier, slots = position.before, position.slots.number
    before = f"; {earlier} came before it" if earlier else ""
    return f"for one of {slots} slot{'s' if slots > 1 else ''}{before}"


def _what(problem: OSError | StorageError) -> str:
    if isinstance(problem, StorageError):
        return str(problem)
    return f"{problem.filename or 'the system'}: {problem.strerror}"


def _now() -> str:
    return datetime.now(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds")


if __name__ == "__main__":
    own_name, own_folder, slots_folder, number, *rest = sys.argv[1:]
    sys.exit(main(own_name, Path(own_folder), Slots(Path(slots_folder), int(number)), rest))
