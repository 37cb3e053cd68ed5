"""Checkpoints that a user's program names: which count, what goes on from them, by real jobs."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from api.services.jobs.files import report_file
from api.workspace import Workspace
from catalog.errors import InUse, InvalidInput, NotFound
from catalog.records.datasets import complete_dataset
from catalog.records.tables import Job
from pipeline.job_state import FINISHED
from pipeline.jobs.follow import refresh
from pipeline.jobs.inference.chosen_model import chosen_model
from pipeline.jobs.program.checkpoints import (
    MOST_CHECKPOINTS,
    checkpoints_of,
    note_checkpoint,
    noted_checkpoint,
)
from pipeline.jobs.program.chosen_checkpoint import chosen_checkpoint
from pipeline.jobs.program.command_line import CommandLine, with_checkpoint
from pipeline.jobs.program.paths import ProgramPaths
from pipeline.jobs.program.scalars import scalars_of
from pipeline.jobs.submit import resume
from pipeline.jobs.workflow.remove import remove
from pipeline.runs.orders import Program
from tests.pipeline.jobs import submit_order
from tests.pipeline.test_datasets import make
from tests.pipeline.test_local_jobs import eventually


def a_job(folder: Path, *steps: int) -> Path:
    """A job's folder with a file for each step, and no list."""
    output = folder / "output"
    output.mkdir(parents=True)
    (folder / "input").mkdir()
    for step in steps:
        (output / f"step-{step}.pt").write_bytes(b"weights")
    return folder


def name_checkpoints(folder: Path, *rows: Any) -> None:
    """Write the list."""
    text = json.dumps({"checkpoints": rows})
    (folder / "output" / "checkpoints.json").write_text(text)


def test_which_checkpoints_count(tmp_path: Path) -> None:
    """Those whose file or folder is there, and in {job}; the first of the others is named."""
    folder = a_job(tmp_path / "mine", 5, 10, 20, 30)
    output = folder / "output"
    a_job(tmp_path / "mine-2", 40)
    (output / "folder").mkdir()
    (output / "folder" / "shard-0").write_bytes(b"x")
    for name in ("empty-folder", "inside"):
        (output / name).mkdir()
    (output / "empty.pt").touch()
    os.mkfifo(output / "pipe.pt")
    (output / "link.pt").symlink_to(output / "step-10.pt")
    (output / "out").symlink_to(tmp_path / "mine-2" / "output")
    right = (
        {"step": 20, "path": "./step-20.pt", "metrics": {"miou": 0.5, "x": "high", "t": True}},
        {"step": 10, "path": "gone.pt"},
        {"step": 10, "path": "step-10.pt", "bytes": 7},
        {"step": 15, "path": "folder", "metrics": [1]},
    )
    wrong: tuple[Any, ...] = (
        {"step": 10, "path": "gone.pt"}, {"step": 30, "path": "step-30.pt", "bytes": 8},
        {"step": 31, "path": "empty.pt"}, {"step": 32, "path": "empty-folder"},
        {"step": 33, "path": "pipe.pt"}, {"step": 34, "path": "link.pt"},
        {"step": 35, "path": "out/step-40.pt"}, {"step": 36, "path": "../../mine-2/output"},
        {"step": 37, "path": str(output / "step-5.pt")},
        {"step": 38, "path": "inside/../step-5.pt"},
        {"step": 39, "path": ""}, {"step": 40, "path": 7}, {"step": 41, "path": "a\nb"},
        {"step": -1, "path": "step-5.pt"}, {"step": True, "path": "step-5.pt"},
        {"step": 1.5, "path": "step-5.pt"}, {"path": "step-5.pt"}, "step-5.pt", None, [],
        {"step": 42, "path": "x" * 1025}, {"step": 43, "path": "x" * 300},
    )  # fmt: skip
    name_checkpoints(folder, *right, *wrong)
    checkpoints = checkpoints_of(folder)
    assert [each.as_json() for each in checkpoints.whole] == [
        {"step": 10, "path": "step-10.pt", "metrics": {}},
        {"step": 15, "path": "folder", "metrics": {}},
        {"step": 20, "path": "step-20.pt", "metrics": {"miou": 0.5}},
    ]
    (warning,) = checkpoints.warnings
    told = f"{len(wrong) + 1} of {len(right) + len(wrong)} left out; the first of step 10: gone.pt"
    assert told in warning
    name_checkpoints(folder, *({"step": step, "path": "step-5.pt"} for step in range(150)))
    steps = [each.step for each in checkpoints_of(folder).whole]
    assert steps == [*range(150 - MOST_CHECKPOINTS, 150)]


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 9000, '{"checkpoints": 3}', " " * (2 << 20)])
def test_a_list_that_is_none(tmp_path: Path, text: str) -> None:
    """There are no checkpoints, and the warning says what was expected."""
    folder = a_job(tmp_path / "mine")
    assert checkpoints_of(folder).warnings == ()
    (folder / "output" / "checkpoints.json").write_text(text)
    checkpoints = checkpoints_of(folder)
    assert checkpoints.whole == ()
    assert '{"checkpoints": [{"step": 120, "path": "step-120.pt"}]}' in checkpoints.warnings[0]


