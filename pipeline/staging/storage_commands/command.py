"""Runs a storage system's command, through whatever leads to it, such as ssh."""

import subprocess
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from catalog.errors import InvalidInput, StorageError

_LAST_LINES = 20
_ENDED_S = 10.0
_EXAMINE = "Examine previous error messages"
"""Part of the last line of IBM's commands that fail; the line before it has the cause."""


@contextmanager
def running(argv: Sequence[str], setting: str, advice: str = "") -> Iterator[Iterator[str]]:
    """The lines that a command prints, as they come; it is ended with the block.

    Args:
        setting: The variable that names the program, for messages.
        advice: What to do where it fails, for the message.

    Raises:
        InvalidInput: It is not there; the message names the setting.
        StorageError: It fails: the last line that it printed says why.
    """
    try:
        process = subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
    except OSError as error:
        raise InvalidInput(
            f"{argv[0]}: {error.strerror}: expected the program, or what leads to it (ssh "
            f"root@node PROGRAM), in {setting}"
        ) from error
    last: deque[str] = deque(maxlen=_LAST_LINES)

    def lines() -> Iterator[str]:
        assert process.stdout is not None
        for line in process.stdout:
            last.append(line.rstrip("\n"))
            yield last[-1]

    with process:
        try:
            yield lines()
            code = process.wait()
        except BaseException:
            process.terminate()
            try:
                process.wait(_ENDED_S)
            except subprocess.TimeoutExpired:
                process.kill()
            raise
    if code:
        command_line = " ".join(argv)
        messages = [line.strip() for line in last if line.strip() and _EXAMINE not in line]
        reason = messages[-1] if messages else "no message"
        then = f"; {advice}" if advice else ""
        raise StorageError(
            f"{command_line}: ended with exit code {code}: {reason}{then}", command_line
        )
