"""Long work over REST: scans, stagings, trainings; followed, read, cancelled."""

import json
import time
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient

import framesift as framesift_client
from api.app import create_app
from api.cli.commands.jobs.validate import follow_all
from api.services.jobs.files import report_file
from api.services.session import Session
from api.settings import Settings
from api.workspace import Workspace
from catalog.errors import JobFailed, NotFound
from catalog.records.datasets import recorded_dataset
from catalog.records.jobs import recorded_job, recorded_jobs
from catalog.records.tables import Job
from catalog.values import now
from pipeline.jobs.backends.registry import BACKENDS
from pipeline.jobs.program.paths import ProgramPaths
from pipeline.jobs.request import JobPaths, write_json
from pipeline.jobs.workflow.moves import add_task, new_task
from pipeline.jobs.workflow.task_paths import RUN
from tests.api.servers import framesift, serving, wait_until
from tests.api.test_statistics import a_report
from tests.pipeline.homes import SAMPLE, copy_home, open_home
from tests.pipeline.test_datasets import make

TRAINED = {"split": "train", "max_steps": 7}


Served = tuple[httpx.Client, Workspace]


@pytest.fixture(scope="module")
def filled(shared_home: Path) -> Iterator[Workspace]:
    """A home with the dataset "all"."""
    workspace = open_home(shared_home)
    make(workspace, "all", split="train=0.75,validation=0.25")
    yield workspace
    workspace.close()


@pytest.fixture(scope="module")
def served(filled: Workspace) -> Iterator[Served]:
    """A server, and its home."""
    with serving(filled.home) as (url, _), httpx.Client(base_url=url, timeout=120) as client:
        yield client, filled


@pytest.fixture(scope="module")
def served_by_two(filled: Workspace) -> Iterator[Served]:
    """A server of two processes, and its home."""
    with (
        serving(filled.home, "--workers", "2") as (url, _),
        httpx.Client(base_url=url, timeout=120) as client,
    ):
        yield client, filled


def recorded(workspace: Workspace, name: str, kind: str, state: str, **paths: str) -> JobPaths:
    """A job that the records hold as it would be found; its paths."""
    files = JobPaths(workspace.jobs / name)
    files.logs.mkdir(parents=True)
    with workspace.records.session() as session:
        job = Job(
            name=name, kind=kind, backend="local", state=state, handle="1:1",
            request={"stages": [], "settings": TRAINED}, started=now(), finished=now(),
            dataset_id=1,
            paths={"folder": str(files.folder), "logs": str(files.logs), **paths},
            metrics={"loss": 0.5},
        )  # fmt: skip
        session.add(job)
        session.flush()
        add_task(session, job, task := new_task(RUN))
        task.state, task.handle, task.started = state, job.handle, job.started
        if state == "pending":
            task.handle, task.not_before = "", now() + timedelta(minutes=30)
    return files


def dataset_is(client: Any, path: str, name: str) -> bool:
    """Return whether a job works on that dataset by now."""
    return bool(client.get(path).json()["dataset"] == name)


def events(client: httpx.Client, name: str, last_id: str = "") -> list[tuple[str, dict[str, Any]]]:
    """Id and job of every event until the stream ends."""
    headers = {"Last-Event-ID": last_id} if last_id else {}
    events_seen = []
    with client.stream("GET", f"/v1/jobs/{name}/events", headers=headers, timeout=300) as answer:
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        for block in "".join(answer.iter_text()).split("\n\n"):
            fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
            if fields.get("event") == "job":
                events_seen.append((fields["id"], json.loads(fields["data"])))
    return events_seen


def ended(client: httpx.Client, name: str) -> dict[str, Any]:
    """The job once it has ended."""
    deadline = time.monotonic() + 300
    while (job := client.get(f"/v1/jobs/{name}").json())["state"] not in ("done", "failed"):
        assert time.monotonic() < deadline, job
        time.sleep(0.2)
    state: dict[str, Any] = job
    return state


@pytest.mark.wide
def test_a_scan_is_a_job_that_is_followed(served_by_two: Served) -> None:
    """202 and where the job is; its events; its log; the scan that it made."""
    client, _ = served_by_two
    answer = client.post("/v1/scans", json={"source": "a2d2", "full": True})
    assert answer.status_code == 202, answer.text
    job = answer.json()
    assert answer.headers["location"] == f"/v1/jobs/{job['name']}"
    assert (job["kind"], job["state"]) == ("scan", "pending")
    messages = events(client, job["name"])
    last_id, last = messages[-1]
    assert (last["state"], last["error"]) == ("done", "")
    assert last["metrics"]["frames"] == 24
    assert len({id_ for id_, _ in messages}) == len(messages)
    assert last == client.get(f"/v1/jobs/{job['name']}").json()
    # A client that has seen the end is told to come no more.
    seen = client.get(f"/v1/jobs/{job['name']}/events", headers={"Last-Event-ID": last_id})
    assert (seen.status_code, seen.content) == (204, b"")
    assert [id_ for id_, _ in events(client, job["name"], "another")] == [last_id]
    result = client.get(f"/v1/jobs/{job['name']}/files/result.json").json()
    assert result == last["metrics"] | {"problems": []}
    scan = client.get(f"/v1/scans/{last['metrics']['scan']}").json()
    assert (scan["source"], scan["state"], scan["counts"]["frames"]) == ("a2d2", "done", 24)


