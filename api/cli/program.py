"""The program ``framesift``: a process that runs one command, and begins and ends quickly."""

import atexit
import gc
import os
import sys

_FEW_COLLECTIONS = (200_000, 20, 50)
"""Objects before Python looks for garbage. Imports make 60,000 to 140,000 that stay, and none is
garbage: to look through them once takes a thirtieth of a short command, and by Python's own numbers
a tenth goes into that."""

_ended: int | None = None
"""Exit status, once the command has ended as commands do."""


def run() -> None:
    """Run the command line, and end this process."""
    global _ended  # for what runs at its very end
    gc.set_threshold(*_FEW_COLLECTIONS)
    atexit.register(_leave)  # registered first, runs last
    # pydantic would read the metadata of every installed package, to find plugins of its own.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")
    from api.cli.main import main

    try:
        main()
        _ended = 0
    except SystemExit as stop:
        if stop.code is None or isinstance(stop.code, int):
            _ended = stop.code or 0
        raise


def _leave() -> None:
    """End without taking apart, object by object, what was imported: 0.1 s of a short command.

    Threads have ended and everything else that was registered has run.
    """
    if _ended is None:
        return  # with a traceback, as Python ends
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        return  # Python tells it, and ends with a status of its own
    os._exit(_ended)
