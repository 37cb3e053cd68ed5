"""Scaling studies: trainings, table and figure, and a study that ends and goes on."""

import json
import os
import signal
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from api.services.jobs.scaling import drive_study
from api.services.session import Session
from api.workspace import Workspace
from catalog.errors import InvalidInput, UnknownName
from catalog.records.datasets import complete_dataset, recorded_datasets
from catalog.records.jobs import recorded_job
from catalog.records.tables import Job
from catalog.values import now
from pipeline.jobs.request import JobPaths, read_json
from pipeline.jobs.scaling.figure import figure
from pipeline.jobs.scaling.runs import Run, keep_runs, kept_runs, measured_run, planned_runs
from pipeline.jobs.scaling.table import figures, rows_of, tables
from pipeline.runs.orders import Training
from pipeline.runs.scaling_order import Scaling, ranks_in
from query.question.label_range import LabelRange
from query.question.question import Question
from tests.pipeline.clusters import cluster_of, ended_well
from tests.pipeline.homes import REPOSITORY, copy_home, open_home
from tests.pipeline.test_datasets import make
from tests.pipeline.test_local_jobs import eventually

CARS = Question(ranges=(LabelRange(tag="car", lowest=1),), limit=4)
HALVES = {"split": "train=0.5,validation=0.5", "split_by": "frame", "allow_leakage": True}
SMALL: dict[str, Any] = {
    "max_steps": 2, "batch_size": 1, "height": 32, "width": 48, "prepare": False,
    "model": "tests.training.own_networks:two_layers",
}  # fmt: skip
"""Settings of a training that is soon done."""

ORDER = Scaling(dataset="city@1", ranks=(8, 16), repeats=5, epochs=3, seed=7, batch_size=16)


def run(ranks: int, repeat: int, seconds: float, images_per_s: float, **more: Any) -> Run:
    """A training of batches of 16."""
    return Run(ranks, repeat, f"s-r{ranks}-{repeat}", seconds, images_per_s, 16, **more)


PUBLISHED = [
    *(run(8, n, s, i) for n, (s, i) in enumerate(
        [(1328.0, 100.0), (1300.0, 90.0), (1350.0, 110.0), (1400.0, 95.0), (1310.0, 105.0)], 1)),
    *(run(16, n, s, i) for n, (s, i) in enumerate(
        [(740.0, 180.0), (700.0, 175.0), (760.0, 190.0), (735.0, 170.0), (900.0, 182.0)], 1)),
]  # fmt: skip
"""Five trainings each whose medians are 1328 s and 740 s, and 100 and 180 images a second."""


def test_trainings_of_a_study() -> None:
    """All numbers of ranks, then again; the seed is one more, the name says which it is."""
    planned = planned_runs(replace(ORDER, repeats=2), "study")
    assert planned == [
        (8, 1, "study-r8-1"), (16, 1, "study-r16-1"), (8, 2, "study-r8-2"), (16, 2, "study-r16-2"),
    ]  # fmt: skip
    training = ORDER.training(16, 3, "study-r16-3")
    assert training == Training(
        dataset="city@1", workers=16, epochs=3, seed=9, batch_size=16, name="study-r16-3"
    )


def test_medians_of_five_trainings() -> None:
    """1.8 times the images of 8 ranks on 16: efficiency 90 %, and what a step loses."""
    eight, sixteen = rows_of(PUBLISHED)
    assert (eight.ranks, eight.runs, eight.seconds, eight.images_per_s) == (8, 5, 1328.0, 100.0)
    assert (sixteen.seconds, sixteen.images_per_s) == (740.0, 180.0)
    assert (eight.speedup, eight.efficiency, eight.exchange_ms) == (1.0, 1.0, 0.0)
    assert (sixteen.speedup, sixteen.efficiency) == (1.8, 0.9)
    assert eight.step_ms == 8 * 16 / 100 * 1e3
    assert sixteen.step_ms == pytest.approx(16 * 16 / 180 * 1e3)
    assert sixteen.exchange_ms == pytest.approx(16 * 16 / 180 * 1e3 - 1280)
    medians, each = tables([eight, sixteen], PUBLISHED, None)
    assert medians["rows"] == [
        [8, 5, "1328.0", "100.0", "1.00x", "100%", "1280.0", "1280.0", "0.0"],
        [16, 5, "740.0", "180.0", "1.80x", "90%", "1422.2", "1280.0", "142.2"],
    ]
    assert len(each["rows"]) == 10
    named = figures([eight, sixteen])
    assert named["speedup_16_ranks"] == 1.8
    assert named["efficiency_16_ranks"] == 0.9
    assert "speedup_8_ranks" not in named


