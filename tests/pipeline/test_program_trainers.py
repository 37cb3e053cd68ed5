"""Trainings of other programs as jobs, with PyTorch itself (make test-readers)."""

import json
import os
import re
import sys
from pathlib import Path

import pytest

from tests.api.servers import framesift
from tests.pipeline.homes import REPOSITORY
from tests.pipeline.test_program_examples import city, command_of, typed

READERS = REPOSITORY / ".venv-readers"

ENDS = """
import json, os, signal, sys, time, torch
torch.distributed.init_process_group("gloo")
rank, out = int(os.environ["RANK"]), sys.argv[1]
ranks = torch.ones(1)
torch.distributed.all_reduce(ranks)
names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK",
         "FRAMESIFT_RANK", "FRAMESIFT_RANKS", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_MAX_RESTARTS")
said = {"ranks": int(ranks), **{name: os.environ[name] for name in names}}
first = not os.path.exists(f"{out}/{rank}.json")
with open(f"{out}/{rank}.json", "w") as file: json.dump(said, file)
if first and rank == 1: os.kill(os.getpid(), signal.SIGKILL)
if first: time.sleep(600)
if "refuse" in sys.argv and rank == 1: sys.exit("error: no such class")
"""


def in_readers(
    home: Path, folder: Path, arguments: list[str]
) -> tuple[int, str, dict[str, object]]:
    """A command whose `python` is that of the readers; as `typed` answers."""
    folders = (READERS / "bin", Path(sys.executable).parent, os.environ["PATH"])
    return typed(
        home, folder, arguments, VIRTUAL_ENV=str(READERS), PYTHONPATH=str(REPOSITORY),
        PATH=":".join(map(str, folders)),
    )  # fmt: skip


@pytest.mark.readers
@pytest.mark.parametrize(
    ("example", "made"), [("train_lightning.py", "last.ckpt"), ("train_mmengine.py", "work")]
)
def test_examples_of_trainers(catalogued: Path, tmp_path: Path, example: str, made: str) -> None:
    """Two ranks train on frames that come meanwhile, in equal parts, and end with a loss."""
    home, manifest = city(catalogued, tmp_path, staged=False)
    status, printed, job = in_readers(home, tmp_path, command_of(example))
    assert (status, job["state"]) == (0, "done"), printed
    metrics = job["metrics"]
    assert isinstance(metrics, dict)
    frames = len(manifest.split("train"))
    assert 0 < metrics["loss"] < 10
    assert (metrics["frames"], metrics["steps"]) == (frames, -(-frames // 4))
    output = home / "jobs" / "example" / "output"
    assert (output / made).exists()
    assert (home / "jobs" / "example" / "staging.json").exists()


@pytest.mark.readers
def test_torchrun_ends_with_its_first_rank_that_dies(catalogued: Path, tmp_path: Path) -> None:
    """Real gloo between two ranks: killed, the job fails; resumed, it says the rank's error."""
    home, _ = city(catalogued, tmp_path, staged=False)
    program = tmp_path / "ends.py"
    program.write_text(ENDS)
    command = f"python {program} {{job}} refuse"
    run = ["run", "city", "--ranks", "2", "--torchrun", "--command", command]
    status, printed, job = in_readers(home, tmp_path, run)
    assert (status, job["state"]) == (1, "failed"), printed
    assert re.search("a worker of run 0 was killed by signal 9", str(job["error"]))
    framesift(home, "jobs", "resume", "example")
    resumed = framesift(home, "jobs", "wait", "example")
    assert "no such class (run 0, log " in resumed.stderr
    output = home / "jobs" / "example" / "output"
    told = [json.loads((output / f"{rank}.json").read_text()) for rank in range(2)]
    assert told == [
        {
            "ranks": 2, "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank),
            "LOCAL_WORLD_SIZE": "2", "NODE_RANK": "0", "GROUP_RANK": "0",
            "FRAMESIFT_RANK": str(rank), "FRAMESIFT_RANKS": "2",
            "TORCHELASTIC_RUN_ID": "example-2", "TORCHELASTIC_MAX_RESTARTS": "0",
        }
        for rank in range(2)
    ]  # fmt: skip
