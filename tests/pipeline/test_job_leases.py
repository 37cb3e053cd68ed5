"""What a running job reads from a cache stays there: real runners on real caches."""

import os
import signal
from pathlib import Path

import pytest

from catalog.errors import CacheFull
from pipeline.cache.beat import Watch
from pipeline.cache.lease import Holder, held_leases, leased
from pipeline.cache.limits import Limits, write_limits
from pipeline.cache.reservation import Reservation
from pipeline.jobs.backends.local import LocalBackend
from pipeline.jobs.backends.process import ProcessId
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.request import JobPaths, JobRequest, Stage, read_json
from tests.pipeline.cached import BYTES, stage, staged_names
from tests.pipeline.test_local_jobs import ended, eventually, shell

pytestmark = pytest.mark.wide

LOCAL = LocalBackend()


def submit(folder: Path, manifest: Path, script: str) -> str:
    """Start a job of ada's that reads a manifest; its handle."""
    folder.mkdir(parents=True)
    stages = (Stage("train", (shell(script),)),)
    reads = {str(manifest): "streets@1"}
    request = JobRequest("train-1", "train", stages, reads=reads, owner="ada")
    return LOCAL.submit(request, JobPaths(folder), JobQueue(folder), "name")


def test_a_job_holds_what_it_reads_from_its_turn_to_its_end(tmp_path: Path) -> None:
    """Meanwhile a staging that needs the room is refused, and told the job's name."""
    cache, folder = tmp_path / "cache", tmp_path / "job"
    manifest = stage(cache, "streets", ["1.png", "2.png"])
    write_limits(cache, Limits(hard_bytes=2 * BYTES))
    handle = submit(
        folder, manifest, f"touch {folder}/began; until [ -e {folder}/go ]; do sleep 0.05; done"
    )
    eventually((folder / "began").exists)
    with leased(cache, "new-v1-0", Holder("new@1")) as lease:
        with pytest.raises(CacheFull, match="streets@1, used by job train-1 of ada"):
            Reservation(cache, lease).extend(BYTES, 1)
        (folder / "go").touch()
        assert ended(handle, folder).state == "done"
        Reservation(cache, lease).extend(BYTES, 1)
    assert staged_names(cache) == set()


def test_a_killed_runner_holds_nothing(tmp_path: Path) -> None:
    """SIGKILL: the lease is void at once on its host, and its folder goes."""
    cache, folder = tmp_path / "cache", tmp_path / "job"
    manifest = stage(cache, "streets", ["1.png"])
    handle = submit(folder, manifest, f"touch {folder}/began; sleep 600")
    eventually((folder / "began").exists)
    assert [lease.holder.job for lease in held_leases(cache, Watch())] == ["train-1"]
    runner = ProcessId.parse(read_json(JobPaths(folder).status)["runner"])
    os.kill(runner.pid, signal.SIGKILL)
    assert ended(handle, folder).state == "failed"
    assert held_leases(cache, Watch()) == []
    assert list((cache / ".leases").glob("[!.]*")) == []


def test_a_job_whose_dataset_was_evicted_while_it_waited(tmp_path: Path) -> None:
    """It fails before it runs anything, and says what to do."""
    status = ended(
        submit(tmp_path / "job", tmp_path / "cache" / ".manifests" / "gone-v1-0", "touch ran"),
        tmp_path / "job",
    )
    assert status.state == "failed"
    assert (
        "was evicted from the cache before the job began: stage the dataset again" in status.error
    )
    assert not (tmp_path / "job" / "ran").exists()


def test_a_manifest_outside_a_cache_needs_no_lease(tmp_path: Path) -> None:
    """A dataset's own manifest lies in the home, which nobody evicts."""
    folder = tmp_path / "job"
    status = ended(submit(folder, tmp_path / "datasets" / "streets" / "v1", "true"), folder)
    assert (status.state, status.error) == ("done", "")
