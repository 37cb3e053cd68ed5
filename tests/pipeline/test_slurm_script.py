"""Flags and scripts for Slurm, and what its words come to, without a Slurm."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from pipeline.jobs.backends.batch.dialect import Row
from pipeline.jobs.backends.batch.job import BatchJob
from pipeline.jobs.backends.batch.script import script
from pipeline.jobs.backends.batch.standing import Handle, standing
from pipeline.jobs.backends.slurm.dialect import SlurmDialect, _standing
from pipeline.jobs.backends.slurm.settings import SlurmSettings
from pipeline.jobs.request import JobPaths, JobRequest, Stage
from pipeline.jobs.resources import Resources


def slurm_job(
    folder: Path, stage: Stage, *, parallel: int = 9, settings: Any = None, **asked: Any
) -> BatchJob:
    """A job of one stage."""
    request = JobRequest("job", "train", (stage,), parallel=parallel, resources=Resources(**asked))
    paths = JobPaths(folder / "job")
    return BatchJob(request, paths, "name", settings or SlurmSettings(), folder, "slurm")


def flags_of(job: BatchJob) -> list[str]:
    """The words of sbatch."""
    return list(SlurmDialect().submission(job, job.request.stages[0], None))


def command_of(job: BatchJob, index: int = 0) -> list[str]:
    """The words of a command, as the script's shell has them."""
    line = next(
        line for line in script(job, job.request.stages[0], SlurmDialect(), {}).splitlines()
        if line.startswith(f"{index}) set -- ")
    )  # fmt: skip
    return shlex.split(line.removesuffix(" ;;"))[3:]


@pytest.mark.parametrize(
    ("commands", "parallel", "flag"),
    [(1, 9, ""), (2, 1, "--array=0-1%1"), (4, 3, "--array=0-3%3"), (4, 4, "--array=0-3")],
)
def test_commands_are_an_array(tmp_path: Path, commands: int, parallel: int, flag: str) -> None:
    """Numbered from 0, with a limit where not all may run at once."""
    stage = Stage("shards", (("echo",),) * commands)
    flags = flags_of(slurm_job(tmp_path, stage, parallel=parallel))
    assert [one for one in flags if one.startswith("--array")] == ([flag] if flag else [])


def test_gpus_go_to_stages_that_use_them(tmp_path: Path) -> None:
    """To all ranks of a node together; a merge asks for none, in no container either."""
    asked = {"gpus": 2, "ranks": 6, "ranks_per_node": 3}
    settings = SlurmSettings(image="/i.sif")
    train = Stage("train", (("echo",),), ranks=6)
    job = slurm_job(tmp_path, train, settings=settings, **asked)
    assert "--gres=gpu:6" in flags_of(job)
    assert "--nv" in command_of(job)
    merge = Stage("merge", (("echo",),), uses_gpus=False)
    job = slurm_job(tmp_path, merge, settings=settings, **asked)
    assert not any(flag.startswith("--gres") for flag in flags_of(job))
    assert "--nv" not in command_of(job)


def test_a_container_on_each_node_starts_its_ranks(tmp_path: Path) -> None:
    """Five ranks, two on a node, are three nodes."""
    stage = Stage("train", (("echo",),), ranks=5)
    settings = SlurmSettings(image="/i.sif", container="inside-out")
    job = slurm_job(tmp_path, stage, settings=settings, ranks=5, ranks_per_node=2, cores=3)
    words = command_of(job)
    assert {"--nodes=3", "--ntasks=3", "--ntasks-per-node=1", "--cpus-per-task=6"} <= {*words}
    assert words[-3:] == ["5", "2", "echo"]


def test_srun_starts_images_itself(tmp_path: Path) -> None:
    """With pyxis: one task, too, and each mount; without an image nothing of it."""
    settings = SlurmSettings(image="nvcr.io#a:1", container="pyxis")
    stage = Stage("train", (("echo",),), ranks=2)
    job = slurm_job(tmp_path, stage, settings=settings, ranks=2, mounts={"/data": "/mnt"})
    options = [
        "--container-image=nvcr.io#a:1",
        f"--container-mounts={tmp_path}:{tmp_path},/data:/mnt",
    ]
    words = command_of(job)
    assert words[:7] == [
        "srun", "--kill-on-bad-exit=1", "--input=none", "--distribution=block", "--ntasks=2",
        "--cpus-per-task=1", options[0],
    ]  # fmt: skip
    assert (words[7], words[8], words[-1]) == (options[1], "python3", "echo")
    merge = Stage("merge", (("cat", "/data/a"),))
    job = slurm_job(tmp_path, merge, settings=settings, mounts={"/data": "/mnt"})
    assert command_of(job) == ["srun", "--ntasks=1", "--input=none", *options, "cat", "/mnt/a"]
    bare = slurm_job(tmp_path, stage, settings=SlurmSettings(container="pyxis"), ranks=2)
    assert not any("container" in word for word in command_of(bare))


