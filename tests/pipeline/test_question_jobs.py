"""Jobs that begin with a question: chosen, saved, staged, planned, run, collected, evicted."""

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from api.services.jobs.service import Jobs
from api.services.session import Session
from api.workspace import Workspace
from catalog.errors import FramesiftError, InvalidInput, JobFailed, UnknownName
from catalog.records.datasets import recorded_datasets
from catalog.records.jobs import recorded_job
from catalog.records.tables import Job
from pipeline.jobs.backends.process import ProcessId
from pipeline.jobs.follow import cancel, refresh, wait
from pipeline.jobs.request import JobPaths, read_json
from pipeline.jobs.submit import resume
from pipeline.jobs.workflow import poll
from pipeline.jobs.workflow.reconciler import reconcile
from query.question.label_range import LabelRange
from query.question.question import Question
from tests.api.servers import framesift, several
from tests.pipeline.homes import copy_home, open_home
from tests.pipeline.test_local_jobs import eventually

COMMAND = "sh -c 'cat {files} > {job}/list.txt'"
CARS = Question(ranges=(LabelRange(tag="car", lowest=1),), limit=2)
HALVES = {"split": "train=0.5,validation=0.5", "split_by": "frame", "allow_leakage": True}


@pytest.fixture
def home(catalogued: Path, tmp_path: Path) -> Workspace:
    """A home with the sample frames."""
    return open_home(copy_home(catalogued, tmp_path))


def begin(workspace: Workspace, **options: Any) -> str:
    """A user's program on the frames with cars; the job's name."""
    jobs = Session(workspace, is_command=True).jobs
    return jobs.run(None, COMMAND, question=CARS, **options).name


def ended(workspace: Workspace, name: str) -> Job:
    """The job at its end, driven by this process."""
    records = workspace.records
    return wait(records, recorded_job(records, name), queue=workspace.job_queue)


@pytest.mark.wide
def test_each_step_is_done_in_its_order(home: Workspace) -> None:
    """From a question to what the program made; each step has its log and its moves."""
    name = begin(home, name="few", evict=True)
    job = ended(home, name)
    assert [(task.name, task.state, task.attempt) for task in job.tasks] == [
        (step, "done", 1) for step in ("select", "stage", "prepare", "run", "evict")
    ]
    assert (job.state, job.dataset) == ("done", "few@1")
    listed = (Path(job.paths["output"]) / "list.txt").read_text().splitlines()
    assert len(listed) == 2
    result = read_json(JobPaths(Path(job.paths["folder"])).result)
    assert (result["lineage"]["dataset"], result["output_files"]) == ("few@1", 1)
    jobs = Jobs(Session(home, is_command=True))
    logs = b"".join(jobs.log_chunks(name)).decode()
    assert "==> select.log <==\nfew@1: 2 frames of snapshot" in logs
    assert logs.index("==> prepare.log") < logs.index("==> run-0.log") < logs.index("==> evict.log")
    moves = [(move.task, move.after) for move in jobs.timeline(name).moves]
    assert moves.index(("select", "done")) < moves.index(("run", "done"))
    assert jobs.get(name).settings["question"]["limit"] == 2


