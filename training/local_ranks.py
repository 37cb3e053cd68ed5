"""horovodrun for ranks on this machine alone, with time to end.

Horovod's own listens for their rendezvous at every address of the machine and asks nobody who they
are: whoever writes there decides where the ranks connect. Here it listens on loopback.

And Horovod's own kills ranks five seconds after it is told to end, which may be in the middle of
their last checkpoint.

Source: horovod 0.28.1, runner/http/http_server.py, runner/util/network.py and
runner/common/util/safe_shell_exec.py
"""

import re
import signal
import sys
from collections.abc import Callable
from typing import Any

from horovod.runner.common.util import safe_shell_exec
from horovod.runner.http import http_server
from horovod.runner.launch import run_commandline
from horovod.runner.util.network import find_port

# Not below: Horovod starts a process of this module's for each rank, which ends it.
safe_shell_exec.GRACEFUL_TERMINATION_TIME_S = 60

_OF_FIRST = re.compile(r"Exit code: (-?\d+)")


def _find_port(server_at: Callable[[tuple[str, int]], Any]) -> Any:
    return find_port(lambda address: server_at(("127.0.0.1", address[1])))


def _run() -> int:
    """The exit status of the rank that ended badly first; Horovod's own is 1 for all."""
    try:
        run_commandline()
    except RuntimeError as error:
        sys.stderr.write(f"{error}\n")
        code = _OF_FIRST.search(str(error))
        return int(code[1]) % 256 if code else 1
    return 0


if __name__ == "__main__":
    http_server.find_port = _find_port
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # for ranks: it would end the launcher
    sys.exit(_run())
