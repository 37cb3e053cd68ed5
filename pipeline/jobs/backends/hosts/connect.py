"""The near end of a connection: runs one program on another machine, as if it ran here.

    python -P -m pipeline.jobs.backends.hosts.connect PLACE.json HOST NAME=VALUE... -- PROGRAM...

Its output, its exit status and SIGTERM are the program's. Where the connection breaks, it waits
until the far end has ended the program (hosts.remote), and then exits with 255.
"""

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, cast

from framesift_start import start
from pipeline.jobs.backends.hosts.remote import CONNECTION_BROKE

REMOTE = "pipeline.jobs.backends.hosts.remote"
_BEAT_S = 2.0
"""Time between two signs of life, where the silence that ends a program is no shorter [s]."""
_LOST_S = 10.0
"""Longest time in which the far end ends its program once the connection is silent [s]."""

_OWN = frozenset({
    "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TMP", "TEMP", "SSH_CONNECTION", "SSH_CLIENT",
    "XDG_RUNTIME_DIR", "SLURM_CONF",
})  # fmt: skip
"""Variables that each machine has of its own."""


def ssh_command(host: str, python: str, ssh_config: str, silence_s: float) -> list[str]:
    """The command line that reaches a machine's far end."""
    config = ["-F", ssh_config] if ssh_config else []
    options = {
        "BatchMode": "yes",
        "ConnectTimeout": "15",
        "ServerAliveInterval": str(max(1, round(silence_s / 3))),
        "ServerAliveCountMax": "3",
        "ForwardAgent": "no",
        "ClearAllForwardings": "yes",
    }
    flags = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    return ["ssh", "-T", *config, *flags, host, shlex.join((python, *start(REMOTE)))]


def main(arguments: Sequence[str]) -> int:
    """Run the program there; its exit status, or 255 where the connection broke."""
    placement = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    host, rest = arguments[1], arguments[2:]
    options = rest[: rest.index("--")]
    program = rest[len(options) + 1 :]
    variables = {name: value for name, value in os.environ.items() if name not in _OWN}
    variables |= {name: value for name, _, value in (each.partition("=") for each in options)}
    order = {
        "program": list(program),
        "variables": variables,
        "folder": placement["folder"],
        "silence_s": placement["silence_s"],
        "checkpoint_s": placement["checkpoint_s"],
    }
    command = ssh_command(
        host, placement["python"], placement["ssh_config"], placement["silence_s"]
    )
    # A session of its own: what ends this process's group must not break the connection first.
    ssh = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    return _followed(ssh, order, host, placement["silence_s"])


def _followed(
    ssh: "subprocess.Popen[bytes]", order: dict[str, Any], host: str, silence_s: float
) -> int:
    ends = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: ends.set())
    far = cast("IO[bytes]", ssh.stdin)
    is_told = False
    line = json.dumps(order).encode() + b"\n"
    while ssh.poll() is None:
        with suppress(BrokenPipeError):
            far.write(line)
            far.flush()
        line = b"\n"
        until_s = time.monotonic() + min(_BEAT_S, silence_s / 3)
        while ssh.poll() is None and time.monotonic() < until_s:
            if ends.is_set() and not is_told:
                is_told, line = True, b"end\n"
                break
            time.sleep(0.05)
    if ssh.returncode in (CONNECTION_BROKE, -signal.SIGKILL, -signal.SIGTERM):
        time.sleep(silence_s + _LOST_S)  # a next attempt must not meet this one's program
        sys.stderr.write(
            f"error: machine {host}: it cannot be reached, or the connection broke; see above\n"
        )
        return CONNECTION_BROKE
    return ssh.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
