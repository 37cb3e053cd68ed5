"""docs/examples, each by the command line that its page names, typed beside it."""

import json
import os
import re
import shlex
import shutil
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from pipeline.jobs.program.scalars import scalars_of
from pipeline.manifest import Manifest
from pipeline.staging.stage import stage_dataset
from tests.api.servers import environment, framesift, wait_until
from tests.pipeline.homes import REPOSITORY, copy_home, open_home
from tests.pipeline.test_datasets import make
from tests.zygote import Forked

EXAMPLES = REPOSITORY / "docs" / "examples"

DEBIAN = Path("/usr/lib/python3/dist-packages")
"""Packages of Debian's Python 3.11, of which PyTorch comes without the 3 GB of CUDA's libraries."""


def command_of(page: str) -> list[str]:
    """The arguments of the `framesift run` that a file of docs/examples names."""
    text = re.sub(r"(?m)^# ?", "", (EXAMPLES / page).read_text(encoding="utf-8"))
    match = re.search(r"(?m)^ *framesift (run (?:.*\\\n)*.*)$", text)
    assert match, page
    return shlex.split(match[1].replace("\\\n", " "))


def typed(
    home: Path, folder: Path, arguments: list[str], **variables: str
) -> tuple[int, str, dict[str, Any]]:
    """A command line in a copy of docs/examples: its status, what it printed, and its job."""
    here = folder / "examples"
    shutil.copytree(EXAMPLES, here, dirs_exist_ok=True)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    process = Forked(
        [*arguments, "--name", "example"], environment(home, {"PATH": path} | variables),
        cwd=here, stdout=-1, stderr=-1,
    )  # fmt: skip
    out, err = process.communicate(timeout=600)
    job: dict[str, Any] = json.loads(framesift(home, "jobs", "show", "example", "--json").stdout)
    return process.returncode, out + err, job


def city(catalogued: Path, folder: Path, *, staged: bool) -> tuple[Path, Manifest]:
    """A home with the dataset that the examples name."""
    home = copy_home(catalogued, folder)
    workspace = open_home(home)
    dataset = make(workspace, "city", split="train=0.75,validation=0.25")
    if staged:
        stage_dataset(workspace.records, dataset, workspace.cache)
    workspace.close()
    return home, Manifest.read(Path(dataset.manifest))


@pytest.mark.wide
def test_the_shell_example(catalogued: Path, tmp_path: Path) -> None:
    """Two ranks tell the bytes of every file between them."""
    home, manifest = city(catalogued, tmp_path, staged=False)
    status, printed, job = typed(home, tmp_path, command_of("sizes_of_frames.sh"))
    assert status == 0, printed
    output = Path(job["paths"]["output"])
    lines = [line for rank in range(2) for line in (output / f"sizes-{rank}.tsv").open()]
    sizes = {line.split("\t")[0]: [int(n) for n in line.split("\t")[1].split()] for line in lines}
    pairs = zip(manifest.images(), manifest.labels(), strict=True)
    assert sizes == {
        image.path: [image.size] if label is None else [image.size, label.size]
        for image, label in pairs
    }


def test_pages_name_the_same_command() -> None:
    """The README's is that of the example that it shows."""
    assert command_of("README.md") == command_of("train_pytorch.py")


def packages_with(module: str, folder: Path) -> str:
    """PYTHONPATH by which a program finds a module; a test without it is skipped."""
    if find_spec(module) is not None:
        return ""
    if not (DEBIAN / module).is_dir():
        pytest.skip(f"{module} is not installed (Debian: python3-{module})")
    packages = folder / "packages"
    packages.mkdir()
    (packages / module).symlink_to(DEBIAN / module)
    return str(packages)


def check_training(home: Path, status: int, printed: str, job: dict[str, Any], made: str) -> None:
    """Check that a training ended with this file and a loss, which `jobs wait` shows."""
    assert (status, job["state"]) == (0, "done"), printed
    assert 0 < job["metrics"]["loss"] < 10
    curve = scalars_of(Path(job["paths"]["folder"])).curves["loss"]
    assert curve.steps == [*range(1, job["metrics"]["step"] + 1)]
    assert curve.values[-1] == job["metrics"]["loss"]
    assert job["metrics"]["checkpoints"][-1]["step"] == job["metrics"]["step"]
    assert "warnings" not in job["metrics"]
    assert "Traceback" not in printed
    assert re.search(rf"loss +{job['metrics']['loss']:.4g}", printed)
    assert Path(job["paths"]["output"], made).stat().st_size > 0
    waited = framesift(home, "jobs", "wait", "example")
    assert (waited.returncode, waited.stderr) == (0, "")


