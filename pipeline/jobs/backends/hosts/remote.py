"""The far end of a connection: runs one program on this machine for as long as the near end lives.

    ssh HOST PYTHON -P -m pipeline.jobs.backends.hosts.remote

Program, variables and folder come on standard input as one line of JSON, so that no shell reads
them. Further lines are signs of life; "end", the end of the connection, and silence end the
program, "end" with time to keep what it has.
"""

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from catalog.storage.to_disk import living_tree_to_disk

_POLL_S = 0.1
_LOST_S = 5.0
"""Time that a program has to end after the connection is lost, before another attempt may begin
[s]."""
CONNECTION_BROKE = 255
"""ssh's own exit status; a program that ends with it is told as 254."""
STEP = "FRAMESIFT_STEP_"
"""Prefix of variables that tell a rank its place, as SLURM_ is on Slurm (training.slurm_ranks)."""


def main() -> int:
    """Run the program; its exit status."""
    line = sys.stdin.buffer.readline()
    if not line:
        return 1
    order: dict[str, Any] = json.loads(line)
    variables = {**os.environ, **order["variables"]}
    # Ranks over several machines meet at the address by which this one was reached.
    address = os.environ.get("SSH_CONNECTION", "").split(" ")
    if len(address) == 4 and f"{STEP}PROCID" in variables:
        variables[f"{STEP}LAUNCH_NODE_IPADDR"] = address[2]
    try:
        program = subprocess.Popen(
            order["program"],
            cwd=order["folder"],
            env=variables,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        sys.stderr.write(f"error: {error.filename or order['program'][0]}: {error.strerror}\n")
        return 127
    code = _followed(program, order["silence_s"], order["checkpoint_s"])
    with suppress(OSError):  # what the program says has ended survives a power cut here
        living_tree_to_disk(Path(order["folder"]))
    return min(code, CONNECTION_BROKE - 1) if code >= 0 else 128 - code


def _followed(program: "subprocess.Popen[bytes]", silence_s: float, checkpoint_s: float) -> int:
    """The program's exit status, once it has ended by itself or was ended."""
    os.set_blocking(sys.stdin.fileno(), False)
    selector = selectors.DefaultSelector()
    selector.register(sys.stdin, selectors.EVENT_READ)
    heard_s, deadline_s, is_open = time.monotonic(), None, True
    while program.poll() is None:
        received = b""
        if not is_open:
            time.sleep(_POLL_S)
        elif selector.select(_POLL_S):
            received = os.read(sys.stdin.fileno(), 4096)
            heard_s, is_open = time.monotonic(), bool(received)
        now_s = time.monotonic()
        if deadline_s is None and b"end" in received:
            deadline_s = now_s + checkpoint_s
            _send(program, signal.SIGTERM)
        elif not is_open or now_s - heard_s > silence_s:
            if deadline_s is None:
                _send(program, signal.SIGTERM)
            deadline_s = min(deadline_s or now_s + _LOST_S, now_s + _LOST_S)
        if deadline_s is not None and now_s > deadline_s:
            break
    _send_all(program)
    return program.wait()


def _send(program: "subprocess.Popen[bytes]", number: int) -> None:
    with suppress(ProcessLookupError):
        program.send_signal(number)


def _send_all(program: "subprocess.Popen[bytes]") -> None:
    """Kill what the program left, and itself where it still runs."""
    with suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
