"""The share of the machine that this process may use."""

import os
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup/memory.max")


def memory_mb() -> int:
    """Memory of the machine, or of the container that this runs in [MB]."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        text = _CGROUP.read_text().strip()
    except OSError:  # no control groups of version 2
        return machine // 10**6
    return min(machine, int(text) if text.isdecimal() else machine) // 10**6