@pytest.mark.wide
def test_a_step_that_was_killed_goes_on_and_one_that_is_cancelled_is_resumed(
    home: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed, a step is started again by itself; cancelled, by its user; nothing is saved twice."""
    monkeypatch.setattr(poll, "_FIRST_PAUSE_S", 0.0)
    records, queue = home.records, home.job_queue
    job = recorded_job(records, begin(home, name="few"))
    ProcessId.parse(job.tasks[0].handle).signal(signal.SIGKILL)
    eventually(
        lambda: (
            reconcile(records, queue) is not None
            and recorded_job(records, "few").tasks[0].attempt == 2
        )
    )
    assert cancel(records, recorded_job(records, "few")).state in ("pending", "cancelled")
    eventually(lambda: refresh(records, recorded_job(records, "few")).state == "cancelled")
    reconcile(records, queue)
    assert {task.state for task in recorded_job(records, "few").tasks[1:]} == {"pending"}
    resume(records, queue, recorded_job(records, "few"))
    assert ended(home, "few").state == "done"
    assert [dataset.version for dataset in recorded_datasets(records)] == [1]


def test_what_cannot_be_is_refused_before_anything_is_recorded(home: Workspace) -> None:
    """A question that names no tag, a dataset beside it, a model that is none."""
    jobs = Session(home, is_command=True).jobs
    wrong = Question(ranges=(LabelRange(tag="unicorn", lowest=1),))
    for kind, options in (
        ("run", {"command": COMMAND, "question": wrong}),
        ("run", {"command": COMMAND, "question": CARS, "dataset": "all"}),
        ("run", {"command": COMMAND}),
        ("run", {"command": COMMAND, "dataset": "all", "save_as": "few"}),
        ("run", {"command": COMMAND, "question": CARS, "save_as": "no/name"}),
        ("run", {"command": COMMAND, "question": CARS, "evict": True, "stage": False}),
        ("run", {"command": COMMAND, "question": CARS, "backend": "none"}),
        ("run", {"command": COMMAND, "dataset": "all", "divide": HALVES}),
        ("run", {"command": COMMAND, "question": CARS, "divide": {"split": "train=2"}}),
        ("run", {"command": COMMAND, "question": CARS, "divide": {"split": ""}}),
        ("train", {"question": CARS, "batch_size": 0}),
        ("predict", {"model": "none", "question": CARS}),
    ):
        begin: Callable[..., object] = getattr(jobs, kind)
        with pytest.raises(FramesiftError):
            begin(**options)
    assert jobs.list() == []


@pytest.mark.wide
def test_the_frames_of_a_question_are_divided(home: Workspace) -> None:
    """The step that saves them makes the splits that were asked for; a dry run foresees them."""
    jobs = Session(home, is_command=True).jobs
    dry = jobs.dry_run("train", question=CARS, divide=HALVES, name="first", evaluate_every=1)
    assert "--split train" in dry.submission
    assert "--evaluate_every 1" in dry.submission
    with pytest.raises(InvalidInput, match="split"):
        jobs.dry_run("train", question=CARS, name="first", evaluate_every=1)
    name = begin(home, name="few", divide=HALVES)
    assert ended(home, name).state == "done"
    (dataset,) = recorded_datasets(home.records)
    assert dataset.splits == {"train": 1, "validation": 1}
    assert dataset.question["split_by"] == "frame"


@pytest.mark.wide
def test_commands_of_jobs_take_a_question_s_options(home: Workspace) -> None:
    """All of them, whatever they do with their frames; none is left out or means something else."""
    conditions = {
        "--has": "car", "--without": "rain_dirt", "--share": "car=0:0.9", "--tag": "front>=0",
        "--time": "2026:2027", "--sql": "select filename from metaocean", "--order": "car desc",
        "--where": "car >= 0", "--camera": "front_center", "--range": "car=1:",
    }  # fmt: skip
    asked = [word for option in conditions.items() for word in option]
    divided = ["--divide", "train=0.5,validation=0.5", "--split-by", "frame", "--allow-leakage"]
    sampled = ["--sample", "4", *divided, "--dry-run", "--json"]
    (home.home / "model").mkdir()
    (home.home / "model" / "model.json").write_text("{}")
    model = str(home.home / "model")
    outputs = several(
        home.home,
        ["run", "--command", "true", *asked, *sampled, "--seed", "3"],
        ["train", *asked, *sampled, "--seed", "5", "--sample-seed", "3"],
        ["validate", model, *asked, *sampled, "--seed", "3"],
        ["predict", model, *asked, *sampled, "--seed", "3"],
        ["train", "--range", "car=1:", "--split-by", "frame", "--dry-run"],
    )
    for status, output, error in outputs[:4]:
        assert (status, error) == (0, "")
        assert json.loads(output)["frames"] == 4
    assert "--seed 5" in json.loads(outputs[1][1])["submission"]
    assert outputs[4][0] == 1
    assert outputs[4][2].startswith("error: --split-by: goes with --divide")


@pytest.mark.wide
def test_frames_that_there_are_not_fail_the_step_that_chooses_them(home: Workspace) -> None:
    """The job says so, and what would follow does not begin."""
    none = Question(ranges=(LabelRange(tag="car", lowest=10**9),))
    jobs = Session(home, is_command=True).jobs
    name = jobs.run(None, COMMAND, question=none).name
    with pytest.raises(JobFailed, match="select"):
        ended(home, name)
    job = recorded_job(home.records, name)
    assert [task.state for task in job.tasks] == ["failed", "pending", "pending", "pending"]


@pytest.mark.wide
def test_a_dry_run_shows_the_steps_with_the_frames_of_now(home: Workspace) -> None:
    """What would be submitted of a question's frames; nothing is recorded or written."""
    folders = [home.home / name for name in ("jobs", "datasets", "cache")]

    def kept() -> list[Path]:
        return sorted(file for folder in folders for file in folder.rglob("*") if file.is_file())

    before, jobs = kept(), Session(home, is_command=True).jobs
    dry = jobs.dry_run(
        "run", dataset=None, command=COMMAND, question=CARS, save_as="few", name="counts",
        evict=True, backend="slurm",
    )  # fmt: skip
    assert (dry.dataset, dry.frames) == ("few@1", 2)
    assert [(step.name, step.backend) for step in dry.steps] == [
        ("select", "local"), ("stage", "local"), ("prepare", "local"), ("run", "slurm"),
        ("evict", "local"),
    ]  # fmt: skip
    assert f"--manifest {home.home}/datasets/few/v1" in dry.submission
    assert dry.steps[3].submission == dry.submission
    assert "api.cli.job_step" in dry.steps[0].submission
    assert (jobs.list(), recorded_datasets(home.records), kept()) == ([], [], before)
    with pytest.raises(UnknownName, match="split 'night'"):
        jobs.dry_run("run", dataset=None, command=COMMAND, question=CARS, split="night")
    none = Question(ranges=(LabelRange(tag="car", lowest=10**9),))
    with pytest.raises(InvalidInput, match="has no frames"):
        jobs.dry_run("run", dataset=None, command=COMMAND, question=none)
    told = framesift(
        home.home, "run", "--range", "car=1:", "--limit", "2", "--command", COMMAND, "--dry-run"
    )
    assert told.stdout.startswith("# run-1@1: 2 frames\n==> select, on local <==\n"), told
    assert "\n==> run, on local <==\n" in told.stdout


@pytest.mark.wide
def test_a_training_begins_with_a_question_by_command(home: Workspace) -> None:
    """Ranges and cameras are options of it; it is recorded with what was asked."""
    begun = framesift(
        home.home, "train", "--range", "car=1:", "--camera", "front_center", "--save-as", "cars",
        "--max-steps", "1", "--workers", "1", "--name", "t", "--detach", "--json",
    )  # fmt: skip
    assert begun.returncode == 0, begun.stderr
    job = json.loads(begun.stdout)
    assert [task["name"] for task in job["tasks"]] == [
        "select", "stage", "prepare", "run", "collect",
    ]  # fmt: skip
    eventually(lambda: recorded_job(home.records, "t").dataset == "cars@1")
    assert framesift(home.home, "jobs", "cancel", "t").returncode == 0
    eventually(lambda: refresh(home.records, recorded_job(home.records, "t")).state == "cancelled")
    settings = recorded_job(home.records, "t").request["settings"]
    assert settings["question"]["cameras"] == ["front_center"]


def test_predictions_without_frames_name_options_that_choose_them(home: Workspace) -> None:
    """Neither a dataset nor a question: the message has an example."""
    told = framesift(home.home, "predict", "none")
    assert told.returncode == 1
    assert "predict: give a dataset, or the options of a question, such as --where" in told.stderr