def test_logs(served: Served) -> None:
    """All under headings; one as it is, from an offset on; nothing beside them."""
    client, workspace = served
    files = recorded(workspace, "logged", "scan", "done")
    files.log("command", 0).write_bytes(b"one\ntwo\n")
    (files.logs / "runner.log").write_bytes(b"")
    (files.folder / "secret.log").write_bytes(b"secret")
    logs = "/v1/jobs/logged/logs"
    whole = client.get(logs)
    assert whole.text == "==> command-0.log <==\none\ntwo\n==> runner.log <==\n"
    assert whole.headers["content-type"] == "text/plain; charset=utf-8"
    for offset, text in ((0, "one\ntwo\n"), (4, "two\n"), (8, "")):
        answer = client.get(logs, params={"command": "command-0", "offset": offset})
        assert (answer.text, answer.headers["content-length"]) == (text, str(len(text)))
    refused: list[tuple[dict[str, Any], int]] = [
        ({"command": "command-0", "offset": 9}, 400), ({"offset": 1}, 400),
        ({"command": "../secret"}, 400), ({"command": "none"}, 400), ({"offset": -1}, 422),
    ]  # fmt: skip
    for parameters, status in refused:
        assert client.get(logs, params=parameters).status_code == status
    assert client.get("/v1/jobs/none/logs").status_code == 404
    with framesift_client.connect(str(client.base_url)) as remote:
        assert list(remote.jobs.get("logged").follow_logs()) == [("command-0", "one\ntwo\n")]


def test_jobs_beside_each_other(served: Served) -> None:
    """The settings in which they differ, and what each measured; the client asks the same."""
    client, workspace = served
    for name in ("left", "right"):
        recorded(workspace, name, "train", "failed")
    with workspace.records.session() as session:
        right = session.query(Job).filter_by(name="right").one()
        right.request = {**right.request, "settings": TRAINED | {"max_steps": 9}}
        right.metrics = {"loss": 0.25, "miou": 0.5, "staging": {"files": 3}}
    answer = client.post("/v1/jobs/compare", json={"jobs": ["left", "right"]})
    compared = answer.json()
    assert compared["job"]["state"] == ["failed", "failed"]
    assert compared["settings"] == {"max_steps": [7, 9]}
    assert compared["metrics"] == {"loss": [0.5, 0.25], "miou": [None, 0.5]}
    with framesift_client.connect(str(client.base_url)) as remote:
        assert remote.jobs.compare(["left", remote.jobs.get("right")]) == compared
    for body, status in (
        ({"jobs": ["left"]}, 422), ({"jobs": ["left", "none"]}, 404), ({"jobs": []}, 422),
    ):  # fmt: skip
        assert client.post("/v1/jobs/compare", json=body).status_code == status


@pytest.mark.wide
def test_a_dataset_is_staged_by_a_job(served: Served) -> None:
    """The version that was newest when it was asked for; then a staging."""
    client, workspace = served
    assert client.get("/v1/stagings").json() == {"stagings": [], "next": None}
    answer = client.post("/v1/stagings", json={"dataset": "all", "workers": 2})
    assert answer.status_code == 202, answer.text
    job = ended(client, answer.json()["name"])
    assert (job["kind"], job["state"], job["error"]) == ("stage", "done", "")
    (staging,) = client.get("/v1/stagings", params={"dataset": "all@1"}).json()["stagings"]
    assert (staging["dataset"], staging["state"]) == ("all@1", "done")
    assert staging["files_copied"] == job["metrics"]["files_copied"] == 48
    assert staging["cache"] == str(workspace.cache)
    assert client.get(f"/v1/stagings/{staging['staging']}").json() == staging
    for path, status in (
        ("/v1/stagings/999", 404), ("/v1/stagings?dataset=none", 404), ("/v1/stagings/x", 422),
    ):  # fmt: skip
        assert client.get(path).status_code == status
    assert client.post("/v1/stagings", json={"dataset": "none"}).status_code == 404
    answer = client.post("/v1/stagings", json={"dataset": "all", "prepare": "240"})
    assert (answer.status_code, "expected WIDTHxHEIGHT" in answer.text) == (400, True)


