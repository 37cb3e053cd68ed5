"""Stands for a process that a zygote forks: its files, environment, signals and exit status.

A launcher starts it as a rank: ``python tests/forked_rank.py ADDRESS -m training.main ...``. What
kills it does not reach the fork: tests that kill ranks start the program itself.
"""

import json
import os
import signal
import socket
import sys
from pathlib import Path


def _run(address: str, *arguments: str) -> int:
    status, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    umask = os.umask(0)
    request = {
        "arguments": arguments, "environment": dict(os.environ), "folder": str(Path.cwd()),
        "umask": umask,
    }  # fmt: skip
    with its, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as zygote:
        zygote.connect(f"\0{address}")
        socket.send_fds(zygote, [json.dumps(request).encode()], [its.fileno(), 0, 1, 2])
    fork = int.from_bytes(status.recv(8, socket.MSG_WAITALL))
    assert fork, "the process that forks has ended"
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, lambda number, _: os.kill(fork, number))
    code = int.from_bytes(status.recv(8, socket.MSG_WAITALL), signed=True)
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(_run(*sys.argv[1:]))
