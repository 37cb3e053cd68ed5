"""The command line and the server as users have them: processes."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

from pipeline.jobs.queue import JobQueue
from pipeline.jobs.workflow.reconciler import is_driven
from tests.zygote import Forked, run_python

FRAMESIFT = Path(sys.executable).with_name("framesift")


def environment(home: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment with no FRAMESIFT_ variable but these."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("FRAMESIFT_")}
    return inherited | {"FRAMESIFT_HOME": str(home)} | dict(more or {})


def framesift(
    home: Path,
    *arguments: str | Path,
    prefix: tuple[str, ...] = (),
    stdin: str = "",
    variables: Mapping[str, str] | None = None,
) -> "subprocess.CompletedProcess[str]":
    """Run the command line in a process, by a ``prefix`` where one is given."""
    env, texts = environment(home, variables), [str(argument) for argument in arguments]
    with _started(texts, env, prefix, stdin=subprocess.PIPE) as process:
        try:
            out, err = process.communicate(stdin, timeout=600)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(texts, process.returncode, out, err)


def _started(
    arguments: Sequence[str],
    env: Mapping[str, str],
    prefix: Sequence[str] = (),
    stdin: int | None = None,
) -> "subprocess.Popen[str]":
    """A fork; the program itself where something is asked of its start."""
    pipe = subprocess.PIPE
    if not prefix and all(env.get(k) == os.environ.get(k) for k in env if k.startswith("PYTHON")):
        return Forked(arguments, env, stdin=stdin, stdout=pipe, stderr=pipe)
    return subprocess.Popen(
        [*prefix, str(FRAMESIFT), *arguments],
        env=env, stdin=stdin, stdout=pipe, stderr=pipe, text=True,
    )  # fmt: skip


@contextmanager
def serving(
    home: Path,
    *arguments: str,
    variables: Mapping[str, str] | None = None,
    authenticates: bool = False,
) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """A server of the home on a free port: its URL and its process, ended at the block's end.

    It does not authenticate unless it ``authenticates``: most tests are of something else.
    """
    asks = [] if authenticates else ["--no-auth"]
    process = _started(
        ["serve", "--port", "0", "--log-level", "warning", *asks, *arguments],
        environment(home, variables),
    )
    try:
        yield _url(process), process
    finally:
        process.terminate()
        process.communicate(timeout=300)


def wait_until(holds: Callable[[], bool], seconds: float = 300) -> None:
    """Wait until something holds, and fail where it does not in that time."""
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)


def until_ready(url: str, ask: httpx.Client | None = None) -> None:
    """Wait until /readyz says 200: one process of the server has the newest snapshot in memory."""
    get = httpx.get if ask is None else ask.get

    def ready() -> bool:
        answer = get(f"{url}/readyz", timeout=300)
        assert answer.status_code == 200 or answer.json()["title"] == "Loading", answer.text
        return answer.status_code == 200

    wait_until(ready)


def until_driven(home: Path) -> None:
    """Wait until a server drives the home's jobs, which a command does that is faster."""
    queue = JobQueue(home / "jobs")
    wait_until(lambda: is_driven(queue))


def counted(url: str) -> tuple[int, int]:
    """Statements that run in a server, and that wait."""
    text = httpx.get(f"{url}/metrics", headers={"Connection": "close"}, timeout=120).text
    running, waiting = (
        re.search(rf'framesift_statements{{state="{state}"}} (\d+)', text)
        for state in ("running", "waiting")
    )
    assert running
    assert waiting
    return int(running[1]), int(waiting[1])


def catch_up(url: str) -> None:
    """Have a server of one process deal with what came before: it answers what came after."""
    for _ in range(3):  # each passes its event loop several times
        httpx.get(f"{url}/healthz", headers={"Connection": "close"}, timeout=120)


def sleep_through(process: "subprocess.Popen[str]", seconds: float) -> None:
    """Stop a process for a time: its clock goes on, and it computes nothing meanwhile."""
    process.send_signal(signal.SIGSTOP)
    time.sleep(seconds)
    process.send_signal(signal.SIGCONT)


def _url(process: "subprocess.Popen[str]") -> str:
    """The URL that a server says it listens on; it is killed where it says nothing for long."""
    timer = threading.Timer(600, process.kill)
    timer.start()
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
    finally:
        timer.cancel()
    match = re.search(r"on (https?://\S+)$", line.strip())
    assert match, f"{line!r} {process.communicate()}"
    return match[1]


_SEVERAL = """
import contextlib, io, json, sys
from api.cli.main import main
ended = []
for arguments in json.loads(sys.argv[1]):
    # As a pipe: bytes go there, too.
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="") for _ in range(2))
    status = 0
    sys.argv = ["framesift", *arguments]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as stop:
            status = stop.code or 0
    printed = []
    for stream in (out, err):
        stream.flush()
        printed.append(stream.buffer.getvalue().decode())
    ended.append([status, *printed])
print(json.dumps(ended))
"""


def several(home: Path, *commands: list[str]) -> list[tuple[int, str, str]]:
    """Exit code, stdout and stderr of command lines that run one after another in a process."""
    run = run_python("-c", _SEVERAL, json.dumps(commands), env=environment(home), check=True)
    return [(status, out, err) for status, out, err in json.loads(run.stdout)]
