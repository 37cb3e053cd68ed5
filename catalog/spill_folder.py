"""Where DuckDB puts what does not fit into memory: a folder per connection, closed to others.

DuckDB's own choice is .tmp in the current folder, which need not be writable, and whose files have
the same names in every process.
"""

import os
import tempfile
from functools import cache
from pathlib import Path
from uuid import uuid4


def new_spill_folder() -> str:
    """A folder that is not there yet: DuckDB makes it when needed, and removes it when closed."""
    return str(_of_user() / uuid4().hex)


@cache
def _of_user() -> Path:
    """The user's folder in the system's temporary one, which nobody else can look into."""
    folder = Path(tempfile.gettempdir(), f"framesift-{os.getuid()}")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return Path(tempfile.mkdtemp(prefix="framesift-"))
    if (found.st_uid, found.st_mode) == (os.getuid(), 0o40700):
        return folder
    return Path(tempfile.mkdtemp(prefix="framesift-"))  # somebody else took the name
