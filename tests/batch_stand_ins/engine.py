"""A queue, hosts and processes: what both stand-ins do alike.

Jobs run as real processes, each in a session of its own, in the order in which they came, where
their dependencies, holds, array limits and the hosts' slots let them. Nothing here knows a word of
LSF's or PBS's: a front (lsf.py, pbs.py) says how a job starts and what its end means.
"""

import heapq
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol

WAITING, RUNNING, ENDED = "waiting", "running", "ended"


@dataclass
class Job:
    """A job, or a job array."""

    number: int
    """As its scheduler counts."""
    name: str
    """Without an array's indices."""
    is_array: bool
    """True for an array, of one task too."""
    script: Path
    """The spooled script; it does not exist where the job is a command line."""
    command: tuple[str, ...]
    """The command line; empty where it is a script."""
    environment: dict[str, str]
    """What is kept of the submitter's."""
    folder: str
    """Where it was submitted, or is to run."""
    at_once: int
    """Most tasks that run at once."""
    limit_s: float | None
    """How long each task may run, already scaled."""
    asked: dict[str, Any] = field(default_factory=dict)
    """What only its front reads."""
    tasks: list["Task"] = field(default_factory=list)
    """One, or those of the array."""


@dataclass(eq=False)
class Task:
    """One run of a job's script: the job itself, or an element of its array."""

    job: Job
    index: int
    """Within the array; 0 for one that is none."""
    state: str = WAITING
    """`WAITING`, `RUNNING` or `ENDED`."""
    hold: str = ""
    """Who holds it; empty for nobody."""
    is_stopped: bool = False
    """True while its processes are stopped."""
    is_unreachable: bool = False
    """True while nobody knows what became of its host."""
    runs: int = 0
    """How often it began."""
    reruns: int = 0
    """How often it went back into the queue because its host was lost."""
    queued: float = 0.0
    """Since when it waits [s since 1970]."""
    submitted: float = 0.0
    started: float = 0.0
    finished: float = 0.0
    code: int | None = None
    """How its top process ended, as Popen says: negative for a signal."""
    reason: str = ""
    """Why the scheduler ended it, in the front's words; empty where it did not."""
    waits: str = ""
    """Why it waits, in the front's words."""
    goes_back: bool = False
    """True where the end of its process puts it back into the queue."""
    slots: list[str] = field(default_factory=list)
    """The host of each of its slots."""
    gpus: dict[str, list[int]] = field(default_factory=dict)
    """Numbers of its GPUs by host."""
    keeps_gpus: bool = False
    """True where no other job may use its GPUs."""
    process: "subprocess.Popen[bytes] | None" = None
    steps: "list[Step]" = field(default_factory=list)
    """What runs of it on its hosts beside the script."""
    variables: dict[str, str] = field(default_factory=dict)
    """Environment of this run."""
    notes: dict[str, Any] = field(default_factory=dict)
    """What only its front reads."""
    log: list[tuple[float, str]] = field(default_factory=list)
    """What happened when, in the front's words."""

    @property
    def hosts(self) -> list[str]:
        """Each host once, in order."""
        return list(dict.fromkeys(self.slots))


@dataclass(eq=False)
class Step:
    """A process that a job starts on one of its hosts through the scheduler."""

    task: Task
    host: str
    process: "subprocess.Popen[bytes]"
    ended: Callable[[int], None]
    """Called with the code that it ended with."""


@dataclass(eq=False)
class Host:
    """A machine of the cluster, which is this one."""

    name: str
    slots: int
    gpus: int
    is_up: bool = True
    is_exclusive: bool = False
    """True while one job has it for itself."""


class Front(Protocol):
    """What one scheduler does in its own way."""

    def fits(self, task: Task) -> bool:
        """Whether it may begin now; then its slots and GPUs are set, else why it waits."""

    def program(self, task: Task) -> tuple[list[str], dict[str, Any]]:
        """The command line of its top process, and further arguments of Popen."""

    def started(self, task: Task) -> None:
        """Its top process began."""

    def pids(self, task: Task) -> list[int]:
        """The processes that the scheduler takes for its own."""

    def at_limit(self, task: Task) -> None:
        """Its wall time is over."""

    def ended(self, task: Task) -> None:
        """Its top process ended: what it was is to be told, or it goes back into the queue."""


