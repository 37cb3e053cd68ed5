"""Where DuckDB puts what does not fit into memory: a folder per connection, closed to others.

DuckDB's own choice is .tmp in the current folder, which need not be writable, and whose files have
the same names in every process. What a killed process spilled is cleared by the next one.
"""

import atexit
import os
import tempfile
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from uuid import uuid4

from catalog.storage.own_folder import own_folder


def new_spill_folder() -> str:
    """A folder that is not there yet: DuckDB makes it when needed, and removes it when closed."""
    return str(_of_process(os.getpid()) / uuid4().hex)


@cache
def _of_process(pid: int) -> Path:
    """This process's folder, gone at its end; one that is forked has one of its own."""
    open_folders = ExitStack()
    try:
        own = open_folders.enter_context(own_folder(user_folder() / "spilled"))
    except OSError:  # the disk is full, or none can be written: DuckDB says so when it spills
        return Path("/nonexistent")

    def end() -> None:
        if os.getpid() == pid:  # a forked process ends without its parent's folder
            open_folders.close()

    atexit.register(end)
    return own


def user_folder() -> Path:
    """The user's folder in the system's temporary one, which nobody else can look into."""
    folder = Path(tempfile.gettempdir(), f"framesift-{os.getuid()}")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return Path(tempfile.mkdtemp(prefix="framesift-"))
    if (status.st_uid, status.st_mode) == (os.getuid(), 0o40700):
        return folder
    return Path(tempfile.mkdtemp(prefix="framesift-"))  # somebody else took the name