def test_a_cancelled_job(served: Served) -> None:
    """202 whether or not it still runs; it ends cancelled, or was faster."""
    client, _ = served
    name = client.post("/v1/scans", json={"source": "a2d2"}).json()["name"]
    answer = client.post(f"/v1/jobs/{name}/cancel")
    assert (answer.status_code, answer.headers["location"]) == (202, f"/v1/jobs/{name}")
    assert events(client, name)[-1][1]["state"] in ("cancelled", "done")
    assert client.post(f"/v1/jobs/{name}/cancel").status_code == 202
    assert client.post("/v1/jobs/none/cancel").status_code == 404


def test_refused_jobs(served: Served) -> None:
    """Nothing is begun: the dataset, split, model or settings are not there, or not usable."""
    client, workspace = served
    recorded(workspace, "a-scan", "scan", "done")
    before = len(recorded_jobs(workspace.records))
    train = {"kind": "train", "dataset": "all"}
    validate = {"kind": "validate", "dataset": "all", "model": "a-scan"}
    for body, status in (
        (train | {"dataset": "none"}, 404), (train | {"split": "none"}, 400),
        (train | {"workers": 0}, 422), (train | {"learning_rate": -1}, 422),
        (train | {"name": "a/b"}, 400), (train | {"name": "a-scan"}, 409),
        (train | {"backend": "none"}, 400), (train | {"manifest": "/etc"}, 422),
        (train | {"max_steps": 3, "epochs": 1}, 400), (train | {"epochs": 0}, 422),
        (train | {"continue_from": "none"}, 404), (train | {"continue_from": str(SAMPLE)}, 404),
        (train | {"continue_from": "a-scan"}, 400), (validate | {"batch_size": 4}, 422),
        (train | {"classes": "/etc/passwd"}, 422), (train | {"classes": {"classes": {}}}, 400),
        (train | {"model": "os:nice"}, 422), (train | {"backbone_weights": "w.h5"}, 422),
        (validate, 400), (validate | {"model": str(SAMPLE)}, 404), ({"kind": "x"}, 422), ({}, 422),
    ):  # fmt: skip
        answer = client.post("/v1/jobs", json=body)
        assert answer.status_code == status, (body, answer.text)
        assert answer.headers["content-type"] == "application/problem+json"
    assert client.post("/v1/scans", json={"source": "none"}).status_code == 404
    assert len(recorded_jobs(workspace.records)) == before


