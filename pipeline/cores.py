"""Number of threads that a process of this package computes with."""

import math
import os
from pathlib import Path

_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def threads_of_process(threads: int, processes: int) -> int:
    """Threads for one process.

    Args:
        threads: As the flag says; 0 for this process's share of the cores.
        processes: That share this machine.
    """
    return threads or max(1, cores() // processes)


def cores(quota: Path = _QUOTA) -> int:
    """Cores that this process may use: those it is bound to, within its container's quota.

    Source: kernel.org, cgroup-v2, cpu.max: "$MAX $PERIOD" [us], or "max".
    """
    bound = len(os.sched_getaffinity(0))
    try:
        limit, period = quota.read_text(encoding="ascii").split()
        return min(bound, max(1, math.ceil(int(limit) / int(period))))
    except (OSError, ValueError):
        return bound