@pytest.mark.training
def test_the_examples_of_pytorch(catalogued: Path, tmp_path: Path) -> None:
    """One trains, and its model's predictions, by two ranks, are a report with calibration."""
    packages = packages_with("torch", tmp_path)
    home, manifest = city(catalogued, tmp_path, staged=True)
    training = command_of("train_pytorch.py")
    status, printed, job = typed(home, tmp_path, training, PYTHONPATH=packages)
    check_training(home, status, printed, job, "model.pt")
    shutil.copy(home / "jobs" / "example" / "output" / "model.pt", tmp_path / "examples")
    assert framesift(home, "jobs", "remove", "example").returncode == 0
    status, printed, job = typed(
        home, tmp_path, command_of("evaluate_pytorch.py"), PYTHONPATH=packages
    )
    assert (status, job["state"]) == (0, "done"), printed
    command = ["validate", "city", "--scores", "example", "--model-name", "conv-1", "--json"]
    run = framesift(home, *command)
    assert run.returncode == 0, run.stderr
    validation = json.loads(run.stdout)
    report = json.loads(Path(validation["paths"]["report"]).read_text())
    frames = len(manifest.split("validation"))
    assert report["frames"] == report["lineage"]["predictions"]["with_confidence"] == frames > 1
    assert 0 < report["miou"] < 1
    assert 0 < report["calibration"]["ece"] < 1
    assert 0 < report["uncertainty"] < 1


@pytest.mark.training
def test_the_training_example_of_tensorflow(catalogued: Path, tmp_path: Path) -> None:
    """It ends with weights and a loss, which the command and `jobs wait` show."""
    packages = packages_with("tensorflow", tmp_path)
    home, _ = city(catalogued, tmp_path, staged=True)
    arguments = command_of("train_tf_data.py")
    status, printed, job = typed(home, tmp_path, arguments, PYTHONPATH=packages)
    check_training(home, status, printed, job, "weights.npz")


@pytest.mark.training
@pytest.mark.parametrize("example", ["train_tf_data.py", "train_pytorch.py"])
def test_a_killed_training_example_goes_on(catalogued: Path, tmp_path: Path, example: str) -> None:
    """From its checkpoint: the curve has each step once, and the second attempt the later ones."""
    packages = packages_with({"train_pytorch.py": "torch"}.get(example, "tensorflow"), tmp_path)
    home, _ = city(catalogued, tmp_path, staged=True)
    arguments = command_of(example)
    arguments[-1] += " --epochs 20"
    output = home / "jobs" / "example" / "output"
    killed: list[int] = []

    def kill() -> None:
        wait_until(lambda: (output / "checkpoints.json").exists())
        for status in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                words = status.read_bytes().split(b"\0")
                if example.encode() in words and str(output).encode() in words:
                    os.kill(int(status.parent.name), signal.SIGKILL)
                    killed.append(int(status.parent.name))

    with ThreadPoolExecutor(1) as threads:
        killing = threads.submit(kill)
        status, printed, job = typed(home, tmp_path, arguments, PYTHONPATH=packages)
        killing.result()
    assert (status, job["state"], killed != []) == (1, "failed", True), printed
    kept = job["metrics"]["checkpoints"][-1]["step"]
    lines = (output / "metrics.jsonl").read_text().splitlines()
    assert kept <= json.loads(lines[-1])["step"]
    resumed = framesift(home, "jobs", "resume", "example")
    assert resumed.returncode == 0, resumed.stderr
    waited = framesift(home, "jobs", "wait", "example", "--json")
    assert waited.returncode == 0, waited.stderr
    metrics = json.loads(waited.stdout)["metrics"]
    again = (output / "metrics.jsonl").read_text().splitlines()[len(lines) :]
    assert json.loads(again[0])["step"] == kept + 1
    curve = scalars_of(home / "jobs" / "example").curves["loss"]
    assert curve.steps == [*range(1, metrics["step"] + 1)]
    assert curve.values[kept:] == [json.loads(line)["value"] for line in again]
    assert metrics["checkpoints"][-1]["step"] == metrics["step"] > kept
