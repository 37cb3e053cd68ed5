"""Checks the limit of this process's address space: DuckDB aborts where it is too small."""

import os
import resource
from functools import cache
from pathlib import Path

from catalog.errors import StorageError

_NEEDED_MB = 1024
_NEEDED_BY_A_THREAD_MB = 150
"""Its stack and its part of malloc's heap. Two threads took 1,028 MB in all; with 900 left, and 600
in one run of two, the process was aborted ("terminate called without an active exception")."""


@cache
def check_address_space(threads: int) -> None:
    """Return where there is room for DuckDB's threads; looked at once.

    Raises:
        StorageError: The process is limited to less (ulimit -v, RLIMIT_AS).
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    taken_mb = pages * os.sysconf("SC_PAGE_SIZE") >> 20
    needed_mb = taken_mb + _NEEDED_MB + threads * _NEEDED_BY_A_THREAD_MB
    if limit >> 20 < needed_mb:
        raise StorageError(
            f"this process may take {limit >> 20:,} MB of address space, and the catalog needs "
            f"{needed_mb:,} MB with {threads} threads (most of it is never used): raise the limit, "
            "ulimit -v or RLIMIT_AS, or limit memory by cgroups instead"
        )
