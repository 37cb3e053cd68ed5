"""Processes of Python and of the command line without the seconds that their imports take.

A process that has imported everything waits, and each command is a fork of it: a process of its
own with its own arguments, environment, files, signals and exit status. What is different is that
nothing was left to import; tests of that start the program itself, and so do tests of how much
memory a process takes, and of what PYTHONPATH holds.

What trains is forked from a process that has imported TensorFlow and has not computed yet: then it
has no thread, which is checked, and its pools of threads begin in each fork. A launcher's ranks are
forked as well, behind `tests.forked_rank`.
"""

import atexit
import contextlib
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_MOST_BYTES = 1 << 20
_ROOT = Path(__file__).parent.parent
_IMPORTED = (
    "catalog.records.migrate",
    "catalog.store",
    "ingest.sources.s3.s3_source",
    "ingest.scan.scan",
    "ingest.sources.tar_source",
    "numba",
    "pipeline.jobs.inference.validation",
    "pipeline.jobs.plan",
    "pyarrow.parquet",
    "sqlalchemy.dialects.sqlite",
    "training.merge_scores",
    "uvicorn",
    "uvicorn.protocols.http.h11_impl",
    "uvicorn.lifespan.on",
)
_IMPORTED_TO_TRAIN = (
    "tensorflow",
    "horovod.tensorflow",
    "training.export_checkpoint",
    "training.main",
    "training.predict",
    "training.run.mlflow_log",
    "training.train",
    "training.validate_shard",
)
_SET_WHILE_IMPORTED: Mapping[str, Mapping[str, str]] = {
    "framesift": {},
    "training": {"OPENBLAS_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "2"},
}


def own_umask() -> int:
    """This process's, which other threads go on with meanwhile."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    (line,) = (line for line in status.splitlines() if line.startswith("Umask:"))
    return int(line.split()[1], 8)


class Forked(subprocess.Popen[str]):
    """A command line as `subprocess.Popen` starts it, forked.

    Arguments that begin with ``-c`` or ``-m`` are those of Python; others are those of framesift.
    """

    _kind = "framesift"
    _status: socket.socket

    def __init__(
        self, arguments: Sequence[str], env: Mapping[str, str] | None = None, **options: Any
    ) -> None:
        """Start it; ``options`` are stdin, stdout, stderr and cwd."""
        env = os.environ if env is None else env
        super().__init__([sys.executable, *arguments], env=env, text=True, **options)

    def _execute_child(self, args: Any, _: Any, *rest: Any) -> None:
        folder, env, pipes = rest[3], rest[4], rest[8:14]
        p2cread, _, _, c2pwrite, _, errwrite = pipes
        with Path(os.devnull).open() as nothing:
            handed = [
                p2cread if p2cread >= 0 else nothing.fileno(),
                c2pwrite if c2pwrite >= 0 else 1,
                errwrite if errwrite >= 0 else 2,
            ]
            request: dict[str, Any] = {
                "arguments": [str(argument) for argument in args[1:]],
                "environment": dict(env),
                "folder": str(folder or Path.cwd()),
                "umask": own_umask(),
            }
            if self._kind == "framesift":
                from tests.engine_threads import engine_threads

                request["engine_threads"] = engine_threads()
            self._status = _zygote(self._kind).fork(request, handed)
            self._reading = threading.Lock()
        number = self._status.recv(8, socket.MSG_WAITALL)
        assert number, "the process that forks has ended"  # and 0 would be all of this group
        self.pid = int.from_bytes(number)
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        if self.returncode is None:
            self._read(0.0)
        return self.returncode

    def _wait(self, timeout: float | None) -> int:
        if self.returncode is None:
            self._read(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return self.returncode

    def _read(self, timeout: float | None) -> None:
        if not self._reading.acquire(timeout=-1 if timeout is None else timeout):
            return  # another thread waits for it
        try:
            if self.returncode is not None:
                return
            with selectors.DefaultSelector() as selector:
                selector.register(self._status, selectors.EVENT_READ)
                if not selector.select(timeout):
                    return
            status = self._status.recv(8, socket.MSG_WAITALL)
            self.returncode = int.from_bytes(status, signed=True) if status else -signal.SIGKILL
            self._status.close()
        finally:
            self._reading.release()


class ForkedTraining(Forked):
    """The same of a process that has imported TensorFlow."""

    _kind = "training"


def run_python(
    *arguments: str | Path,
    env: Mapping[str, str] | None = None,
    check: bool = False,
    forked: type[Forked] = Forked,
) -> "subprocess.CompletedProcess[str]":
    """Run Python in the repository: ``-c CODE`` or ``-m MODULE``, and their arguments.

    Raises:
        subprocess.CalledProcessError: It failed, and ``check`` is set.
    """
    pipe, words = subprocess.PIPE, [str(argument) for argument in arguments]
    with forked(words, env, stdout=pipe, stderr=pipe, cwd=_ROOT) as process:
        try:
            out, err = process.communicate(timeout=600)
        except BaseException:
            process.kill()
            raise
    ended = subprocess.CompletedProcess(words, process.returncode, out, err)
    if check and ended.returncode:
        raise subprocess.CalledProcessError(ended.returncode, words, out, err)
    return ended


class _Zygote:
    """The waiting process, of the process that asks."""

    def __init__(self, kind: str) -> None:
        self.address = f"framesift-{kind}-{os.getpid()}"
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket = ours
        self._lock = threading.Lock()
        with its:
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(its.fileno()), kind, self.address],
                pass_fds=[its.fileno()], cwd=_ROOT, env=os.environ | _SET_WHILE_IMPORTED[kind],
                stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        atexit.register(self._end)

    def fork(self, request: dict[str, Any], files: Sequence[int]) -> socket.socket:
        """A new process; what it is called and how it ended come by the socket."""
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with its, self._lock:
            content = json.dumps(request).encode()
            socket.send_fds(self._socket, [content], [its.fileno(), *files])
        return ours

    def _end(self) -> None:
        self._socket.close()
        with contextlib.suppress(subprocess.TimeoutExpired):  # a fork of this process has it open
            self._process.wait(300)


_zygotes: dict[tuple[int, str], _Zygote] = {}
_starting = threading.Lock()


def _zygote(kind: str) -> _Zygote:
    with _starting:
        own = (os.getpid(), kind)
        if own not in _zygotes:
            _zygotes[own] = _Zygote(kind)
        return _zygotes[own]


def rank_address() -> str:
    """Where ``tests.forked_rank`` asks for forks that have imported TensorFlow."""
    return _zygote("training").address


def _serve(requests: socket.socket, others: socket.socket) -> Sequence[str] | None:
    """Fork until nobody asks any more; in a child the arguments that it is to run.

    Args:
        requests: Of the process whose end is this one's.
        others: Listens for processes that ask once each.
    """
    woken, wake = socket.socketpair()
    wake.setblocking(False)
    signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as selector:
        for each in (requests, others, woken):
            selector.register(each, selectors.EVENT_READ)
        while True:
            ready = {key.fileobj for key, _ in selector.select()}
            if woken in ready:
                woken.recv(4096)
                _bury(running)
            if requests in ready:
                content, fds, _, _ = socket.recv_fds(requests, _MOST_BYTES, 4)
                if not content:
                    return None
            elif others in ready:
                content, fds = _asked_once(others)
            else:
                continue
            status = socket.socket(fileno=fds[0])
            pid = os.fork()
            if pid:
                status.sendall(pid.to_bytes(8))
                running[pid] = status
                for fd in fds[1:]:
                    os.close(fd)
                continue
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for end in (status, requests, others, woken, wake, *running.values()):
                end.close()
            break
    return _take_over(json.loads(content), fds[1:])


def _take_over(request: Mapping[str, Any], files: Sequence[int]) -> Sequence[str]:
    """Have the files, folder, umask and environment of a request; its arguments."""
    for number, fd in enumerate(files):
        os.dup2(fd, number)
        os.close(fd)
    os.chdir(request["folder"])
    os.umask(request["umask"])
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    if "engine_threads" in request:
        from tests.engine_threads import set_engine_threads

        set_engine_threads(request["engine_threads"])
    arguments: Sequence[str] = request["arguments"]
    return arguments


def _asked_once(others: socket.socket) -> tuple[bytes, list[int]]:
    with others.accept()[0] as asking:
        content, fds, _, _ = socket.recv_fds(asking, _MOST_BYTES, 4)
    return content, fds


def _bury(running: dict[int, socket.socket]) -> None:
    for pid in list(running):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            end = running.pop(pid)
            code = os.waitstatus_to_exitcode(status)
            with contextlib.suppress(OSError):  # nobody waits for it
                end.sendall(code.to_bytes(8, signed=True))
            end.close()


_ended: int | None = None
"""Exit status of a child that has run to its end, which api.cli.program has likewise."""


def _run(arguments: Sequence[str]) -> None:
    global _ended  # for what runs at its very end
    try:
        _run_whole(arguments)
        _ended = 0
    except SystemExit as stop:
        if stop.code is None or isinstance(stop.code, int):
            _ended = stop.code or 0
        raise


def _leave() -> None:
    """End without taking apart what was imported, as the program does: 0.13 s of CPU."""
    if _ended is None:
        return
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        return  # Python tells it, and ends with a status of its own
    os._exit(_ended)


def _run_whole(arguments: Sequence[str]) -> None:
    option, *rest = arguments or [""]
    if option in ("-c", "-m"):
        sys.path.insert(0, str(_ROOT))
        sys.argv = list(rest)
        if option == "-m":
            sys.modules.pop(rest[0], None)  # what is imported already would not be run as a program
            runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        else:
            sys.argv[0] = option
            names = vars(sys.modules["__main__"])
            exec(compile(rest[0], "<string>", "exec"), names)
        return
    from api.cli.main import main

    sys.argv = ["framesift", *arguments]
    sys.exit(main())  # type: ignore[func-returns-value]


def _import_framesift() -> None:
    import importlib
    import pkgutil

    import duckdb

    import api

    for name in _IMPORTED:
        importlib.import_module(name)
    for found_module in pkgutil.walk_packages(api.__path__, "api."):  # commands import their own
        importlib.import_module(found_module.name)
    from catalog.lake.extensions import Extensions
    from tests.cheap_passwords import make_passwords_cheap
    from tests.patient_providers import wait_for_providers

    make_passwords_cheap()
    wait_for_providers()
    importlib.import_module("tests.engine_threads")  # which each fork sets
    needed = Extensions(["sqlite_scanner", "ducklake"])
    with duckdb.connect(config=needed.settings | {"threads": 1}) as connection:
        needed.load(connection)  # and so children do not check them
    # Its thread would not be there in a fork, which would wait for its end.
    duckdb.default_connection().close()


def _import_training() -> None:
    import importlib

    from pipeline.runs.without_packages import do_without

    finders = [*sys.meta_path]
    do_without("pandas", "scipy", "boto3", "botocore", "fsspec")  # as the program itself
    for name in _IMPORTED_TO_TRAIN:
        importlib.import_module(name)
    sys.meta_path[:] = finders
    threads = [(each / "comm").read_text().strip() for each in Path("/proc/self/task").iterdir()]
    # jemalloc, by which Arrow allocates, goes on without its thread in a fork.
    others = [name for name in threads if name != "jemalloc_bg_thd"]
    assert len(others) == 1, f"a fork would lack threads: {threads}"


if __name__ == "__main__":
    atexit.register(_leave)  # registered first, runs last
    import gc

    descriptor, kind, address = sys.argv[1:]
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(f"\0{address}")
    listener.listen(8)
    gc.disable()  # while everything is imported: a third of the time
    if kind == "training":
        _import_training()
    else:
        _import_framesift()
    gc.freeze()  # or each child goes through all that was imported, at its end: 0.6 s
    gc.enable()
    arguments = _serve(socket.socket(fileno=int(descriptor)), listener)
    if arguments is not None:
        _run(arguments)
