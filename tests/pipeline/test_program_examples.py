"""docs/examples, each by the command line that its page names, typed beside it."""

import json
import os
import re
import shlex
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from pipeline.manifest import Manifest
from pipeline.staging.stage import stage_dataset
from tests.api.servers import environment, framesift
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


@pytest.mark.training
def test_the_evaluation_example(catalogued: Path, tmp_path: Path) -> None:
    """A trained model's predictions, by two ranks, are a report with calibration and cells."""
    packages = packages_with("torch", tmp_path)
    home, manifest = city(catalogued, tmp_path, staged=True)
    training = command_of("train_pytorch.py")
    status, printed, _ = typed(home, tmp_path, training, PYTHONPATH=packages)
    assert status == 0, printed
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
@pytest.mark.parametrize(
    ("example", "module", "made"),
    [("train_tf_data.py", "tensorflow", "weights.npz"), ("train_pytorch.py", "torch", "model.pt")],
)
def test_the_training_examples(
    catalogued: Path, tmp_path: Path, example: str, module: str, made: str
) -> None:
    """Each ends with weights and a loss, which the command and `jobs wait` show."""
    packages = packages_with(module, tmp_path)
    home, _ = city(catalogued, tmp_path, staged=True)
    status, printed, job = typed(home, tmp_path, command_of(example), PYTHONPATH=packages)
    assert (status, job["state"]) == (0, "done"), printed
    assert 0 < job["metrics"]["loss"] < 10
    assert "Traceback" not in printed
    assert re.search(rf"loss +{job['metrics']['loss']:.4g}", printed)
    assert Path(job["paths"]["output"], made).stat().st_size > 0
    waited = framesift(home, "jobs", "wait", "example")
    assert (waited.returncode, waited.stderr) == (0, "")