def test_a_list_behind_a_link_is_not_read(tmp_path: Path) -> None:
    """It could tell of files elsewhere."""
    folder, other = a_job(tmp_path / "mine"), a_job(tmp_path / "mine-2", 5)
    name_checkpoints(other, {"step": 5, "path": "step-5.pt"})
    (folder / "output" / "checkpoints.json").symlink_to(other / "output" / "checkpoints.json")
    assert checkpoints_of(folder).whole == ()


def test_what_ranks_are_told(tmp_path: Path) -> None:
    """All ranks of an attempt the same; one that is queued again the newest."""
    folder = a_job(tmp_path / "mine", 5, 10)
    assert noted_checkpoint(folder, begins_again=False) == ""
    assert note_checkpoint(folder, None) == ""
    assert noted_checkpoint(folder, begins_again=False) == ""
    assert note_checkpoint(folder, tmp_path / "first.pt").endswith(
        "goes on from /" + str(tmp_path / "first.pt").lstrip("/")
    )
    assert noted_checkpoint(folder, begins_again=True) == str(tmp_path / "first.pt")
    name_checkpoints(folder, {"step": 5, "path": "step-5.pt"})
    note_checkpoint(folder, tmp_path / "first.pt")
    name_checkpoints(folder, {"step": 5, "path": "step-5.pt"}, {"step": 10, "path": "step-10.pt"})
    output = ProgramPaths(folder).output
    assert noted_checkpoint(folder, begins_again=False) == str(output / "step-5.pt")
    assert noted_checkpoint(folder, begins_again=True) == str(output / "step-10.pt")


def test_a_checkpoint_in_a_command_line() -> None:
    """Filled by each attempt; what else looks like it stays text, and so do braces in paths."""
    words = ("python", "a{b", "--resume={checkpoint}", "{{checkpoint}}", "{job}/{checkpoint}", "}}")
    line = CommandLine.of(words)
    filled = line.filled(ProgramPaths(Path("/jobs/{x}")))
    assert filled[2] == "--resume={checkpoint}"
    assert with_checkpoint(filled, "/a{{b}}.pt") == [
        "python", "a{b", "--resume=/a{{b}}.pt", "{checkpoint}",
        "/jobs/{x}/output//a{{b}}.pt", "}",
    ]  # fmt: skip
    assert with_checkpoint(filled, "")[2] == "--resume="
    assert CommandLine.of(("a", "{{checkpoint}}")).filled(ProgramPaths(Path("/x")))[1] == (
        "{checkpoint}"
    )


TRAINS = """
import json, os, pathlib, signal, sys
checkpoint, out = sys.argv[1:3]
assert os.environ["FRAMESIFT_CHECKPOINT"] == checkpoint
begin = int(pathlib.Path(checkpoint).read_text()) if checkpoint else 0
with open(f"{out}/begun", "a") as begun: begun.write(f"{begin}\\n")
log = open(f"{out}/metrics.jsonl", "a")
for step in range(begin + 1, 13):
    value = step if begin == 0 else -step
    print(json.dumps({"step": step, "name": "loss", "value": value}), file=log, flush=True)
    if step % 4 == 0:
        pathlib.Path(f"{out}/step-{step}").write_text(str(step))
        steps = [{"step": n, "path": f"step-{n}"} for n in range(4, step + 1, 4)]
        pathlib.Path(f"{out}/part").write_text(json.dumps({"checkpoints": steps}))
        os.replace(f"{out}/part", f"{out}/checkpoints.json")
    if step == 6 and begin == 0: os.kill(os.getpid(), signal.SIGKILL)
"""


