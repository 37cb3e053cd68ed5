"""Users' programs as jobs: real runners, real programs, and arguments that are never a shell's."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import framesift
from api.services.jobs.files import report_file
from api.workspace import Workspace
from catalog.errors import BadFile, InvalidInput, NotFound
from catalog.records.datasets import complete_dataset
from catalog.records.tables import Job
from framesift.data import Classes, open_frames
from pipeline.cache.limits import Limits, write_limits
from pipeline.job_state import FINISHED
from pipeline.jobs.backends.launch import on_this_machine
from pipeline.jobs.backends.log_end import was_killed, why_failed
from pipeline.jobs.follow import refresh
from pipeline.jobs.program.command_line import CommandLine
from pipeline.jobs.program.hand_over import hand_over_form
from pipeline.jobs.program.paths import ProgramPaths
from pipeline.jobs.program.rank import Rank, torchrun
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.request import JobPaths, JobRequest
from pipeline.manifest import Manifest
from pipeline.prepared.form import open_form
from pipeline.prepared.prepare import prepare
from pipeline.runs.orders import Program
from pipeline.runs.size import Size
from pipeline.staging.stage import stage_dataset
from tests.pipeline.jobs import describe_order, submit_order
from tests.pipeline.test_datasets import make
from tests.pipeline.test_local_jobs import eventually
from tests.pipeline.test_prepared import staged
from tests.pipeline.test_reading_through import size_of
from tests.training.drawn_frames import draw_frames, every_fourth

SPLIT = "train=0.75,validation=0.25"

WRITES_ALL = """
import json, os, sys
names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
said = {"arguments": sys.argv[1:], "cwd": os.getcwd(), "names": sorted(os.environ)}
said |= {name: os.environ[name] for name in names}
with open(f"{sys.argv[-1]}/{os.environ['RANK']}.json", "w") as file: json.dump(said, file)
"""


def run(workspace: Workspace, name: str, *words: str, **settings: Any) -> Job:
    """A job of a program, once it has ended."""
    job = submit_order(
        workspace.records,
        JobQueue(workspace.jobs, workers=8),
        complete_dataset(workspace.records, "all"),
        Program(command=str(CommandLine.of(words)), name=name, **settings),
    )
    eventually(lambda: refresh(workspace.records, job).state in FINISHED)
    return refresh(workspace.records, job)


def log(job: Job, stage: str, index: int = 0) -> str:
    """What a command of a job printed."""
    return JobPaths(Path(job.paths["folder"])).log(stage, index).read_text()


@pytest.mark.wide
def test_two_ranks_get_files_classes_manifest_and_variables(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proves what a program is handed, that nothing is a shell's, and what of it is recorded."""
    monkeypatch.setenv("FRAMESIFT_SECRET_KEY", "secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    dataset = make(workspace, "all", split=SPLIT)
    (tmp_path / "it's; touch x").mkdir()
    program = tmp_path / "it's; touch x" / "program.py"
    program.write_text(WRITES_ALL)
    hostile = ["$(touch a)", "; touch b", "`touch c`", "a b", "", "{{files}}", "{print $1}", "--"]
    job = run(
        workspace, "mine", sys.executable, str(program), *hostile, "--list={files:train}",
        "{files}", "{classes}", "{manifest}", "{job}",
        ranks=2, folder=str(tmp_path), split="validation",
    )  # fmt: skip
    assert (job.state, job.error) == ("done", "")
    places = ProgramPaths(Path(job.paths["folder"]))
    said = [json.loads((places.output / f"{rank}.json").read_text()) for rank in range(2)]
    for rank, told in enumerate(said):
        given = told["arguments"]
        assert given[:8] == [*hostile[:5], "{files}", *hostile[6:]]
        assert given[8:] == [
            f"--list={places.files('train')}",
            str(places.files(None)), str(places.classes), str(places.manifest), str(places.output),
        ]  # fmt: skip
        assert (told["RANK"], told["WORLD_SIZE"]) == (str(rank), "2")
        assert (told["LOCAL_RANK"], told["LOCAL_WORLD_SIZE"]) == (str(rank), "2")
        assert (told["MASTER_ADDR"], told["cwd"]) == ("127.0.0.1", str(tmp_path))
        assert told["MASTER_PORT"] == said[0]["MASTER_PORT"]
        assert not {"FRAMESIFT_SECRET_KEY", "AWS_SECRET_ACCESS_KEY"} & set(told["names"])
    assert sorted(path.name for path in tmp_path.iterdir() if len(path.name) == 1) == []
    whole = Manifest.read(Path(dataset.manifest))
    for split in ("train", "validation"):
        listed = open_frames(places.files("train" if split == "train" else None))
        assert listed.names == whole.split(split).image_paths()
    assert open_frames(places.manifest).names == whole.frames["fkey"].to_pylist()
    assert Classes.read(places.classes) == open_frames(places.manifest).classes
    result = json.loads((places.folder / "result.json").read_text())
    assert [row["path"] for row in result["outputs"]] == ["0.json", "1.json"]
    assert job.metrics["output_files"] == 2
    lineage = result["lineage"]
    assert (lineage["dataset"], lineage["dataset_id"]) == ("all@1", dataset.content_id)
    assert (lineage["split"], lineage["ranks"]) == ("validation", 2)
    assert lineage["frames"] == len(whole.split("validation"))
    assert report_file(job, "output/1.json", tells_paths=True).path.read_text() == json.dumps(
        said[1]
    )
    for name in ("output/2.json", "output/../request.json", "request.json", "output/"):
        with pytest.raises(NotFound):
            report_file(job, name, tells_paths=True)


READS = """
import json, os, sys
from framesift.data import open_frames
at = int(os.environ["RANK"])
read = []
for place in sys.argv[1:3]:
    frames = open_frames(place)
    for name, (image, ids) in zip(frames.names[at::2], frames.shard(at, 2)):
        read.append([name, list(image.shape), list(ids.shape)])
with open(f"{sys.argv[3]}/{at}.json", "w") as file: json.dump(read, file)
"""


@pytest.mark.wide
def test_ranks_wait_for_what_is_staged_beside_them(workspace: Workspace, tmp_path: Path) -> None:
    """Proves two read every frame of list and manifest through a cache of half of the dataset."""
    dataset = make(workspace, "all", split=SPLIT)
    write_limits(workspace.cache, Limits(hard_bytes=size_of(dataset) // 2))
    program = tmp_path / "reads.py"
    program.write_text(READS)
    job = run(
        workspace, "waits", sys.executable, str(program), "{manifest}", "{files}", "{job}",
        ranks=2, start_after=5.0,
    )  # fmt: skip
    assert (job.state, job.error) == ("done", "")
    output = ProgramPaths(Path(job.paths["folder"])).output
    read = [json.loads((output / f"{rank}.json").read_text()) for rank in range(2)]
    manifest = Manifest.read(Path(dataset.manifest))
    assert len(read[0]) + len(read[1]) == 2 * len(manifest)
    assert all(image == [*ids, 3] for each in read for _, image, ids in each)
    assert {name for each in read for name, _, _ in each} >= set(
        manifest.frames["fkey"].to_pylist()
    )
    assert job.request["settings"]["start_after"] == 5
    assert len(list(workspace.cache.rglob("*~*.png"))) < 2 * len(manifest)


@pytest.mark.wide
def test_a_program_whose_file_cannot_be_had_says_so(own_source: Workspace, tmp_path: Path) -> None:
    """Proves that it fails with the file's name and does not hang."""
    dataset = make(own_source, "all")
    lost = Manifest.read(Path(dataset.manifest)).image_paths()[3]
    Path(lost).unlink()
    program = tmp_path / "reads.py"
    program.write_text(READS.replace('int(os.environ["RANK"])', "1"))
    job = run(
        own_source, "lacks", sys.executable, str(program), "{manifest}", "{files}", "{job}",
        start_after=0.0,
    )  # fmt: skip
    assert job.state == "failed"
    assert lost in job.error


@pytest.mark.wide
def test_a_rank_that_fails_fails_the_job(workspace: Workspace, tmp_path: Path) -> None:
    """Proves the others end, the error is the program's own, and a next attempt goes on there."""
    make(workspace, "all")
    program = (
        "import os, sys, time, pathlib\n"
        "mark = pathlib.Path(sys.argv[1], 'mark')\n"
        "if os.environ['RANK'] == '1': sys.exit('error: no such class')\n"
        "time.sleep(600)\n"
    )
    job = run(workspace, "fails", sys.executable, "-c", program, "{job}", ranks=2)
    assert job.state == "failed"
    assert job.error.startswith("no such class (run 1, log ")
    job = run(workspace, "none", "no-such-program")
    assert (job.state, "no-such-program: No such file" in job.error) == ("failed", True)
    job = run(workspace, "nowhere", "true", folder=str(tmp_path / "none"))
    assert (job.state, f"folder {tmp_path}/none: No such file" in job.error) == ("failed", True)


def test_what_cannot_be_is_refused_before_anything_runs(workspace: Workspace) -> None:
    """Proves each message names what was given; nothing is recorded."""
    make(workspace, "all", split=SPLIT)

    def refused(text: str, **settings: Any) -> str:
        with pytest.raises(InvalidInput) as error:
            submit_order(
                workspace.records,
                JobQueue(workspace.jobs, workers=8),
                complete_dataset(workspace.records, "all"),
                Program(command=text, **settings),
            )
        return str(error.value)

    assert "close the quotation" in refused("python 'train.py")
    assert "expected a program" in refused("  ")
    assert "expected a program" in refused("'' x")
    assert "unknown placeholder '{flies}'" in refused("python {flies}")
    assert "did you mean {files}" in refused("python {flies}")
    assert "unknown placeholder '{classes:train}'" in refused("python {classes:train}")
    assert "unknown split 'test'" in refused("python {files:test}")
    assert "unknown split 'test'" in refused("python {files}", split="test")
    assert "--prepare, such as 240x152" in refused("python {prepared}")
    assert "stage it first" in refused("python {prepared}", prepare="48x30")
    assert "ranks 0" in refused("python", ranks=0)
    assert "may have at most 8" in refused("python", ranks=9)
    assert "absolute path" in refused("python", folder="here")
    assert "prepare decodes all" in refused("python {prepared}", prepare="48x30", start_after=5.0)
    assert "nothing is staged" in refused("python {files}", stage=False, start_after=5.0)
    assert "zero byte" in refused("python \0")
    assert not list(workspace.jobs.glob("run-*"))


@pytest.mark.wide
def test_prepared_arrays_of_a_split(workspace: Workspace) -> None:
    """Proves a program opens the rows of its split, which are those of the form in the cache."""
    make(workspace, "all", split=SPLIT)
    dataset = complete_dataset(workspace.records, "all")
    stage_dataset(workspace.records, dataset, workspace.cache)
    job = run(
        workspace, "arrays", "cp", "{prepared}/rows.npy", "{job}",
        split="validation", prepare="48x30",
    )  # fmt: skip
    assert (job.state, job.error) == ("done", "")
    places = ProgramPaths(Path(job.paths["folder"]))
    frames = open_frames(places.prepared, "validation")
    assert frames.dataset == "all@1"
    whole = open_frames(Path(job.paths["manifest"]), "validation")
    assert frames.names == whole.names
    assert frames.classes == whole.classes
    assert [image.shape for image, _ in frames] == [(30, 48, 3)] * len(whole)
    images = np.load(places.prepared / "images.npy", mmap_mode="r")
    rows = np.load(places.output / "rows.npy")
    assert all(np.array_equal(images[row], frames[n][0]) for n, row in enumerate(rows))
    with pytest.raises(framesift.UnknownName, match="has validation"):
        open_frames(places.prepared, "train")


@pytest.mark.wide
def test_prepared_arrays_of_folders_of_this_machine(workspace: Workspace) -> None:
    """Proves that frames need no staging to be prepared: the cache gets their form, and no copy."""
    make(workspace, "all", split=SPLIT)
    whole = complete_dataset(workspace.records, "all")
    line = "cp {prepared}/rows.npy {job}"
    order = Program(command=line, split="train", prepare="48x30", name="arrays")
    records, queue = workspace.records, workspace.job_queue
    (described,) = describe_order(records, queue, whole, order)
    assert "--prepare 48x30" in described.submission
    assert not workspace.cache.exists()
    with pytest.raises(InvalidInput, match="or is read without staging; stage it first"):
        submit_order(records, queue, whole, replace(order, stage=False))
    job = submit_order(records, queue, whole, order)
    eventually(lambda: refresh(workspace.records, job).state in FINISHED)
    ended = refresh(workspace.records, job)
    assert (ended.state, ended.error) == ("done", "")
    frames = open_frames(ProgramPaths(Path(ended.paths["folder"])).prepared, "train")
    assert [image.shape for image, _ in frames] == [(30, 48, 3)] * len(frames)
    manifest = Manifest.read(Path(whole.manifest))
    assert len(frames) == len(manifest.split("train"))
    assert not list(workspace.cache.rglob("*.png"))


def test_a_form_that_lacks_a_frame_is_not_handed_over(tmp_path: Path) -> None:
    """Proves no program gets a row of zeros for a frame that cannot be decoded."""
    files = draw_frames(tmp_path, 4)
    folder = staged(tmp_path, every_fourth(files))
    (tmp_path / files[1].image).write_bytes(b"damaged")
    prepare(folder, Size(16, 20), processes=1)
    manifest = Manifest.read(folder)
    form = open_form(manifest, Size(16, 20))
    assert form is not None
    with pytest.raises(BadFile, match="cannot be decoded"):
        hand_over_form(tmp_path / "prepared", form, manifest)
    hand_over_form(tmp_path / "prepared", form, manifest.split("validation"))
    assert len(open_frames(tmp_path / "prepared")) == 1


def test_how_launchers_tell_ranks() -> None:
    """Proves Slurm's and Open MPI's variables mean the same as ours, and none means one rank."""
    slurm = {
        "SLURM_PROCID": "3",
        "SLURM_STEP_NUM_TASKS": "6",
        "SLURM_LOCALID": "1",
        "SLURM_STEP_TASKS_PER_NODE": "2(x3)",
    }
    assert Rank.of(slurm) == Rank(3, 6, 1, 2, "127.0.0.1")
    ours = {"FRAMESIFT_RANK": "0", "FRAMESIFT_RANKS": "4", "MASTER_ADDR": "node7"}
    assert Rank.of(slurm | ours) == Rank(0, 4, 0, 0, "node7")
    assert Rank.of({"SLURM_PROCID": "0"}) == Rank(0, 1, 0, 1, "127.0.0.1")
    nodes = {"SLURM_NODEID": "1", "SLURM_STEP_NUM_NODES": "3"}
    assert Rank.of(slurm | nodes) == Rank(3, 6, 1, 2, "127.0.0.1", 1, 3)
    assert Rank.of(ours | nodes | {"FRAMESIFT_NODE": "2", "FRAMESIFT_NODES": "4"}).node == 2
    variables = Rank(3, 6, 1, 2, "node0", 1, 3).variables(29_500)
    assert (variables["NODE_RANK"], variables["GROUP_RANK"]) == ("1", "1")


def test_torchrun_is_the_command_s_python_s_own() -> None:
    """Proves one launcher of a machine starts its ranks, anew never, and where they meet."""
    rank = Rank(2, 3, 0, 1, "127.0.0.1", 1, 2)
    command = torchrun(rank, 29_500, "mine-2", ["/venv/bin/python3.11", "-u", "train.py"])
    assert command == [
        "/venv/bin/python3.11", "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1",
        "--max-restarts=0", "--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:29500",
        "--rdzv-id=mine-2", "--rdzv-conf=is_host=false", "--local-addr=127.0.0.1", "--no-python",
    ]  # fmt: skip
    assert torchrun(rank, 29_500, "mine-2", ["train"])[:2] == ["torchrun", "--nnodes=2"]
    first = replace(rank, rank=0, node=0)
    assert "--rdzv-conf=is_host=true" in torchrun(first, 29_500, "mine-2", ["pythonic"])


TORCHRUN_SAYS = """ValueError: no such class
W1129 03:47:27.561000 9 torch/distributed/elastic/multiprocessing/api.py:1028] Sending process 2
E1129 03:47:27.579000 9 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: 3)
Traceback (most recent call last):
Failures:
[1]:
  rank      : 0 (local_rank: 0)
  exitcode  : -15 (pid: 2)  (SIGTERM)
Root Cause (first observed failure):
[0]:
  rank      : 1 (local_rank: 1)
  exitcode  : 3 (pid: 3)
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
=======================================================
"""


def test_what_torchrun_says_of_its_ranks(tmp_path: Path) -> None:
    """Proves the error is that of the rank that failed first, and that a killed one is lost."""
    log = tmp_path / "run-0.log"
    log.write_text(TORCHRUN_SAYS)
    why = why_failed("run 0", log, 1, 1)
    assert why == f"run 0 ended with exit code 1: ValueError: no such class; see {log}"
    assert not was_killed(log, 1, 1)
    for code, reason in ((-9, "a worker of run 0 was killed by signal 9"), (75, "run 0 ended")):
        log.write_text(
            TORCHRUN_SAYS.replace("exitcode  : 3 (pid: 3)", f"exitcode  : {code} (pid: 3)")
        )
        assert why_failed("run 0", log, 1, 1).startswith(reason)
        assert was_killed(log, 1, 1)


def test_a_command_line_reads_and_writes_itself() -> None:
    """Proves words come back as they were, quoted or not, and braces that are text."""
    text = "awk '{print $1}' \"a b\" {files:train} {{job}} 'it'\"'\"'s'"
    line = CommandLine.parse(text)
    assert line.arguments[1:3] == ("{print $1}", "a b")
    assert CommandLine.parse(str(line)) == line
    assert line.placeholders() == [("files", "train")]
    filled = line.filled(ProgramPaths(Path("/jobs/x")))
    assert filled[3:] == ("/jobs/x/input/files-train.txt", "{job}", "it's")


@pytest.mark.wide
def test_the_request_says_how_ranks_are_started(workspace: Workspace) -> None:
    """Proves a request comes back from its record, and each rank is a command of its own."""
    make(workspace, "all")
    job = run(workspace, "told", "true", ranks=3)
    assert job.state == "done"
    request = JobRequest.from_json(job.request)
    assert [stage.title for stage in request.stages] == ["input", "run", "collect"]
    commands = on_this_machine(request.stages[1], "python3")
    assert [command[:3] for command in commands] == [
        ("env", f"FRAMESIFT_RANK={rank}", "FRAMESIFT_RANKS=3") for rank in range(3)
    ]
    assert request.resources.ranks == 3
