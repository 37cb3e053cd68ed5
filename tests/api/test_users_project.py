"""Framesift beside a user's project that has folders of the same names and is on PYTHONPATH."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from catalog.errors import InvalidInput
from framesift_start import OWN
from pipeline.runs.networks import check_network
from tests.pipeline.homes import FRAMES, copy_home

SCRIPT = Path(sys.executable).with_name("framesift")
STARTS = {
    "console script": (str(SCRIPT),),
    "module": (sys.executable, "-m", "framesift"),
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with modules of Framesift's names, and one of its own."""
    folder = tmp_path / "project"
    for name in ("query", "catalog", "training", "pipeline", "ingest"):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text("raise SystemExit('the project of the user')")
    (folder / "api.py").write_text("WHOSE = 'the user'\n")
    (folder / "my_nets.py").write_text("import api\nWHOSE = api.WHOSE\n")
    return folder


def run(start: str, project: Path, home: Path, *arguments: str) -> str:
    """The output of a command, started as users start it, in the project's folder."""
    more = {"FRAMESIFT_HOME": str(home), "PYTHONPATH": str(project)}
    done = subprocess.run(
        [*STARTS[start], *arguments],
        env={**os.environ, **more}, cwd=project, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("start", STARTS)
def test_a_command_finds_its_own_modules(start: str, project: Path, catalogued: Path) -> None:
    """By the console script, and by ``python -m`` in the project's own folder."""
    told = run(start, project, catalogued, "info", "--json")
    assert json.loads(told)["frames"] == FRAMES


@pytest.mark.wide
def test_every_process_of_a_job_finds_its_own_modules(
    project: Path, catalogued: Path, tmp_path: Path
) -> None:
    """Steps, runner, hand-over, ranks; the user's program in it finds the user's modules."""
    home = copy_home(catalogued, tmp_path)
    program = project / "program.py"
    program.write_text(
        "import pathlib, my_nets\n"
        "pathlib.Path('metrics.json').write_text('{\"ok\": 1}')\n"
        "print('modules of', my_nets.WHOSE)\n"
    )
    command = f"{sys.executable} {program}"
    text = run(
        "console script", project, home, "run", "--range", "car=1:", "--name", "own",
        "--command", command, "--ranks", "2", "--json",
    )  # fmt: skip
    job = json.loads(text)
    assert job["state"] == "done", job
    logs = run("console script", project, home, "jobs", "logs", "own")
    assert "modules of the user" in logs


@pytest.mark.training
def test_a_training_finds_its_own_modules_and_the_user_s_network(
    project: Path, catalogued: Path, tmp_path: Path
) -> None:
    """Two ranks by Horovod, of a network that lies in the project."""
    home = copy_home(catalogued, tmp_path)
    network = (
        "import tensorflow as tf\n\n\ndef small(height, width, classes):\n"
        "    images = tf.keras.layers.Input((height, width, 3))\n"
        "    logits = tf.keras.layers.Conv2D(classes, 1, dtype='float32')(images)\n"
        "    return tf.keras.Model(images, logits)\n"
    )
    (project / "own_nets.py").write_text(network)
    run("module", project, home, "dataset", "create", "all", "--split", "train=0.5,validation=0.5")
    run(
        "console script", project, home, "train", "all", "--model", "own_nets:small", "--name", "t",
        "--workers", "2", "--max-steps", "2", "--batch-size", "1", "--height", "32",
        "--width", "32",
    )  # fmt: skip
    run("module", project, home, "validate", "t", "all", "--workers", "1", "--trust-model")


@pytest.mark.parametrize("name", sorted(OWN))
def test_a_network_of_such_a_name_is_refused(name: str) -> None:
    """With a sentence, before anything runs; names that only begin so are modules as any."""
    for network in (f"{name}:build", f"{name}.nets:build"):
        with pytest.raises(InvalidInput, match=f"Framesift's own package {name} under this name"):
            check_network(network)
    check_network(f"{name}_nets:build")
    check_network(f"my.{name}:build")
