"""A real Slurm for tests: started in a folder of its own, with nodes that are this machine."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.ingest.s3_server import free_port

UP = Path(__file__).parent / "slurm_up.sh"


@contextmanager
def slurm_cluster(nodes: int = 2, cpus: int = 2) -> Iterator[Path]:
    """A running Slurm for the block; its slurm.conf, for SLURM_CONF."""
    if shutil.which("slurmctld", path=f"{os.environ['PATH']}:/usr/sbin") is None:
        pytest.skip("no Slurm here: apt-get install slurm-wlm munge slurm-wlm-basic-plugins")
    # Not pytest's folder, which is closed to munge's user.
    folder = Path(tempfile.mkdtemp(prefix="framesift-slurm-"))
    folder.chmod(0o755)
    try:
        subprocess.run(
            [str(UP), str(folder), str(nodes), str(cpus), str(free_port(nodes))], check=True
        )
        yield folder / "slurm.conf"
    finally:
        for file in [*folder.glob("run/*.pid"), folder / "munge" / "munged.pid"]:
            with suppress(OSError, ValueError):
                os.kill(int(file.read_text()), signal.SIGTERM)
        shutil.rmtree(folder, ignore_errors=True)