class Engine:
    """The queue, and what runs of it."""

    def __init__(self, hosts: Iterable[Host]) -> None:
        """An empty one."""
        self.front: Front
        self.hosts = {host.name: host for host in hosts}
        self.jobs: dict[int, Job] = {}
        self.number = 0
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def add(self, job: Job) -> None:
        """Queue a job."""
        now = time.time()
        for task in job.tasks:
            task.submitted = task.queued = now
        self.jobs[job.number] = job

    def tasks(self) -> Iterator[Task]:
        """All of them, in the order in which they came."""
        for job in list(self.jobs.values()):
            yield from job.tasks

    def free_slots(self, host: Host) -> int:
        """Slots of a host that nobody uses."""
        if not host.is_up or host.is_exclusive:
            return 0
        return host.slots - sum(
            task.slots.count(host.name) for task in self.tasks() if task.state == RUNNING
        )

    def free_gpus(self, host: Host, alone: bool) -> list[int]:
        """GPUs of a host that a job may have, those that fewest use first.

        Args:
            alone: True where no other job may use them.
        """
        users = dict.fromkeys(range(host.gpus), 0)
        kept = set()
        for task in self.tasks():
            if task.state == RUNNING:
                for gpu in task.gpus.get(host.name, ()):
                    users[gpu] += 1
                    kept |= {gpu} if task.keeps_gpus else set()
        free = [gpu for gpu, count in users.items() if gpu not in kept and not (alone and count)]
        return sorted(free, key=lambda gpu: users[gpu])

    def later(self, task: Task, seconds: float, action: Callable[[], None]) -> None:
        """Do something in a while, if this run of a task is still under way by then."""
        run = task.runs

        def act() -> None:
            if task.state == RUNNING and task.runs == run:
                action()

        self.at(time.time() + seconds, act)

    def at(self, when: float, action: Callable[[], None]) -> None:
        """Do something at a time [s since 1970]."""
        self._count += 1
        heapq.heappush(self._timers, (when, self._count, action))

    def tick(self) -> float | None:
        """Do all that is due; seconds until more is, None where nothing is to be waited for."""
        self._reap()
        while self._timers and self._timers[0][0] <= time.time():
            heapq.heappop(self._timers)[2]()
        self._reap()
        self._schedule()
        return max(self._timers[0][0] - time.time(), 0.0) if self._timers else None

    def _reap(self) -> None:
        for task in list(self.tasks()):
            for step in list(task.steps):
                code = step.process.poll()
                if code is not None:
                    task.steps.remove(step)
                    step.ended(code)
            if task.state == RUNNING and task.process and not task.is_unreachable:
                code = task.process.poll()
                if code is not None:
                    self.end(task, code)

    def end(self, task: Task, code: int | None) -> None:
        """A run of a task is over."""
        task.code, task.finished = code, time.time()
        task.state, task.is_stopped, task.is_unreachable = ENDED, False, False
        for host in task.hosts:
            self.hosts[host].is_exclusive = False
        self.front.ended(task)

    def requeue(self, task: Task) -> None:
        """Have a task begin once more."""
        task.state, task.queued, task.goes_back = WAITING, time.time(), False
        task.slots, task.gpus, task.process, task.code = [], {}, None, None
        task.started = task.finished = 0.0
        task.reason = ""

    def _schedule(self) -> None:
        waiting = [task for task in self.tasks() if task.state == WAITING and not task.hold]
        for task in sorted(waiting, key=lambda task: task.queued):
            if task.state == WAITING and self.front.fits(task):
                self._start(task)

    def _start(self, task: Task) -> None:
        task.state, task.started, task.waits = RUNNING, time.time(), ""
        task.runs += 1
        arguments, options = self.front.program(task)
        try:
            task.process = subprocess.Popen(arguments, start_new_session=True, **options)
        finally:
            for stream in ("stdin", "stdout", "stderr"):
                if hasattr(options.get(stream), "close"):
                    options[stream].close()
        self.front.started(task)
        if task.job.limit_s is not None:
            self.later(task, task.job.limit_s, lambda: self.front.at_limit(task))

    def step(
        self, task: Task, host: str, arguments: list[str], ended: Callable[[int], None],
        **options: Any,
    ) -> Step:  # fmt: skip
        """Start a process of a job's on one of its hosts.

        Raises:
            OSError: It cannot be started.
        """
        process = subprocess.Popen(arguments, start_new_session=True, **options)
        step = Step(task, host, process, ended)
        task.steps.append(step)
        return step

    def signal(self, task: Task, number: int) -> None:
        """Signal the processes that the scheduler takes for a task's."""
        for pid in self.front.pids(task):
            with suppress(OSError):
                os.kill(pid, number)


def sessions(pids: Iterable[int]) -> list[int]:
    """The processes of some sessions, by what /proc says; without those that wait for a parent."""
    wanted = set(pids)
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError, IndexError):
                words = (folder / "stat").read_text().rpartition(")")[2].split()
                if int(words[3]) in wanted and words[0] != "Z":
                    found.append(int(folder.name))
    return found


def with_variable(name: str, value: str) -> list[int]:
    """The processes that began with a variable whose value begins so."""
    start = f"\0{name}={value}".encode()
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                if start in b"\0" + (folder / "environ").read_bytes():
                    found.append(int(folder.name))
    return found


def spool(folder: Path, name: str, text: str) -> Path:
    """A script as a scheduler keeps it: executable, for its user alone."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    path.chmod(0o700)
    return path


def output(path: str, mode: str = "ab") -> IO[bytes]:
    """A file for what a job prints; what it cannot be opened for is lost, as mail would be."""
    try:
        return Path(path).open(mode)
    except OSError:
        return Path(os.devnull).open(mode)


def signal_number(word: str) -> int | None:
    """A signal's number by "9", "KILL" or "SIGKILL"; None for what is none."""
    if word.isdigit():
        return int(word) if 0 <= int(word) < signal.NSIG else None
    name = word.upper()
    name = name if name.startswith("SIG") else f"SIG{name}"
    with suppress(KeyError):
        return int(signal.Signals[name])
    return None


def picked(variables: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Those of the names that are set."""
    return {name: variables[name] for name in names if name in variables}
