"""What one rank finds of its machine, its programs and its limits, as JSON for the first rank."""

import os
import platform
import resource
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from training.preflight.infiniband import is_installed, ports
from training.preflight.topology import machine_gpus
from training.run.code_version import code_version

_PACKAGES = ("tensorflow", "tensorflow-cpu", "horovod", "torch", "numpy", "pyarrow")
SHARED_MEMORY = "/dev/shm"  # noqa: S108 (not a file of ours: its size is told)


def about_rank(rank: int, local_rank: int, further_versions: Mapping[str, str]) -> dict[str, Any]:
    """The rank's machine; GPUs and ports are told by the first rank there alone.

    Args:
        rank: Its number among all.
        local_rank: Its number on its machine.
        further_versions: Those that only an imported library tells, by name.
    """
    is_first_here = local_rank == 0
    return {
        "rank": rank,
        "local_rank": local_rank,
        "node": socket.gethostname(),
        "address": own_address(),
        "pid": os.getpid(),
        "versions": _versions() | {name: text for name, text in further_versions.items() if text},
        "memlock_bytes": _limit(resource.RLIMIT_MEMLOCK),
        "open_files": _limit(resource.RLIMIT_NOFILE),
        "shm_bytes": _shared_memory_bytes(),
        "cores": len(os.sched_getaffinity(0)),
        "ports": [asdict(port) for port in ports()] if is_first_here else [],
        "has_ib_write_bw": is_installed(),
        **(machine_gpus() if is_first_here else {"gpus": [], "ways": [], "nearest_nics": {}}),
    }


def differences(ranks: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, list[int]]]:
    """Versions that differ between ranks: by program its versions, with the ranks that have each.

    A rank that lacks a program has the version "none" of it.

    Args:
        ranks: What `about_rank` gave of each.
    """
    names = sorted({name for rank in ranks for name in rank["versions"]})
    by_name: dict[str, dict[str, list[int]]] = {}
    for name in names:
        having: dict[str, list[int]] = {}
        for rank in ranks:
            having.setdefault(rank["versions"].get(name, "none"), []).append(rank["rank"])
        if len(having) > 1:
            by_name[name] = having
    return by_name


def own_address() -> str:
    """This machine's address towards the first rank's; towards the network where none is told."""
    first = os.environ.get("MASTER_ADDR") or os.environ.get("HOROVOD_GLOO_RENDEZVOUS_ADDR")
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((first or "192.0.2.1", 9))  # RFC 5737: an address of nobody; no packet
            return str(probe.getsockname()[0])
    except OSError:
        return ""


def _versions() -> dict[str, str]:
    installed = {name: _installed(name) for name in _PACKAGES}
    code = code_version()
    commit = str(code["commit"] or "")[:12]
    changed = " with changes" if code["modified"] else ""
    return {
        "framesift": f"{code['version'] or ''} {commit}{changed}".strip(),
        "python": platform.python_version(),
        "kernel": platform.release(),
        "libc": " ".join(platform.libc_ver()),
        "executable": sys.executable,
        **{name: text for name, text in installed.items() if text},
    }


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _limit(which: int) -> int | None:
    """A soft limit; None for no limit."""
    soft, _ = resource.getrlimit(which)
    return None if soft == resource.RLIM_INFINITY else soft


def _shared_memory_bytes() -> int:
    """The size of /dev/shm [bytes]; 0 where there is none."""
    if not Path(SHARED_MEMORY).is_dir():
        return 0
    stat = os.statvfs(SHARED_MEMORY)
    return stat.f_blocks * stat.f_frsize