def run(workspace: Workspace, name: str, *words: str, **settings: Any) -> Job:
    """A job of a program, once it has ended."""
    dataset = complete_dataset(workspace.records, "all")
    order = Program(command=str(CommandLine.of(words)), name=name, **settings)
    job = submit_order(workspace.records, workspace.job_queue, dataset, order)
    return ended(workspace, job)


def ended(workspace: Workspace, job: Job) -> Job:
    """The job at its end."""
    eventually(lambda: refresh(workspace.records, job).state in FINISHED)
    return refresh(workspace.records, job)


@pytest.mark.wide
def test_a_killed_program_goes_on_from_its_checkpoint(workspace: Workspace, tmp_path: Path) -> None:
    """The curve has each step once; another program begins with a checkpoint of it, a copy."""
    make(workspace, "all")
    (tmp_path / "train.py").write_text(TRAINS)
    words = (sys.executable, str(tmp_path / "train.py"), "{checkpoint}", "{job}")
    job = run(workspace, "first", *words)
    folder = Path(job.paths["folder"])
    assert job.state == "failed"
    assert (job.metrics["step"], job.metrics["loss"]) == (6, 6.0)
    assert job.metrics["checkpoints"] == [{"step": 4, "path": "step-4", "metrics": {}}]
    for name in ("output/metrics.jsonl", "output/step-4"):
        assert report_file(job, name, tells_paths=True).path.is_file()
    for name in ("output/step-8", "output/part", "output/begun"):
        with pytest.raises(NotFound, match="before that metrics"):
            report_file(job, name, tells_paths=True)

    queue = workspace.job_queue
    job = ended(workspace, resume(workspace.records, queue, job))
    assert (job.state, job.error) == ("done", "")
    assert (folder / "output" / "begun").read_text() == "0\n4\n"
    curve = scalars_of(folder).curves["loss"]
    assert curve.steps == [*range(1, 13)]
    assert curve.values == [1, 2, 3, 4, *(-step for step in range(5, 13))]
    assert (job.metrics["step"], job.metrics["loss"]) == (12, -12.0)
    assert [row["step"] for row in job.metrics["checkpoints"]] == [4, 8, 12]
    result = json.loads((folder / "result.json").read_text())
    assert (result["step"], result["loss"]) == (12, -12.0)

    second = run(workspace, "second", "cp", "{checkpoint}", "{job}/copy", checkpoint="first@8")
    assert second.state == "done", second.error
    assert (Path(second.paths["output"]) / "copy").read_text() == "8"
    (copy,) = Path(second.paths["folder"]).glob("checkpoints/*/*")
    assert (copy.parent.name, copy.name) == ("first@8", "step-8")
    assert not copy.samefile(folder / "output" / "step-8")
    lineage = json.loads((Path(second.paths["folder"]) / "result.json").read_text())["lineage"]
    assert lineage["checkpoint"] == "first@8"
    assert chosen_checkpoint(workspace.records, "first") == (
        "first@12", folder / "output" / "step-12",
    )  # fmt: skip
    for named, why in (
        ("first@9", "no checkpoint of step 9; it has 4, 8, 12"),
        ("first@best", "no checkpoint best"),
        ("second", "second has no checkpoint; it has none"),
    ):
        with pytest.raises(InvalidInput, match=why):
            run(workspace, "third", "true", checkpoint=named)
    with pytest.raises(NotFound, match="firs"):
        run(workspace, "third", "true", checkpoint="firs@4")
    with pytest.raises(InvalidInput, match="validate --predictions or --scores"):
        chosen_model(workspace.records, "first@8")
    with workspace.records.session() as session:
        session.query(Job).filter_by(name="second").update({"state": "running"})
    with pytest.raises(InUse):
        remove(workspace.records, job)
    with workspace.records.session() as session:
        session.query(Job).filter_by(name="second").update({"state": "done"})
