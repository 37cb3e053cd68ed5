"""Where DuckDB puts what does not fit into memory: a folder per connection, closed to others.

DuckDB's own choice is .tmp in the current folder, which need not be writable, and whose files have
the same names in every process.
"""

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path
from uuid import uuid4


def new_spill_folder() -> str:
    """A folder that is not there yet: DuckDB makes it when needed, and removes it when closed."""
    return str(_of_process(os.getpid()) / uuid4().hex)


@cache
def _of_process(_pid: int) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="framesift-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