def test_the_time_to_a_target_counts_those_that_missed_it() -> None:
    """One of three that missed it is the slowest; where two did, no median says a time."""
    runs = [
        run(1, 1, 10, 5, seconds_to_target=4.0), run(1, 2, 10, 5), run(1, 3, 10, 5,
        seconds_to_target=8.0), run(2, 1, 10, 5), run(2, 2, 10, 5), run(2, 3, 10, 5,
        seconds_to_target=2.0),
    ]  # fmt: skip
    one, two = rows_of(runs)
    assert (one.seconds_to_target, one.reached) == (8.0, 2)
    assert (two.seconds_to_target, two.reached) == (None, 1)
    (medians, _) = tables([one, two], runs, 0.4)
    assert medians["columns"][-2:] == ["seconds to mIoU 0.4", "reached"]
    assert [row[-2:] for row in medians["rows"]] == [["8.0", "2 of 3"], ["", "1 of 3"]]


def test_the_figure_has_a_column_for_each_number_of_ranks() -> None:
    """In two panels, with its median over it; a title of a user's is no markup."""
    svg = figure(rows_of(PUBLISHED), "<city> & more")
    root = ElementTree.fromstring(svg)
    texts = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0] == "<city> & more"
    assert [text for text in texts if text in ("100", "180", "1,328", "740")] == [
        "100", "180", "1,328", "740",
    ]  # fmt: skip
    filled = [each for each in root.iter() if each.get("fill") == "#4477aa"]
    assert len(filled) == 4


def test_a_run_is_measured_after_its_start(tmp_path: Path) -> None:
    """By the median of its log's lines without the first; it comes back as it was kept."""
    lines = [
        {"step": step, "images_per_s": rate}
        for step, rate in ((1, 1.0), (100, 8.0), (200, 9.0), (300, 40.0))
    ]
    settings, metrics = {"batch_size": 16}, {"best_miou": 0.4, "seconds_to_target": 6.5}
    kept = measured_run(2, 1, "s-r2-1", 30.0, settings, metrics, lines)
    assert (kept.images_per_s, kept.miou, kept.seconds_to_target) == (9.0, 0.4, 6.5)
    assert measured_run(2, 1, "s", 3.0, {}, {}, lines[:1]).images_per_s == 1.0
    assert measured_run(2, 1, "s", 3.0, {}, {}, lines[:3]).images_per_s == 8.5
    keep_runs(tmp_path, {"s-r2-1": kept})
    assert kept_runs(tmp_path) == {"s-r2-1": kept}
    assert kept_runs(tmp_path / "none") == {}


def test_studies_that_cannot_be() -> None:
    """Each says what was given."""
    for order, message in (
        (Scaling(ranks=(1,)), "scaling: give a dataset, or the question"),
        (replace(ORDER, ranks=()), "expected 1 to 16 numbers"),
        (replace(ORDER, ranks=(1, 2, 1)), "ranks 1,2,1: name each number once"),
        (replace(ORDER, ranks=(0,)), "ranks 0: expected 1 to 1024"),
        (replace(ORDER, repeats=0), "repeats 0: expected 1 to 100"),
        (replace(ORDER, max_steps=3), "max steps 3 and epochs 3"),
        (replace(ORDER, target_miou=0.5), "evaluate every"),
    ):
        with pytest.raises(InvalidInput, match=message):
            order.check()
    with pytest.raises(InvalidInput, match="--ranks 1,two: expected whole numbers"):
        ranks_in("1,two")
    assert ranks_in("1, 2,16") == (1, 2, 16)
    with pytest.raises(UnknownName):
        replace(ORDER, epochs=None, model="big_net").check()


@pytest.fixture
def home(catalogued: Path, tmp_path: Path) -> Workspace:
    """A home with a dataset."""
    workspace = open_home(copy_home(catalogued, tmp_path / "home"))
    make(workspace, "city")
    return workspace


