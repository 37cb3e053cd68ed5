"""Orders of the home's own as jobs: real runners, real processes."""

import json
from pathlib import Path

import pytest

from api.schemas.home_orders import (
    Extraction,
    HomeOrder,
    LabelCheck,
    PolicyRun,
    Scan,
    Staging,
    home_order_of,
)
from api.services.jobs.home_orders import begin_order
from api.settings import Secret, Settings
from api.workspace import Workspace
from catalog.errors import AlreadyExists
from catalog.records.scans import recorded_scans
from catalog.records.tables import Job
from pipeline.job_state import FINISHED
from pipeline.jobs.command_job import submit_command
from pipeline.jobs.follow import cancel, refresh
from pipeline.jobs.metrics import command_metrics
from pipeline.jobs.request import JobPaths
from tests.pipeline.test_local_jobs import eventually


def submitted(workspace: Workspace, order: HomeOrder, base: str = "") -> Job:
    """A job over the workspace's home."""
    return begin_order(workspace, order, base)


def ended(workspace: Workspace, job: Job) -> Job:
    """The job once it has ended."""
    eventually(lambda: refresh(workspace.records, job).state in FINISHED)
    return refresh(workspace.records, job)


@pytest.mark.wide
def test_an_order_is_done_by_a_job_and_what_it_ends_with_is_kept(own_source: Workspace) -> None:
    """A scan by another process: its counts are the metrics, its log has what it printed."""
    job = submitted(own_source, Scan(source="a2d2"), "a2d2")
    assert (job.kind, job.state, job.dataset_id) == ("scan", "pending", None)
    assert job.name.startswith("scan-a2d2-")
    done = ended(own_source, job)
    assert (done.state, done.error) == ("done", "")
    newest = recorded_scans(own_source.records, limit=1)[0][0]
    assert done.metrics["scan"] == newest.id
    assert done.metrics["unchanged"] == newest.counts["unchanged"] > 0
    assert "problems" not in done.metrics
    assert '"problems"' in JobPaths(Path(done.paths["folder"])).log("command", 0).read_text()


@pytest.mark.wide
def test_a_job_that_fails_says_why(workspace: Workspace) -> None:
    """Its own error line; no metrics."""
    done = ended(workspace, submitted(workspace, Scan(source="none")))
    assert done.state == "failed"
    assert done.error.startswith("no source named 'none'")
    assert done.metrics == {}


def test_names(workspace: Workspace) -> None:
    """A made-up name fits a folder whatever it is made of; a given one is taken once."""
    order = Scan(source="none")
    job = submitted(workspace, order, "../scan of ü/x")
    assert job.name.startswith("scan-..-scan-of---x-")
    records, jobs = workspace.records, workspace.job_queue
    submit_command(records, jobs, order.as_json(), "scan", name="mine")
    with pytest.raises(AlreadyExists):
        submit_command(records, jobs, order.as_json(), "scan", name="mine")


@pytest.mark.wide
def test_a_job_can_be_cancelled(own_source: Workspace, tmp_path: Path) -> None:
    """A scan that waits for its turn to write."""
    with own_source.whole_catalog.location.quiesced(60, "a test"):
        job = submitted(own_source, Scan(source="a2d2", full=True))
        eventually(lambda: refresh(own_source.records, job).state == "running")
        cancel(own_source.records, refresh(own_source.records, job))
        assert ended(own_source, job).state == "cancelled"


@pytest.mark.parametrize(
    "order",
    [
        Staging(dataset="streets@1", workers=2, to=("afm:fs1/a",)),
        Scan(source="a2d2", max_removed=1.0, folders=("a/",)),
        Extraction(source="a2d2", extractors=("bus", "image")),
        LabelCheck(source="a2d2", labels=7),
        PolicyRun(policy="bikes", run="0f1c"),
    ],
)
def test_an_order_is_read_as_it_was_recorded(order: HomeOrder) -> None:
    """By way of JSON."""
    assert home_order_of(json.loads(json.dumps(order.as_json()))) == order


def test_a_job_finds_the_same_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths from where the server was started are whole; what is secret is left to inherit."""
    monkeypatch.chdir(tmp_path)
    secret = Secret("postgresql://u:hidden@db/catalog")
    settings = Settings(
        home=Path("h"), cache=None, catalog_data="data", catalog_metadata=secret,
        records=Secret("r/records.sqlite"),
    )  # fmt: skip
    assert Workspace(settings).variables == {
        "FRAMESIFT_HOME": str(tmp_path / "h"),
        "FRAMESIFT_CATALOG_DATA": str(tmp_path / "data"),
        "FRAMESIFT_RECORDS": str(tmp_path / "r" / "records.sqlite"),
    }


@pytest.mark.wide
def test_a_result_may_be_long(own_source: Workspace, tmp_path: Path) -> None:
    """2,500 bad labels, more than any end of a log: metrics, and every problem in the result."""
    scene = tmp_path / "source" / "camera_lidar_semantic" / "20260311_130314"
    for kind in ("label", "camera"):
        start = scene / kind / "cam_front_center" / f"20260311130314_{kind}_frontcenter_"
        for number in range(2_500):
            Path(f"{start}{900_000_000 + number}.png").write_bytes(b"no picture")
    done = ended(own_source, submitted(own_source, Scan(source="a2d2")))
    assert (done.state, done.error) == ("done", "")
    assert done.metrics["scan"] == recorded_scans(own_source.records, limit=1)[0][0].id
    assert done.metrics["bad_files"] == 2_500
    result = json.loads(JobPaths(Path(done.paths["folder"])).result.read_text())
    assert len(result.pop("problems")) >= 2_500
    assert result == done.metrics


def test_metrics_are_the_result_and_before_it_the_progress(tmp_path: Path) -> None:
    """Lists are left out; a result that is a list leaves what was said last; half is nothing."""
    paths = JobPaths(tmp_path)
    assert command_metrics(paths) == {}
    paths.progress.write_text('{"read": 1}')
    assert command_metrics(paths) == {"read": 1}
    paths.result.write_text('[{"family": "bus"}]')
    assert command_metrics(paths) == {"read": 1}
    paths.result.write_text('{"scan": 3, "problems": [], "cut": {"a": 1}}')
    assert command_metrics(paths) == {"scan": 3, "cut": {"a": 1}}