def test_paths_are_those_inside_the_container(tmp_path: Path) -> None:
    """Of the mounted folder and what lies in it; not of one whose name begins like it."""
    program = ("cat", "/data/a", "/data", "/data-private/a", "/data2", "x/data/a")
    stage = Stage("run", (program,))
    job = slurm_job(
        tmp_path, stage, settings=SlurmSettings(image="/i.sif"), mounts={"/data": "/mnt/d"}
    )
    assert command_of(job)[-6:] == [
        "cat", "/mnt/d/a", "/mnt/d", "/data-private/a", "/data2", "x/data/a",
    ]  # fmt: skip


def test_a_word_of_a_program_is_no_shell_s(tmp_path: Path) -> None:
    """Whatever it begins with: each word comes as it was given."""
    words = ("echo", '"$(touch x)"', "'; touch y #", "$HOME", '"$hosts2"', "a b", "")
    stage = Stage("run", (words, words))
    assert command_of(slurm_job(tmp_path, stage), 1) == [*words]


def stands(
    folder: Path, notes: list[dict[str, Any]], rows: list[str] | None = None, **of: Any
) -> Any:
    """Where a job stands whose stages are shards and a merge, the shards with these notes."""
    stages = (Stage("shards", (("echo",),) * len(notes), **of), Stage("merge", (("echo",),)))
    paths = JobPaths(folder / "job")
    place = paths.folder / "slurm" / "name"
    place.mkdir(parents=True)
    request = JobRequest("job", "validate", stages)
    paths.request.write_text(json.dumps(request.to_json()))
    for index, note in enumerate(notes):
        (place / f"shards-{index}.json").write_text(json.dumps(note))
    known = {
        ("7", index): Row(state, "None", _standing(state)) for index, state in enumerate(rows or [])
    }
    known["8", 0] = Row("PENDING", "Dependency", "waits")
    return standing(SlurmDialect(), Handle("name", ("7", "8")), paths, known, {})


DONE = {"code": 0, "end": "", "started": "2026-01-02T03:04:05", "finished": "2026-01-02T03:05:05"}


def test_a_stage_is_done_when_all_its_commands_are(tmp_path: Path) -> None:
    """One of three that failed is enough; where the stage is optional the job goes on."""
    failed = DONE | {"code": 3}
    status = stands(tmp_path / "a", [DONE, failed, DONE])
    assert (status.state, status.error.partition(" ended")[0]) == ("failed", "shards 1")
    assert stands(tmp_path / "b", [DONE, failed, DONE], optional=True).state == "running"
    assert stands(tmp_path / "c", [DONE, DONE, DONE]).state == "running"


def test_the_command_that_failed_by_itself_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not one that was ended with it, nor one that never wrote a word, whatever their order."""
    monkeypatch.setattr(SlurmDialect, "last_state", lambda *_: "")
    silent: dict[str, Any] = {}
    ended = DONE | {"code": 143, "end": "scheduler"}
    notes = [silent, ended, DONE | {"code": 3}, DONE]
    status = stands(tmp_path / "a", notes, ["CANCELLED"] * 4)
    assert status.error.startswith("shards 2 ended with exit code 3")
    assert not status.is_lost


def test_what_slurm_ended_may_be_in_its_queue_again(tmp_path: Path) -> None:
    """Its exit code is no last word then; that of a command that failed by itself is."""
    ended = DONE | {"code": 143, "end": "scheduler"}
    again = stands(tmp_path / "a", [DONE, ended], ["COMPLETED", "PENDING"])
    assert (again.state, again.waits) == ("queued", "for Slurm: None")
    failed = DONE | {"code": 3}
    assert stands(tmp_path / "b", [DONE, failed], ["COMPLETED", "COMPLETING"]).state == "failed"
