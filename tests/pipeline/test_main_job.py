"""The main job through the command line, with TensorFlow and Horovod."""

import json
import os
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from catalog.records.jobs import recorded_job
from pipeline.jobs.backends.process import ProcessId
from pipeline.manifest import Manifest
from tests.api.servers import framesift
from tests.pipeline.homes import SAMPLE, open_home
from tests.training.drawn_home import TINY_JOB, ask

SCENES = 3


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a staged dataset of three scenes' frames."""
    base = tmp_path_factory.mktemp("main-job")
    below = base / "source" / "camera_lidar_semantic"
    below.mkdir(parents=True)
    shutil.copy(SAMPLE / "camera_lidar_semantic" / "class_list.json", below)
    for scene in sorted(p for p in (SAMPLE / "camera_lidar_semantic").iterdir() if p.is_dir())[
        :SCENES
    ]:
        shutil.copytree(scene, below / scene.name)
    home = base / "home"
    for command in (
        ["source", "add", "a2d2", str(base / "source"), "--platform", "IBM COS"],
        ["ingest", "a2d2"],
        ["dataset", "create", "few", "--split", "train=0.6,validation=0.4"],
        ["stage", "few", "--cache", str(base / "cache")],
    ):
        run = framesift(home, *command)
        assert run.returncode == 0, run.stderr
    return home


@pytest.mark.training
def test_from_source_to_report(home: Path) -> None:
    """Two Horovod workers, two shards, and a report that accounts for every labelled pixel."""
    size = ["--height", "64", "--width", "96"]
    trained = ask(
        home, "train", "few", "--workers", "2", "--max-steps", "3", "--batch-size", "2",
        "--name", "t", "--prepare", *size,
    )  # fmt: skip
    job = ask(home, "jobs", "show", "t")
    assert job == trained
    assert (job["state"], job["error"], job["kind"]) == ("done", "", "train")
    assert job["metrics"]["step"] == 3
    assert job["metrics"]["first_loss"] > 0
    assert job["metrics"]["loss"] > 0
    assert (Path(job["paths"]["model_dir"]) / "model.json").is_file()
    assert "cache" in job["paths"]["manifest"]
    logs = framesift(home, "jobs", "logs", "t").stdout
    assert "prepare-0.log" in logs
    assert "reading frames from the prepared form" in logs

    validated = ask(home, "validate", "t", "few", "--workers", "2", "--name", "v")
    assert (validated["state"], validated["error"]) == ("done", "")
    report = json.loads(Path(validated["paths"]["report"]).read_text())
    for path in ("report", "page", "confusion_matrix"):
        assert Path(validated["paths"][path]).is_file()
    validation = Manifest.read(Path(validated["paths"]["manifest"])).split("validation")
    matrix = np.array(report["confusion_matrix"])
    classes = list(report["classes"])
    assert classes == list(validation.header.classes)
    assert matrix.shape == (len(classes), len(classes))
    truth = np.array(validation.frames["class_pixels"].to_pylist()).sum(axis=0)
    assert matrix.sum(axis=1).tolist() == truth.tolist()  # rows are the truth
    pixels = sum(int(np.prod(Image.open(str(path)).size)) for path in validation.label_paths())
    assert int(matrix.sum()) + report.get("ignored_pixels", 0) == pixels
    assert report["frames"] == len(validation)
    assert 0 <= report["miou"] <= 1
    assert report["per_class"]
    logs = framesift(home, "jobs", "logs", "v").stdout
    assert all(f"==> {name}.log <==" in logs for name in ("merge-0", "validate-0", "validate-1"))
    assert "reading images from the prepared form" in logs


@pytest.mark.training
@pytest.mark.parametrize("how", ["cancel", "kill"])
def test_an_ended_training_leaves_no_worker(home: Path, how: str) -> None:
    """Cancelled, or its runner killed: Horovod's launcher and every worker are gone."""
    name = f"ended-{how}"
    ask(home, "train", "few", "--workers", "2", "--max-steps", "100000", "--batch-size", "2",
        "--name", name, "--attempts", "1", "--detach", *TINY_JOB)  # fmt: skip
    deadline = time.monotonic() + 600
    while not ask(home, "jobs", "show", name)["metrics"].get("step"):
        assert time.monotonic() < deadline, framesift(home, "jobs", "logs", name).stdout
        time.sleep(0.5)
    workers = _processes_of(home / "jobs" / name)
    assert len(workers) >= 3
    if how == "cancel":
        assert framesift(home, "jobs", "cancel", name).returncode == 0
    else:
        os.kill(
            ProcessId.parse(recorded_job(open_home(home).records, name).handle).pid, signal.SIGKILL
        )
    deadline = time.monotonic() + 300
    while _processes_of(home / "jobs" / name):
        assert time.monotonic() < deadline, _processes_of(home / "jobs" / name)
        time.sleep(0.2)
    state = ask(home, "jobs", "show", name)["state"]
    assert state == ("cancelled" if how == "cancel" else "failed")
    if how == "cancel":
        _goes_on(home, name)


def _goes_on(home: Path, name: str) -> None:
    """Both workers had time for a checkpoint, which the next attempt begins with."""
    log = home / "jobs" / name / "logs" / "train-0.log"
    assert "its checkpoint is kept" in log.read_text()
    assert ask(home, "jobs", "resume", name, "--detach")["attempt"] == 2
    deadline = time.monotonic() + 600
    while "going on from the checkpoint of step" not in log.read_text():
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.5)
    assert framesift(home, "jobs", "cancel", name).returncode == 0
    assert framesift(home, "jobs", "wait", name).returncode == 1


def _processes_of(folder: Path) -> list[str]:
    """Command lines that name a job's folder."""
    pids = []
    for entry in Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
        except OSError:
            continue
        if str(folder).encode() in line:
            pids.append(line.replace(b"\0", b" ").decode(errors="replace"))
    return pids
