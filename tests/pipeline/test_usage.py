"""What jobs used of machines, in their records, in sums, over REST and in /metrics."""

from dataclasses import replace
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from api.app import create_app
from api.settings import Settings
from api.workspace import Workspace
from catalog.records.jobs import recorded_job
from catalog.records.tables import Job
from catalog.values import Owner, now
from pipeline.jobs.accounting.usage import job_usage
from pipeline.jobs.follow import wait
from pipeline.jobs.resources import Resources
from pipeline.jobs.submit import resume
from tests.pipeline.jobs import submit_commands
from tests.pipeline.test_datasets import make
from tests.pipeline.test_local_jobs import shell


def test_each_attempt_adds_what_it_reserved(workspace: Workspace, tmp_path: Path) -> None:
    """Two ranks count twice, a failed attempt as well as a done one; sums are by what is asked."""
    records, queue = workspace.records, replace(workspace.job_queue, user="anna", account="command")
    dataset = make(workspace, "all")
    script = f"sleep 0.3; [ -e {tmp_path}/again ] || {{ touch {tmp_path}/again; exit 1; }}"
    first = submit_commands(
        records, queue, shell(script),
        kind="train", dataset=dataset, resources=Resources(ranks=2),
    )  # fmt: skip
    first = recorded_job(records, first.name)
    with pytest.raises(Exception, match="exit code 1"):
        wait(records, first)
    first = recorded_job(records, first.name)
    assert first.started is not None
    assert first.finished is not None
    ran_s = (first.finished - first.started).total_seconds()
    assert first.core_s == pytest.approx(2 * ran_s)
    assert first.core_s >= 0.6
    assert first.gpu_s == 0
    assert first.wait_s > 0
    both = wait(records, resume(records, queue, first))
    both = recorded_job(records, both.name)
    assert both.core_s >= first.core_s + 0.6
    assert both.wait_s > first.wait_s
    used = job_usage(records, "user", "dataset")
    assert used["anna", "all@1"].core_s == both.core_s
    assert job_usage(records.limited_to(Owner("otto"), lambda _: None), "user") == {}


def test_sums_over_rest_and_in_metrics(workspace: Workspace) -> None:
    """By user, dataset or kind; a job's own figures stand in its document."""
    make(workspace, "all")
    with workspace.records.session() as session:
        for number, (user, kind) in enumerate((("anna", "train"), ("anna", "run"), ("", "train"))):
            folder = str(workspace.jobs / f"j{number}")
            session.add(
                Job(
                    name=f"j{number}", kind=kind, backend="local", state="done", user=user,
                    request={"stages": []}, paths={"folder": folder, "logs": folder},
                    dataset_id=1 if user else None, finished=now(),
                    core_s=2.0, gpu_s=0.5 * number, wait_s=1.25,
                )
            )  # fmt: skip
    app = create_app(Settings(home=workspace.home, cache=None), authenticates=False)
    with TestClient(app) as client:
        job = client.get("/v1/jobs/j1").json()
        told = [job[name] for name in ("user", "core_seconds", "gpu_seconds", "wait_seconds")]
        assert told == ["anna", 2.0, 0.5, 1.25]
        by_user = client.get("/v1/usage").json()["usage"]
        assert [tuple(row.values()) for row in by_user] == [
            ("", 1, 2.0, 1.0, 1.25), ("anna", 2, 4.0, 0.5, 2.5),
        ]  # fmt: skip
        by_dataset = client.get("/v1/usage", params={"by": "dataset"}).json()["usage"]
        assert [(row["name"], row["jobs"]) for row in by_dataset] == [("", 1), ("all@1", 2)]
        assert client.get("/v1/usage", params={"by": "moon"}).status_code == 422
        line = 'framesift_job_core_seconds{dataset="all@1",kind="run",user="anna"} 2.0'
        assert line in client.get("/metrics").text
