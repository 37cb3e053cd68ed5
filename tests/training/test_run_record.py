"""run.json: it says that a run has ended once all that the run wrote is on the disk."""

import json
import os
from pathlib import Path

import pytest

from training.run.run_record import RECORD_FILE, _environment, finish_record


def test_a_run_has_ended_when_all_of_it_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines of metrics, which nothing else waits for, and files in folders, before the record."""
    (tmp_path / "tensorboard" / "train").mkdir(parents=True)
    files = ("metrics.jsonl", "metrics.jsonl.old", "mlperf.log", "tensorboard/train/events")
    for name in files:
        (tmp_path / name).write_text("{}\n")
    (tmp_path / "metrics.json").write_text("{}")
    synced: list[str] = []
    fsync = os.fsync

    def watched(handle: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{handle}").readlink().relative_to(tmp_path)))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", watched)
    finish_record(tmp_path, "5d41")
    record = next(name for name in synced if name.startswith(f"{RECORD_FILE}."))
    assert {*files, "tensorboard", "tensorboard/train"} <= {*synced[: synced.index(record)]}
    assert json.loads((tmp_path / RECORD_FILE).read_text())["sha256"] == "5d41"


def test_variables_that_decide_how_a_run_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of accelerators and of exchange; no secret, and nothing else of the machine."""
    monkeypatch.setattr(os, "environ", {})
    shown = {"NCCL_IB_DISABLE": "1", "OMP_NUM_THREADS": "2", "TF_X": "3", "SLURM_JOB_ID": "4"}
    others = {"PATH": "/bin", "HOME": "/root", "NCCL_API_KEY": "s", "NCCLX": "5", "SLURM_CONF": "6"}
    os.environ.update(shown | others)
    assert _environment(())["variables"] == shown