def test_a_study_goes_on_with_trainings_that_are_done(home: Workspace) -> None:
    """Its driver died after each had ended, and with one kept: none begins again, all count."""
    order = replace(ORDER, ranks=(1, 2), repeats=1, batch_size=4, epochs=None, max_steps=200)
    folder = home.jobs / "study"
    with home.records.session() as session:
        dataset = complete_dataset(home.records, "city@1").id
        for name, kind in (("study", "scaling"), ("study-r2-1", "train"), ("study-r2-10", "train")):
            paths = JobPaths(home.jobs / name)
            paths.model.mkdir(parents=True)
            lines = [{"step": 1, "images_per_s": 1.0}, {"step": 200, "images_per_s": 14.0}]
            (paths.model / "metrics.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
            request = {
                "stages": [], "settings": {"batch_size": 4}, "order": order.as_json(),
                "asked": {"caller": "", "scope": "", "is_command": True, "at": None},
            }  # fmt: skip
            state = "running" if kind == "scaling" else "done"
            session.add(
                Job(
                    name=name, kind=kind, backend="local", state=state, dataset_id=dataset,
                    request=request, started=now(), finished=now() if state == "done" else None,
                    paths={"folder": str(paths.folder), "logs": str(paths.logs)},
                )
            )  # fmt: skip
    first = Run(1, 1, "study-r1-1", 30.0, 10.0, 4)
    keep_runs(folder, {first.job: first})
    told: list[str] = []
    drive_study(home, folder, told.append)
    assert len(told) == 1
    assert told[0].startswith("study-r2-1: 14.0 images/s in ")
    assert told[0].endswith("(2 of 2)")
    result = read_json(folder / "result.json")
    assert (result["trainings"], result["of_trainings"]) == (2, 2)
    assert result["speedup_2_ranks"] == 1.4
    assert [row[0] for row in result["tables"][1]["rows"]] == ["study-r1-1", "study-r2-1"]
    assert (folder / "scaling.svg").is_file()
    with home.records.reading() as session:
        assert session.query(Job).count() == 3


def test_a_study_is_described(home: Workspace) -> None:
    """Each number of ranks as its training would be submitted; too many are refused at once."""
    jobs = Session(home, is_command=True).jobs
    asked: dict[str, Any] = {"dataset": "city", "ranks": [1, 2], "repeats": 3, "max_steps": 5}
    described = jobs.dry_run("scaling", backend="slurm", **asked)
    assert [step.name for step in described.steps] == ["training-r1", "training-r2"]
    assert [step.backend for step in described.steps] == ["slurm", "slurm"]
    assert "--num_workers 2" in described.steps[1].submission
    assert described.dataset == "city@1"
    with pytest.raises(InvalidInput, match="workers 1,000"):
        jobs.scaling(**{**asked, "ranks": [1, 1000]})
    assert jobs.list() == []


@pytest.mark.training
def test_a_study_is_cancelled_and_goes_on(home: Workspace) -> None:
    """With the training that it was at; at its end each ran once, on one rank and on two."""
    jobs = Session(home, is_command=True).jobs
    study = jobs.scaling(
        "city", ranks=[1, 2], repeats=1, max_steps=4, batch_size=1, height=32, width=48,
        prepare=False, name="study",
    )  # fmt: skip

    def cancel_once(job: Any) -> None:
        state = next((each.state for each in jobs.list() if each.name == "study-r1-1"), "")
        if state == "running" and job.state == "running":
            jobs.cancel("study")

    with pytest.raises(Exception, match="cancelled"):
        jobs.wait(study.name, progress=cancel_once)
    assert recorded_job(home.records, "study").state == "cancelled"
    jobs.resume("study")
    job = jobs.wait("study", progress=lambda _: None)
    trainings = {each.name: each for each in jobs.list(kind="train")}
    assert {name: each.state for name, each in trainings.items()} == {
        "study-r1-1": "done", "study-r2-1": "done",
    }  # fmt: skip
    assert trainings["study-r2-1"].settings["workers"] == 2
    assert job.metrics["of_trainings"] == job.metrics["trainings"] == 2
    rows = job.metrics["tables"][0]["rows"]
    assert [row[:2] for row in rows] == [[1, 1], [2, 1]]


def test_a_study_of_a_question_is_described(home: Workspace) -> None:
    """With the dataset that its frames would become; nothing is saved."""
    jobs = Session(home, is_command=True).jobs
    asked: dict[str, Any] = {"question": CARS, "divide": HALVES, "max_steps": 5}
    described = jobs.dry_run("scaling", **asked)
    assert [step.name for step in described.steps] == ["training-r1", "training-r2"]
    assert (described.dataset, described.frames) == ("scaling-1@1", 4)
    assert jobs.dry_run("scaling", save_as="cars", **asked).dataset == "cars@1"
    with pytest.raises(InvalidInput, match="give a dataset, or the question of a selection"):
        jobs.scaling("city", **asked)
    with pytest.raises(InvalidInput, match="workers 1,000"):
        jobs.scaling(ranks=[1000], **asked)
    assert jobs.list() == []
    assert [each.name for each in recorded_datasets(home.records)] == ["city"]


def killed(folder: Path) -> int:
    """The process that drives a study, killed at once; 0 where there is none yet."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if "api.cli.job_step" in words and words[-3:-1] == [str(folder), "scaling"]:
            os.kill(int(path.parent.name), signal.SIGKILL)
            return int(path.parent.name)
    return 0


@pytest.mark.training
def test_a_study_of_a_question_on_a_cluster(
    home: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its driver is killed while the second training runs; the next one waits for that training.

    The frames are one dataset, which both trainings read; each of them ran once.
    """
    jobs = Session(home, is_command=True).jobs
    pids: list[int] = []
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))  # where the network is

    def kill_once(_: Any) -> None:
        states = {each.name: each.state for each in jobs.list(kind="train")}
        if not pids and states.get("study-r2-1") == "running":
            pids.append(killed(home.jobs / "study"))

    with cluster_of("lsf", tmp_path, home.home) as cluster:
        for name, value in cluster.items():
            monkeypatch.setenv(name, value)
        jobs.scaling(
            question=CARS, save_as="cars", name="study", ranks=[1, 2], repeats=1, backend="lsf",
            **SMALL,
        )  # fmt: skip
        study = jobs.wait("study", progress=kill_once)
        eventually(lambda: ended_well(cluster))
        assert len({task["job"] for task in cluster.tasks()}) == 2
    assert len(pids) == 1
    assert pids[0] > 0
    tasks = [(task.name, task.backend, task.attempt) for task in study.tasks]
    assert tasks == [("select", "local", 1), ("run", "local", 2)]
    trainings = [(each.name, each.backend, each.dataset, each.state, each.attempt)
                 for each in jobs.list(kind="train")]  # fmt: skip
    assert sorted(trainings) == [
        ("study-r1-1", "lsf", "cars@1", "done", 1), ("study-r2-1", "lsf", "cars@1", "done", 1),
    ]  # fmt: skip
    assert (study.dataset, study.metrics["trainings"]) == ("cars@1", 2)
    assert [row[0] for row in study.metrics["tables"][1]["rows"]] == ["study-r1-1", "study-r2-1"]


@pytest.mark.training
def test_the_time_to_a_target_over_two_seeds(
    home: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The median of what both trainings took to a score that each of them reaches."""
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    jobs = Session(home, is_command=True).jobs
    jobs.scaling(
        question=CARS, divide=HALVES, name="study", ranks=[1], repeats=2, evaluate_every=1,
        target_miou=1e-6, seed=5, **SMALL,
    )  # fmt: skip
    study = jobs.wait("study", progress=lambda _: None)
    trainings = {each.name: each for each in jobs.list(kind="train")}
    assert {name: each.settings["seed"] for name, each in trainings.items()} == {
        "study-r1-1": 5, "study-r1-2": 6,
    }  # fmt: skip
    times = [each.metrics["seconds_to_target"] for each in trainings.values()]
    assert min(times) > 0
    assert study.metrics["seconds_to_target_1_ranks"] == round(statistics.median(times), 2)
    assert study.metrics["tables"][0]["columns"][-2:] == ["seconds to mIoU 1e-06", "reached"]
    assert study.metrics["tables"][0]["rows"][0][-1] == "2 of 2"
