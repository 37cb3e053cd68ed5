"""Scans counted by a real Slurm: Dask workers as its jobs, and a plain job array."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import dask
import pytest

from ingest.engines.choice import EngineChoice, open_engine
from ingest.scan.array_scan import collect_units, write_units
from ingest.scan.scan import ScanOptions
from ingest.scan.scan_counts import ScanCounts
from tests.ingest.scene_folders import Home, make_tree
from tests.ingest.test_killed_scan import state
from tests.slurm_cluster import slurm_cluster

pytestmark = pytest.mark.slurm
REPOSITORY = Path(__file__).parent.parent.parent
FRAMES = 60


@pytest.fixture(scope="module")
def slurm() -> Iterator[None]:
    """A Slurm of two nodes, which this process's commands find."""
    with slurm_cluster(nodes=2, cpus=2) as config, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", str(config))
        yield


@pytest.fixture
def reference(empty_home: Path, tmp_path: Path) -> list[object]:
    """What a scan in threads makes of the tree."""
    (tmp_path / "reference").mkdir()
    home = Home.at(tmp_path / "reference")
    home.scan(home.add(make_tree(tmp_path / "tree", FRAMES)))
    return state(home)


def jobs(*options: str) -> list[str]:
    """Lines of squeue."""
    done = subprocess.run(
        ["squeue", "-h", *options], check=True, capture_output=True, text=True, env=os.environ
    )
    return done.stdout.split()


def test_dask_workers_that_are_slurm_jobs(
    slurm: None, home: Home, tmp_path: Path, reference: list[object]
) -> None:
    """Two jobs count, one of them is cancelled in the middle; the rows are a local scan's."""
    source = home.add(tmp_path / "tree")
    choice = EngineChoice("dask", workers=2, cluster="slurm", unit_frames=1)
    config = {
        "jobqueue.slurm.memory": "1 GiB",
        # The test's nodes have no memory that Slurm knows of.
        "jobqueue.slurm.job-directives-skip": ["--mem"],
        "jobqueue.slurm.interface": "lo",
        "jobqueue.slurm.local-directory": str(tmp_path),
        "jobqueue.slurm.log-directory": str(tmp_path),
    }
    cancelled: list[str] = []

    def cancel(counts: ScanCounts) -> None:
        if counts.frames >= 5 and not cancelled:
            cancelled.extend(jobs("-t", "R", "-o", "%i")[:1])
            subprocess.run(["scancel", *cancelled], check=True)

    with dask.config.set(config), open_engine(choice) as engine:
        result = home.scan(source, engine=engine, progress=cancel)
    assert result.counts.frames == FRAMES
    assert len(cancelled) == 1
    assert state(home) == reference
    deadline = time.monotonic() + 300
    while jobs() and time.monotonic() < deadline:
        time.sleep(0.2)
    assert jobs() == []  # the workers' jobs ended with the engine


def test_a_job_array(slurm: None, home: Home, tmp_path: Path, reference: list[object]) -> None:
    """A job array counts the units of a folder; collected, the rows are a local scan's."""
    source = home.add(tmp_path / "tree")
    folder = tmp_path / "units"
    units = write_units(
        home.store, home.records, source, ScanOptions(), folder, unit_frames=FRAMES // 4
    )
    command = f"{sys.executable} -m ingest.scan.unit_files {folder} $SLURM_ARRAY_TASK_ID"
    subprocess.run(
        ["sbatch", "--wait", f"--array=1-{units}", f"--chdir={REPOSITORY}",
         f"--output={tmp_path}/element-%a.log", "--wrap", command],
        check=True, capture_output=True,
    )  # fmt: skip
    result = collect_units(home.store, home.records, source, ScanOptions(), folder)
    assert result.counts.frames == FRAMES
    assert state(home) == reference