@pytest.mark.wide
def test_trainings_and_validations(served_by_two: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the body says is what runs; tests/pipeline/test_main_job.py runs the real thing."""
    monkeypatch.setitem(BACKENDS, "keeping", "tests.pipeline.test_run:Keeping")
    _, workspace = served_by_two
    app = create_app(Settings(home=workspace.home, cache=None), authenticates=False)
    with TestClient(app) as client:
        body = {"kind": "train", "dataset": "all@1", "workers": 1, "max_steps": 7, "seed": 3}
        more = {"learning_rate": 0.5, "height": 64, "name": "t-1", "backend": "keeping"}
        more |= {"prepare": False, "classes": "a2d2-8", "model": "deeplabv3plus_resnet50"}
        answer = client.post("/v1/jobs", json=body | more)
        assert answer.status_code == 202, answer.text
        assert answer.headers["location"] == "/v1/jobs/t-1"
        job = answer.json()
        assert job["settings"]["prepare"] is False
        (command,) = job["request"]["stages"][0]["commands"]
        told = dict(pairwise(command))
        assert (told["--max_steps"], told["--seed"], told["--height"]) == ("7", "3", "64")
        assert told["--model"] == "deeplabv3plus_resnet50"
        assert '"name": "a2d2-8"' in told["--classes"]
        assert (told["--learning_rate"], told["--split"]) == ("0.5", "train")
        asks = {"gpus": 2, "wall_minutes": 60, "options": {"partition": "gpu"}}
        submission = {"backend": "slurm", "resources": asks, "name": "t-0"}
        answer = client.post("/v1/jobs/dry-run", json=body | submission)
        assert answer.status_code == 200, answer.text
        for word in ("sbatch --parsable", "--partition=gpu", "--gres=gpu:2", "training.main"):
            assert word in answer.json()["submission"]
        assert client.get("/v1/jobs/t-0").status_code == 404
        assert not (workspace.jobs / "t-0").exists()
        answer = client.post("/v1/jobs", json=body | {"resources": asks})
        assert (answer.status_code, answer.json()["title"]) == (400, "InvalidInput")
        model = Path(job["paths"]["model_dir"])
        model.mkdir(parents=True)
        write_json(model / "model.json", {})
        body = {"kind": "train", "dataset": "all", "epochs": 2, "continue_from": "t-1"}
        answer = client.post("/v1/jobs", json=body | {"name": "t-2", "backend": "keeping"})
        assert answer.status_code == 202, answer.text
        told = dict(pairwise(answer.json()["request"]["stages"][0]["commands"][0]))
        assert (told["--epochs"], told["--continue_from"]) == ("2", str(model.resolve()))
        assert "--max_steps" not in told
        body = {"kind": "validate", "dataset": "all", "model": "t-1", "workers": 3}
        wrong = client.post("/v1/jobs", json=body | {"fail_below": {"cow": 0.3}})
        assert (wrong.status_code, wrong.json()["title"]) == (400, "UnknownName")
        wrong = client.post("/v1/jobs", json=body | {"bad_frames": "skip:all"})
        assert (wrong.status_code, wrong.json()["title"]) == (400, "InvalidInput")
        wrong = client.post("/v1/jobs", json=body | {"compare": "none"})
        assert (wrong.status_code, wrong.json()["title"]) == (404, "NotFound")
        beside = {"compare": "t-1", "name": "beside", "backend": "keeping", "slices": ["camera"]}
        answer = client.post("/v1/jobs", json=body | beside)
        assert answer.status_code == 202, answer.text
        assert answer.json()["settings"]["compare"] == "t-1"
        assert answer.json()["settings"]["slices"] == ["camera"]
        (merge,) = answer.json()["request"]["stages"][1]["commands"]
        assert merge[-2] == "--slices"
        assert pq.read_table(merge[-1]).column_names == ["camera"]
        assert client.post("/v1/jobs/beside/cancel").status_code == 202
        body |= {"fail_below": {"miou": 0.4, "car": 0.25}, "bad_frames": "skip:5"}
        answer = client.post("/v1/jobs", json=body | {"name": "v-2", "backend": "keeping"})
        assert answer.status_code == 202, answer.text
        evaluate, merge = answer.json()["request"]["stages"]
        assert len(evaluate["commands"]) == 3
        flags = ["--fail_below", "miou=0.4,car=0.25", "--bad_frames", "skip:5"]
        assert merge["commands"][0][-4:] == flags
        assert dict(pairwise(evaluate["commands"][0]))["--bad_frames"] == "skip:5"
        assert client.post("/v1/jobs/v-2/cancel").status_code == 202
        ended = client.get("/v1/jobs/v-2").json()
        assert (ended["state"], ended["attempt"]) == ("cancelled", 1)
        assert (ended["dataset"], ended["split"]) == ("all@1", "validation")
        assert ended["settings"]["model"] == "t-1"
        answer = client.post("/v1/jobs/v-2/resume")
        assert (answer.status_code, answer.headers["location"]) == (202, "/v1/jobs/v-2")
        assert (answer.json()["attempt"], answer.json()["state"]) == (2, "pending")
        assert answer.json()["request"] == ended["request"] | {"attempt": 2}
        write_json(JobPaths(workspace.jobs / "v-2").status, {"state": "failed", "error": "bad"})
        answer = client.post("/v1/jobs/v-2/resume", json={"workers": 3})
        assert answer.status_code == 400
        assert "only a training goes on with another number" in answer.json()["detail"]
        assert client.post("/v1/jobs/v-2/resume", json={"split": "x"}).status_code == 422
        again = client.post("/v1/jobs/v-2/resume", json={"bad_frames": "skip:7"}).json()
        assert (again["attempt"], again["settings"]["bad_frames"]) == (3, "skip:7")
        write_json(JobPaths(workspace.jobs / "v-2").status, {"state": "done"})
        answer = client.post("/v1/jobs/v-2/resume")
        assert (answer.status_code, answer.json()["title"]) == (400, "InvalidInput")
        assert client.post("/v1/jobs/none/resume").status_code == 404
        assert client.post("/v1/jobs/t-1/cancel").status_code == 202
        asked: dict[str, Any] = {"kind": "predict", "model": "t-1", "backend": "keeping"}
        asked |= {"workers": 3}
        answer = client.post("/v1/jobs", json=asked | {"dataset": "all", "name": "p-1"})
        assert answer.status_code == 202, answer.text
        predicting, joining = answer.json()["request"]["stages"]
        assert [len(predicting["commands"]), len(joining["commands"])] == [3, 1]
        assert answer.json()["split"] == "validation"
        few: dict[str, Any] = {"question": {"ranges": [{"tag": "car", "lowest": 1}], "limit": 2}}
        asked |= {"workers": 2, "backend": "local"}
        for _ in range(2):  # the same frames are one version
            answer = client.post("/v1/jobs", json=asked | few)
            assert answer.status_code == 202, answer.text
            assert [task["name"] for task in answer.json()["tasks"]] == [
                "select", "stage", "prepare", "run", "collect",
            ]  # fmt: skip
            path = f"/v1/jobs/{answer.json()['name']}"
            is_saved = partial(dataset_is, client, path, "predict-t-1@1")
            wait_until(is_saved)
            assert client.post(f"{path}/cancel").status_code == 202
        assert client.get("/v1/datasets/predict-t-1").json()["frames"] == 2
        for refused in ({}, few | {"dataset": "all"}, few | {"model": "none"}):
            assert client.post("/v1/jobs", json=asked | refused).status_code in (400, 404)


@pytest.mark.wide
def test_a_dry_run_of_a_question(served: Served) -> None:
    """By the client: each step, and what would be trained with the frames that answer it now.

    A validation's slices are those of these frames, too.
    """
    client, workspace = served
    few = {"ranges": [{"tag": "car", "lowest": 1}], "limit": 2}
    path = workspace.jobs / "dry-model" / "model"
    for folder in (path, path / "best"):
        folder.mkdir(parents=True)
        write_json(folder / "model.json", {})
    recorded(workspace, "dry-model", "train", "done", model_dir=str(path))
    with framesift_client.connect(str(client.base_url)) as remote:
        dry = remote.jobs.dry_run("train", question=few, workers=1, save_as="dry", evict=True)
        sliced = remote.jobs.dry_run(
            "validate", model="dry-model", question=few, save_as="dry", slices=["camera"]
        )
        predicts = remote.jobs.dry_run("predict", model="dry-model@best", question=few)
    assert "--slices" in sliced["submission"]
    assert predicts["dataset"] == "predict-dry-model-best@1"
    assert "checkpoints/dry-model@best" in predicts["submission"]
    assert client.delete("/v1/jobs/dry-model").status_code in (200, 204)
    assert (dry["dataset"], dry["frames"]) == ("dry@1", 2)
    assert [step["name"] for step in dry["steps"]] == [
        "select", "stage", "prepare", "run", "collect", "evict",
    ]  # fmt: skip
    assert "training.main" in dry["submission"]
    assert client.get("/v1/datasets/dry").status_code == 404
    assert not list(workspace.jobs.glob("train-dry*"))


def test_preflights_and_studies(served: Served) -> None:
    """Described by the client; the page has their tables, and a study's figure where there is one.

    Cells of a program's are no markup.
    """
    client, workspace = served
    with framesift_client.connect(str(client.base_url)) as remote:
        dry = remote.jobs.dry_run("preflight", ranks=2, largest_mib=4)
    assert (dry["dataset"], dry["frames"]) == (None, 0)
    assert "training.preflight.main" in dry["submission"]
    wrong = client.post("/v1/jobs", json={"kind": "preflight", "path": "/etc", "evict": True})
    assert wrong.status_code == 422
    table = {"title": "Medians", "columns": ["ranks", "images/s"], "rows": [[16, "<b>1.8x</b>"]]}
    for name in ("study-a", "study-b"):
        recorded(workspace, name, "scaling", "done")
        with workspace.records.session() as session:
            job = session.query(Job).filter(Job.name == name).one()
            job.metrics = {"speedup_16_ranks": 1.8, "tables": [table, {"rows": 3}]}
    (workspace.jobs / "study-a" / "scaling.svg").write_text("<svg/>")
    figure = "/jobs/study-a/files/scaling.svg"
    page = client.get("/jobs/study-a").text
    assert "<caption>Medians</caption>" in page
    assert "&lt;b&gt;1.8x&lt;/b&gt;" in page
    assert f'src="{figure}"' in page
    assert client.get(figure).headers["content-type"].startswith("image/svg+xml")
    other = client.get("/jobs/study-b").text
    assert "<caption>Medians</caption>" in other
    assert "scaling.svg" not in other
    compared = client.post("/v1/jobs/compare", json={"jobs": ["study-a", "study-b"]}).json()
    assert compared["metrics"] == {"speedup_16_ranks": [1.8, 1.8]}
    for name in ("study-a", "study-b"):
        assert client.delete(f"/v1/jobs/{name}").status_code in (200, 204)


def test_a_command_says_a_job_s_warnings(home: Path) -> None:
    """What a training or a validation warns of is not left to those who read its files."""
    workspace = open_home(home)
    make(workspace, "all")
    recorded(workspace, "v", "validate", "done")
    warning = "the model was trained on all 4 frames that it is validated on"
    with workspace.records.session() as session:
        job = session.get_one(Job, recorded_job(workspace.records, "v").id)
        job.metrics = {"miou": 0.5, "warnings": [warning]}
    run = framesift(home, "jobs", "show", "v")
    assert run.returncode == 0, run.stderr
    assert f"warning: {warning}" in " ".join(run.stdout.split())
    assert run.stdout.count("warning") == 1


def test_settings_that_have_entries_are_shown_in_lines(home: Path) -> None:
    """A run's lineage and question: a line for each entry, and no JSON document."""
    workspace = open_home(home)
    make(workspace, "all")
    recorded(workspace, "r", "run", "done")
    lineage = {"dataset": "all@1", "snapshot": 3, "environment": {}}
    question = {"ranges": [{"tag": "car", "lowest": 1}], "cameras": ["front_center", "rear_center"]}
    with workspace.records.session() as session:
        job = session.get_one(Job, recorded_job(workspace.records, "r").id)
        settings = {"lineage": lineage, "question": question, "ranks": 2}
        job.request = {**job.request, "settings": settings}
    shown = [line.split() for line in framesift(home, "jobs", "show", "r").stdout.splitlines()]
    for row in (
        ["lineage", "dataset", "all@1"], ["lineage", "snapshot", "3"], ["ranks", "2"],
        ["question", "cameras", "front_center,", "rear_center"],
        ["question", "ranges", '{"tag":', '"car",', '"lowest":', "1}"],
    ):  # fmt: skip
        assert row in shown
    assert not any(row[:1] == ["lineage"] and "environment" in row for row in shown)


def test_a_command_fails_below_a_least_score(home: Path) -> None:
    """A validation that is done fails its command where a score was not reached, and names each."""
    workspace = open_home(home)
    make(workspace, "all")
    recorded(workspace, "v", "validate", "done")
    below = [
        {"score": "miou", "least": 0.4, "value": 0.31, "reached": False},
        {"score": "bicycle", "least": 0.3, "value": None, "reached": False},
    ]
    for found, status in ((below, 1), ([], 0)):
        with workspace.records.session() as session:
            job = session.get_one(Job, recorded_job(workspace.records, "v").id)
            job.metrics = {"miou": 0.31, "below": found}
        waited = framesift(home, "jobs", "wait", "v")
        assert waited.returncode == status, waited.stderr
        if found:
            said = " ".join(waited.stderr.split())
            assert "job v: miou is 0.3100, below 0.4" in said
            assert "bicycle is unknown (its class has no truth in the split), below 0.3" in said


def test_validations_of_several_datasets_are_one_table(
    catalogued: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A row for each, their warnings, and the first that is below a least score ends it."""
    workspace = open_home(copy_home(catalogued, tmp_path))
    make(workspace, "all")
    jobs = Session(workspace, is_command=True).jobs
    below = [{"score": "miou", "least": 0.5, "value": 0.4, "reached": False}]
    worse = {"compared_with": "night", "regressions": ["miou", "car"], "miou_difference": -0.125}
    worse |= {"miou_difference_low": -0.25, "miou_difference_high": -0.0625}
    for name, miou, more in (
        ("v-1", 0.6, worse),
        ("v-2", 0.4, {"below": below, "warnings": ["x"]}),
    ):
        recorded(workspace, name, "validate", "done")
        with workspace.records.session() as session:
            job = session.get_one(Job, recorded_job(workspace.records, name).id)
            job.metrics = {"miou": miou, "frames": 4, "miou_low": 0.1, "miou_high": 0.7, **more}
    begun = [jobs.get(name) for name in ("v-1", "v-2")]
    with pytest.raises(JobFailed, match=r"job v-2: miou is 0\.4000, below 0\.5"):
        follow_all(jobs, begun, detach=False, as_json=False)
    told = capsys.readouterr().out
    assert told.count("0.1000 to 0.7000") == 2
    assert "-0.2500 to -0.0625" in told
    assert "worse than night: miou, car" in told
    assert "warning: all@1: x" in told
    follow_all(jobs, begun[:1], detach=False, as_json=True)
    assert [job["name"] for job in json.loads(capsys.readouterr().out)] == ["v-1"]
    recorded(workspace, "v-0", "validate", "failed")
    with workspace.records.session() as session:
        job = session.get_one(Job, recorded_job(workspace.records, "v-0").id)
        job.error, job.metrics = "it was killed", {}
    with pytest.raises(JobFailed, match="job v-0 failed: it was killed"):
        follow_all(jobs, [jobs.get("v-0"), *begun], detach=False, as_json=False)
    told = capsys.readouterr().out
    assert told.count("0.1000 to 0.7000") == 2
    assert "failed: all@1: it was killed" in told
    workspace.close()


def test_validations_begin_together_or_not_at_all(catalogued: Path, tmp_path: Path) -> None:
    """Where one of several datasets cannot be validated on, none is begun."""
    workspace = open_home(copy_home(catalogued, tmp_path))
    make(workspace, "all")
    model = workspace.jobs / "t" / "model"
    recorded(workspace, "t", "train", "done", model_dir=str(model))
    model.mkdir()
    (model / "model.json").write_text("{}")
    run = framesift(workspace.settings.home, "validate", "t", "all", "nothing", "--json")
    assert run.returncode == 1
    assert "nothing" in run.stderr
    assert [job.name for job in recorded_jobs(workspace.records)] == ["t"]
    workspace.close()


def test_jobs_are_listed_by_pages_and_filtered(served: Served) -> None:
    """Newest first; each once; what is added meanwhile shifts nothing."""
    client, workspace = served
    for number in range(5):
        recorded(workspace, f"old-{number}", "policy", "failed")
    names, cursor = [], None
    while True:
        parameters: dict[str, Any] = {"kind": "policy", "limit": 2} | (
            {"cursor": cursor} if cursor else {}
        )
        page = client.get("/v1/jobs", params=parameters).json()
        names += [job["name"] for job in page["jobs"]]
        recorded(workspace, f"new-{len(names)}", "policy", "done")
        if (cursor := page["next"]) is None:
            break
    assert names == [f"old-{number}" for number in (4, 3, 2, 1, 0)]
    jobs = client.get("/v1/jobs", params={"kind": "policy", "state": "done"}).json()["jobs"]
    assert {job["name"] for job in jobs} == {"new-2", "new-4", "new-5"}
    assert client.get("/v1/jobs", params={"cursor": "x"}).status_code == 400
    assert client.get("/v1/jobs", params={"limit": 0}).status_code == 422


def test_a_model_tells_what_its_run_had(served: Served) -> None:
    """What was asked for stays, what the run chose stands where nothing was; its files are read."""
    client, workspace = served
    folder = workspace.jobs / "told" / "model"
    folder.mkdir(parents=True)
    asked = {"batch_size": 2, "learning_rate": None, "height": None, "augment": None}
    recorded(workspace, "told", "train", "done", model_dir=str(folder))
    with workspace.records.session() as session:
        job = session.get_one(Job, recorded_job(workspace.records, "told").id)
        job.request = {**job.request, "settings": asked}
    had = {
        "exec_mode": "train", "batch_size": 4, "learning_rate": 0.002, "height": 208,
        "augment": ["mirror", "crop"], "precision": "float32", "evaluate_every": 1,
        "continue_from": None,
    }  # fmt: skip
    write_json(folder / "run.json", {"settings": had})
    (folder / "mlperf.log").write_text(":::MLLOG {}")
    assert client.get("/v1/models/told").json()["settings"] == {
        "batch_size": 2, "learning_rate": 0.002, "height": 208, "augment": ["mirror", "crop"],
        "precision": "float32",
    }  # fmt: skip
    assert client.get("/v1/jobs/told/files/run.json").json() == {"settings": had}
    assert client.get("/v1/jobs/told/files/mlperf.log").text == ":::MLLOG {}"
    assert client.get("/v1/jobs/told/files/bad_frames.json").status_code == 404
    (folder / "bad_frames.json").write_text("[]")
    assert client.get("/v1/jobs/told/files/bad_frames.json").json() == []
    job = recorded_job(workspace.records, "told")
    assert report_file(job, "mlperf.log", tells_paths=False).path == folder / "mlperf.log"
    with pytest.raises(NotFound, match=r"a job of kind train has .*mlperf\.log; told is done"):
        report_file(job, "run.json", tells_paths=False)
    assert client.delete("/v1/jobs/told").status_code == 204


def test_a_job_that_died_is_listed_as_failed(served: Served) -> None:
    """The list looks at what is there, not at what the records last heard."""
    client, workspace = served
    recorded(workspace, "lost", "scan", "running")
    jobs = client.get("/v1/jobs", params={"state": "running"}).json()["jobs"]
    assert "lost" not in {job["name"] for job in jobs}
    assert "without writing its final status" in client.get("/v1/jobs/lost").json()["error"]


def test_models_and_reports(served: Served) -> None:
    """A training that is done is a model; a validation's report, page and picture are files."""
    client, workspace = served
    recorded(workspace, "m-1", "train", "done", model_dir="/models/m-1")
    recorded(workspace, "m-2", "train", "failed", model_dir="/models/m-2")
    validation = recorded(workspace, "v-1", "validate", "done")
    validation.report.mkdir()
    city = recorded_dataset(workspace.records, "all")
    report = a_report(Path(city.manifest), validation.report)
    write_json(validation.report / "report.json", report)
    (validation.report / "report.html").write_text("<p>hi")
    (validation.report / "confusion_matrix.png").write_bytes(b"\x89PNG")
    (validation.folder / "request.json").write_text("{}")
    (model,) = client.get("/v1/models").json()["models"]
    assert (model["name"], model["folder"], model["metrics"]) == (
        "m-1",
        "/models/m-1",
        {"loss": 0.5},
    )
    assert client.get("/v1/models/m-1").json() == model
    assert (model["dataset"], model["split"], model["settings"]) == ("all@1", "train", TRAINED)
    dataset = client.get("/v1/datasets/all@1").json()
    assert dataset["models"] == ["m-1"]  # and back: model, dataset, question
    assert client.get("/v1/datasets").json()["datasets"][0]["models"] == ["m-1"]
    for key, origin in (("dataset_id", "id"), ("question", "question"), ("snapshot", "snapshot")):
        assert model[key] == dataset[origin]
    for name in ("m-2", "v-1", "none"):
        assert client.get(f"/v1/models/{name}").status_code == 404
    assert client.get("/v1/jobs/v-1/report").json() == report
    assert client.get("/v1/jobs/m-1/report").status_code == 404
    page = client.get("/v1/jobs/v-1/files/report.html")
    assert (page.text, page.headers["content-type"]) == ("<p>hi", "text/html; charset=utf-8")
    assert "sandbox" in page.headers["content-security-policy"]
    picture = client.get("/v1/jobs/v-1/files/confusion_matrix.png")
    assert (picture.content, picture.headers["content-type"]) == (b"\x89PNG", "image/png")
    for path in (
        "request.json",
        "../request.json",
        "%2e%2e/request.json",
        "/etc/passwd",
        "metrics.json",
    ):
        assert client.get(f"/v1/jobs/v-1/files/{path}").status_code == 404, path


def test_onnx_files_of_programs_are_models(served: Served) -> None:
    """A program's ONNX file beside trainings, page by page; none of one that wrote none, or failed.

    The client gets what REST answers, and a validation takes the name.
    """
    client, workspace = served
    jobs: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
        ("n-1", "train", "done", ()),
        ("o-1", "run", "done", ("other.onnx", "model.onnx")),
        ("o-none", "run", "done", ("model.pt",)),
        ("o-failed", "run", "failed", ("model.onnx",)),
        ("n-2", "train", "done", ()),
        ("o-2", "run", "done", ("a.onnx", "b.onnx")),
    )
    named = [name for name, *_ in jobs]
    for name, kind, state, files in jobs:
        paths = recorded(workspace, name, kind, state, model_dir=f"/models/{name}")
        output = ProgramPaths(paths.folder).output
        output.mkdir()
        for file in files:
            (output / file).write_bytes(b"")
    listed = client.get("/v1/models").json()["models"]
    ours = [one for one in listed if one["name"] in named]
    assert [(one["name"], one["onnx"]) for one in ours] == [
        ("o-2", ["a.onnx", "b.onnx"]), ("n-2", []), ("o-1", ["model.onnx", "other.onnx"]),
        ("n-1", []),
    ]  # fmt: skip
    of_program = ours[2]
    output = ProgramPaths(workspace.jobs / "o-1").output
    assert (of_program["folder"], of_program["settings"]) == (str(output), {})
    assert client.get("/v1/models/o-1").json() == of_program
    missing = client.get("/v1/models/o-none")
    assert (missing.status_code, "wrote no ONNX file" in missing.text) == (404, True)
    assert client.get("/v1/models/o-failed").status_code == 404
    paged, following = [], client.get("/v1/models", params={"limit": 1}).json()
    while following["next"]:
        paged += following["models"]
        query = {"limit": 1, "cursor": following["next"]}
        following = client.get("/v1/models", params=query).json()
    assert paged + following["models"] == listed
    with framesift_client.connect(str(client.base_url)) as connected:
        assert [dict(model) for model in connected.models.list()] == listed
    refused = client.post(
        "/v1/jobs", json={"kind": "validate", "model": "o-2", "dataset": "all"}
    ).json()
    assert "its program has a.onnx, b.onnx; expected model.onnx" in str(refused)
    for name in named:
        assert client.delete(f"/v1/jobs/{name}").status_code == 204


@pytest.mark.wide
def test_a_listener_that_leaves_holds_nothing(served: Served) -> None:
    """Sixty listeners at once, more than the server has threads: others are answered beside."""
    client, workspace = served
    job = recorded(workspace, "endless", "scan", "pending")
    streams = []
    with httpx.Client(base_url=client.base_url, limits=httpx.Limits(max_connections=100)) as many:
        for _ in range(60):
            request = many.build_request("GET", "/v1/jobs/endless/events")
            streams.append(many.send(request, stream=True))
        for stream in streams:
            assert next(stream.iter_text()).startswith("retry")
        assert client.get("/v1/jobs/endless").json()["state"] == "pending"
        for stream in streams:
            stream.close()
    assert client.get("/v1/info").status_code == 200
    assert job.logs.is_dir()
