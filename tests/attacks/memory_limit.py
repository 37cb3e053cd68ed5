"""A limit on the memory of processes that run: by the kernel's memory controller where it can be.

That limits what a process touches from now on. Where no group can be made (no root, a container)
RLIMIT_AS limits its addresses: what they are now, and so much more.
"""

import contextlib
import os
import re
import resource
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.api.servers import wait_until


@contextlib.contextmanager
def memory_limited(pids: Sequence[int], limit_mb: int) -> Iterator[str]:
    """Let the processes and their later children have so many MB more; yields what limits them."""
    for parent, limit in _parents():
        group = parent / f"framesift-attacks-{os.getpid()}-{pids[0]}"
        with contextlib.suppress(OSError):
            group.mkdir()
            try:
                (group / limit).write_text(str(limit_mb << 20))
                for pid in pids:
                    (group / "cgroup.procs").write_text(str(pid))
                yield f"{limit_mb} MB by {limit}"
                return
            finally:
                _remove(group, parent)
    for pid in pids:
        match = re.search(r"VmSize:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
        assert match
        most = (int(match[1]) << 10) + (limit_mb << 20)
        resource.prlimit(pid, resource.RLIMIT_AS, (most, most))
    yield f"{limit_mb} MB by RLIMIT_AS"


def _parents() -> Iterator[tuple[Path, str]]:
    """Groups that this process may make one in, and the file of their limit: v2's first."""
    root = Path("/sys/fs/cgroup")
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            number, controllers, path = line.split(":", 2)
            own = root / path.lstrip("/")
            if number == "0":
                yield own, "memory.max"
                yield own.parent, "memory.max"  # a group with processes has no limited child
            elif "memory" in controllers.split(","):
                yield root / "memory" / path.lstrip("/"), "memory.limit_in_bytes"


def _remove(group: Path, parent: Path) -> None:
    """Remove the group once its processes are gone; any that remain go back to the parent."""
    with contextlib.suppress(OSError):
        for pid in (group / "cgroup.procs").read_text().split():
            with contextlib.suppress(OSError):
                (parent / "cgroup.procs").write_text(pid)
    wait_until(lambda: _removed(group), 60)


def _removed(group: Path) -> bool:
    with contextlib.suppress(OSError):
        group.rmdir()
    return not group.exists()
