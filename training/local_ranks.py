"""horovodrun for ranks on this machine alone, with time to end.

Horovod's own listens for their rendezvous at every address of the machine and asks nobody who they
are: whoever writes there decides where the ranks connect. Here it listens on loopback.

Horovod's own kills ranks five seconds after it is told to end, which may be in the middle of their
last checkpoint, and at once where ``/bin/sh`` puts the rank in the shell's place.

And it waits for a rank's shell in two threads, of which one gets no exit code: after a signal the
launcher ended with 0 two of eight times (psutil 7.2).

And it imports TensorFlow to ask whether Horovod was built with Gloo, 2 s of CPU for each training.
Here the ranks find out: Horovod's own build has it wherever CMake is.

Source: horovod 0.28.1, runner/http/http_server.py, runner/util/network.py, runner/launch.py,
common/util.py and runner/common/util/safe_shell_exec.py
"""

import re
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from horovod.runner import launch
from horovod.runner.common.util import safe_shell_exec
from horovod.runner.http import http_server
from horovod.runner.util.network import find_port

_TIME_TO_END_S = 60
_POLL_S = 0.05


def _end_rank(shell_pid: int) -> None:
    """Ask a rank to end, and kill it after a minute; only Horovod's own wait reads its code."""
    with suppress(psutil.NoSuchProcess):
        shell = psutil.Process(shell_pid)
        is_rank = Path(shell.exe()) != Path("/bin/sh").resolve()
        ranks = [shell] if is_rank else shell.children()
        for rank in ranks:
            with suppress(psutil.NoSuchProcess):
                rank.terminate()
        end = time.monotonic() + _TIME_TO_END_S
        while any(_runs(rank) for rank in ranks) and time.monotonic() < end:
            time.sleep(_POLL_S)
        for rank in filter(_runs, ranks):
            for process in (*rank.children(recursive=True), rank):
                with suppress(psutil.NoSuchProcess):
                    process.kill()


def _runs(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    return False


# Not below: Horovod starts a process of this module's for each rank, which ends it.
safe_shell_exec.terminate_executor_shell_and_children = _end_rank

_OF_FIRST = re.compile(r"Exit code: (-?\d+)")


def _find_port(server_at: Callable[[tuple[str, int]], Any]) -> Any:
    return find_port(lambda address: server_at(("127.0.0.1", address[1])))


def _run() -> int:
    """The exit status of the rank that ended badly first; Horovod's own is 1 for all."""
    try:
        launch.run_commandline()
    except RuntimeError as error:
        sys.stderr.write(f"{error}\n")
        code = _OF_FIRST.search(str(error))
        return int(code[1]) % 256 if code else 1
    return 0


if __name__ == "__main__":
    http_server.find_port = _find_port
    launch.gloo_built = lambda **_: True
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # for ranks: it would end the launcher
    sys.exit(_run())
