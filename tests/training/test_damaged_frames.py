"""A damaged frame in a job: what is finished is kept, and the job goes on once it is mended."""

import json
import os
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from pipeline.example_order import examples
from pipeline.manifest import Manifest
from tests.api.servers import framesift
from tests.training.drawn_home import TINY_JOB, ask, drawn_home

pytestmark = pytest.mark.training

FRAMES, WORKERS = 8, 2
STEPS_BEFORE = 2
"""Of the training, which then needs the damaged frame."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a staged dataset of drawn frames."""
    return drawn_home(tmp_path_factory.mktemp("damaged"), FRAMES)


def failed(home: Path, *command: str) -> str:
    """Why the job failed that a command began, as it says itself."""
    run = framesift(home, *command)
    assert run.returncode == 1, run.stdout
    return run.stderr


def damage(path: Path) -> Callable[[], None]:
    """Turn one byte of a file, which keeps its size and time; what puts it back as it was."""
    content, status = path.read_bytes(), path.stat()
    middle = len(content) // 2

    def write(content: bytes) -> None:
        path.write_bytes(content)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    write(content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :])
    return lambda: write(content)


def logs(home: Path, job: str) -> str:
    """What each of a job's programs said in its last attempt."""
    texts = [path.read_text() for path in sorted((home / "jobs" / job / "logs").glob("*.log"))]
    return "\n".join(text.rpartition("<==\n")[2] for text in texts)


def test_a_training_and_a_validation_go_on(home: Path) -> None:
    """The frame is named whichever worker meets it, and only what was missing is done then."""
    row = next(islice(examples(FRAMES, 0, 1, rank=1, ranks=WORKERS), STEPS_BEFORE, None)).row
    (folder,) = (home.parent / "cache" / ".manifests").glob("few-v1-*")
    staged = Manifest.read(folder)
    label = Path(str(staged.label_paths()[row]))
    damage(label)
    repair = ("cache", "verify", "few@1", "--cache", str(home.parent / "cache"))
    why = failed(
        home, "train", "few", "--workers", "2", "--max-steps", "5", "--batch-size", "1",
        "--name", "t", *TINY_JOB,
    )  # fmt: skip
    assert f"{label}: PNG is damaged" in why
    assert f"framesift {' '.join(repair)} fetches it again" in why
    assert framesift(home, *repair).returncode == 0
    trained = ask(home, "jobs", "resume", "t")
    assert (trained["state"], trained["attempt"], trained["metrics"]["step"]) == ("done", 2, 5)
    assert f"going on from the checkpoint of step {STEPS_BEFORE}" in logs(home, "t")

    validate = ("validate", "t", "few", "--workers", "2", "--trust-model", "--name")
    whole = ask(home, *validate, "whole")
    image = Path(str(next(iter(staged.shard(1, 2).images())).path))
    put_back = damage(image)
    why = failed(home, *validate, "v")
    assert f"{image}: PNG is damaged" in why
    put_back()
    shard = home / "jobs" / "v" / "results" / "shard-00000-of-00002.fsv"
    written = shard.stat().st_mtime_ns
    validated = ask(home, "jobs", "resume", "v")
    assert (validated["state"], validated["attempt"]) == ("done", 2)
    assert shard.stat().st_mtime_ns == written
    said = logs(home, "v")
    assert "shard 0 of 2 is there already" in said
    assert "shard 1 of 2 written" in said
    reports = [json.loads(Path(job["paths"]["report"]).read_text()) for job in (whole, validated)]
    assert reports[0] == reports[1]
