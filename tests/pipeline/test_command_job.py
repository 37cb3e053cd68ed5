"""Commands of this program as jobs: real runners, real commands."""

from pathlib import Path

import pytest

from api.workspace import Workspace
from catalog.errors import AlreadyExists
from catalog.tables import Job
from pipeline.command_job import last_words, submit_command
from pipeline.jobs.request import JobPaths
from pipeline.jobs.state import FINISHED
from pipeline.run import cancel, refresh
from tests.pipeline.test_local_jobs import eventually


def submitted(workspace: Workspace, kind: str, base: str, *arguments: str) -> Job:
    """A job over the workspace's home."""
    return submit_command(
        workspace.records,
        workspace.jobs,
        kind,
        base,
        arguments,
        environment={"FRAMESIFT_HOME": str(workspace.home)},
    )


def ended(workspace: Workspace, job: Job) -> Job:
    """The job once it has ended."""
    eventually(lambda: refresh(workspace.records, job).state in FINISHED)
    return refresh(workspace.records, job)


def test_a_command_runs_as_a_job_and_its_last_document_is_kept(own_source: Workspace) -> None:
    """A scan by another process: its counts are the metrics, its log has what it printed."""
    job = submitted(own_source, "scan", "scan-a2d2", "ingest", "a2d2", "--json")
    assert (job.kind, job.state, job.dataset_id) == ("scan", "pending", None)
    assert job.name.startswith("scan-a2d2-")
    done = ended(own_source, job)
    assert (done.state, done.error) == ("done", "")
    newest = own_source.records.scans(limit=1)[0][0]
    assert done.metrics["scan"] == newest.id
    assert done.metrics["unchanged"] == newest.counts["unchanged"] > 0
    assert "problems" not in done.metrics
    assert '"problems"' in JobPaths(Path(done.paths["folder"])).log("command", 0).read_text()


def test_a_command_that_fails_says_why(workspace: Workspace) -> None:
    """The command's own error line; no metrics."""
    done = ended(workspace, submitted(workspace, "scan", "scan", "ingest", "none", "--json"))
    assert done.state == "failed"
    assert done.error.startswith("no source named 'none'")
    assert done.metrics == {}


def test_names(workspace: Workspace) -> None:
    """A made-up name fits a folder whatever it is made of; a given one is taken once."""
    job = submitted(workspace, "scan", "../scan of ü/x", "--version")
    assert job.name.startswith("scan-of---x-")
    records, jobs = workspace.records, workspace.jobs
    submit_command(records, jobs, "scan", "scan", ["--version"], name="mine")
    with pytest.raises(AlreadyExists):
        submit_command(records, jobs, "scan", "scan", ["--version"], name="mine")


def test_a_command_can_be_cancelled(workspace: Workspace, tmp_path: Path) -> None:
    """A watcher would run for ever."""
    job = submitted(workspace, "scan", "watch", "watch", "a2d2")
    eventually(lambda: refresh(workspace.records, job).state == "running")
    cancel(workspace.records, refresh(workspace.records, job))
    assert ended(workspace, job).state == "cancelled"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", {}),
        ('{"a": 1}\n{"a": 2}\n', {"a": 2}),
        ('{"a": 1}\n{"a": ', {"a": 1}),
        ('noise {\n{\n  "a": 1,\n  "b": [\n    {"c": 1}\n  ],\n  "d": {\n    "e": 2\n  }\n}\n',
         {"a": 1, "d": {"e": 2}}),
        ('{"a": 1}\nwarning: something\n', {"a": 1}),
        ("[1]\n", {}),
    ],
)  # fmt: skip
def test_last_words(tmp_path: Path, text: str, found: dict[str, object]) -> None:
    """The last whole object, over one line or several, whatever stands around it."""
    paths = JobPaths(tmp_path)
    assert last_words(paths) == {}
    paths.logs.mkdir()
    paths.log("command", 0).write_text(text)
    assert last_words(paths) == found
