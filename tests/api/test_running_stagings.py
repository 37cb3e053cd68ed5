"""Stagings that run or wait: listed with plan and progress, and cancelled, at every door."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy.orm import Session as Transaction

import framesift as client_package
from api.schemas.home_orders import Staging
from api.schemas.stagings import Staged
from api.services.accounts.callers import Caller
from api.services.call import user_here
from api.services.session import Session
from api.workspace import Workspace
from catalog.errors import StagingCancelled
from catalog.records.tables import Job
from pipeline.cache import running
from pipeline.cache.beat import Watch
from pipeline.cache.contents import space
from pipeline.cache.stager import stager
from pipeline.jobs.request import JobPaths
from pipeline.jobs.workflow.moves import add_task, new_task
from pipeline.jobs.workflow.task_paths import RUN
from pipeline.staging.progress import Progress
from tests.api.servers import framesift, serving, wait_until
from tests.pipeline.homes import FRAMES, copy_home, open_home
from tests.pipeline.test_datasets import make

FILES = 2 * FRAMES


@pytest.fixture
def workspace(catalogued: Path, tmp_path: Path) -> Iterator[Workspace]:
    """A home with the dataset "streets"."""
    opened = open_home(copy_home(catalogued, tmp_path))
    make(opened)
    yield opened
    opened.close()


@contextmanager
def staging(
    workspace: Workspace, stands_at: int
) -> Iterator[tuple[threading.Event, Future[Staged]]]:
    """A staging that stands still once so many files are there; what lets it go on, and its end."""
    go, stands = threading.Event(), threading.Event()

    def progress(now: Progress) -> None:
        if now.files >= stands_at:
            stands.set()
            assert go.wait(300)

    stagings = Session(workspace).stagings
    with ThreadPoolExecutor(1) as pool:
        ends = pool.submit(
            stagings.run,
            "streets",
            cache=None,
            workers=1,
            progress=progress,
            failed=lambda _: None,
        )
        try:
            wait_until(lambda: stands.is_set() or ends.done())
            yield go, ends
        finally:
            go.set()


@pytest.mark.wide
def test_a_running_staging_is_listed_and_cancelled(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By REST, client and commands alike: plan and progress; then it ends, and leaves no part.

    What had come stays: the next staging does not fetch it again, and then none runs.
    """
    monkeypatch.setattr(running, "REPORT_EVERY_S", 0.0)
    with (
        serving(workspace.home, "--workers", "2") as (url, _),
        client_package.connect(url) as client,
    ):
        assert list(client.stagings.running()) == []
        with staging(workspace, stands_at=3) as (go, ends):
            (found,) = client.stagings.running()
            assert (found["dataset"], found["state"], found["job"]) == (
                "streets@1",
                "running",
                None,
            )
            assert found["plan"]["missing_files"] == found["plan"]["files"] == FILES
            told = found["progress"]
            assert told["queued"] + told["done"] == FILES
            assert (told["done"], told["failed"]) == (told["files"], 0)
            assert client.stagings.get_running(found["name"]) == found
            for before in ([], ["--server", url]):
                listed = framesift(workspace.home, *before, "stagings", "running", "--json")
                assert json.loads(listed.stdout) == [found]
            line = framesift(workspace.home, "stagings", "running").stdout
            assert found["name"] in line.replace("\n", "")
            assert client.stagings.cancel(found["name"])["state"] == "cancelling"
            assert client.stagings.get_running(found["name"])["state"] == "cancelling"
            go.set()
            with pytest.raises(StagingCancelled, match=r"streets@1 was cancelled \(what has come"):
                ends.result(300)
        assert list(client.stagings.running()) == []
        assert list((workspace.cache / ".parts").iterdir()) == []
        with pytest.raises(client_package.NotFound, match="no running staging named"):
            client.stagings.cancel(found["name"])
        _, there = space(workspace.cache)
        came = Session(workspace).stagings.run(
            "streets", cache=None, workers=1, progress=lambda _: None, failed=lambda _: None
        )
        assert came.files_copied == FILES - there
        (done,) = client.stagings.list(dataset="streets")
        assert client.stagings.get(done["staging"]) == done
        by_command = framesift(workspace.home, "--server", url, "stagings", "list", "--json")
        assert json.loads(by_command.stdout) == [done]


def being_submitted(session: Transaction, job: Job) -> None:
    """Record a job that another process is about to hand to its backend."""
    session.add(job)
    session.flush()
    add_task(session, job, task := new_task(RUN))
    task.backend_name = "framesift-test"


def test_a_job_that_waits_is_listed_by_its_name(workspace: Workspace) -> None:
    """It is cancelled by it, too; one of a command by the command of another process."""
    folder = JobPaths(workspace.jobs / "stage-streets-1")
    folder.logs.mkdir(parents=True)
    with workspace.records.session() as session:
        job = Job(
            name="stage-streets-1", kind="stage", backend="local", state="pending", handle="",
            request={"stages": []}, dataset_id=1, owner="anna",
            paths={"folder": str(folder.folder), "logs": str(folder.logs)},
        )  # fmt: skip
        being_submitted(session, job)
    stagings = Session(workspace).stagings
    (found,) = stagings.running()
    assert (found.name, found.state, found.user) == ("stage-streets-1", "pending", "anna")
    assert (found.plan, found.progress) == (None, None)
    run = framesift(workspace.home, "stagings", "cancel", "stage-streets-1")
    assert (run.returncode, run.stdout) == (
        0, "staging stage-streets-1 of streets@1 is asked to end\n",
    )  # fmt: skip
    assert folder.cancel.exists()
    assert stagings.get_running("stage-streets-1").state == "cancelling"


def test_the_staging_beside_a_training_is_cancelled_with_it(workspace: Workspace) -> None:
    """It has the training's name, which is asked to end: a training keeps its checkpoint."""
    folder = JobPaths(workspace.jobs / "train-streets-1")
    folder.logs.mkdir(parents=True)
    with workspace.records.session() as session:
        job = Job(
            name="train-streets-1", kind="train", backend="local", state="pending", handle="",
            request={"stages": []}, dataset_id=1,
            paths={"folder": str(folder.folder), "logs": str(folder.logs)},
        )  # fmt: skip
        being_submitted(session, job)
    stagings = Session(workspace).stagings
    assert stagings.running() == []
    with stager(workspace.cache) as own:
        about = running.StagingAbout("streets@1", "", str(folder.folder), "", 9, 9, 9, 9)
        running.Announcement(own, about)
        assert [one.name for one in stagings.running()] == ["train-streets-1"]
        stagings.cancel("train-streets-1")
        assert folder.cancel.exists()
        assert not (own.folder / "cancel").exists()


@pytest.mark.wide
def test_the_staging_of_a_job_has_the_job_s_name(workspace: Workspace) -> None:
    """While it waits as while it runs; its folder stands in the cache."""
    begun = Session(workspace).stagings.begin(Staging(dataset="streets"))
    seen = set[str]()

    def has_ended() -> bool:
        seen.update(
            Path(one.about.job_folder).name
            for one in running.running_stagings(workspace.cache, Watch())
        )
        seen.update(one.name for one in Session(workspace).stagings.running())
        return not Session(workspace).stagings.running()

    wait_until(has_ended)
    assert seen == {begun.name}


@pytest.mark.wide
def test_a_share_counts_for_users_who_see_every_row(workspace: Workspace) -> None:
    """What an admin has staged over REST is the admin's, and so is a command's its user's."""
    admin = Caller("ada", frozenset({"admin"}), "admin", logged_in=False)
    session = Session(workspace, admin)
    job = session.stagings.begin(Staging(dataset="streets"))
    wait_until(lambda: session.jobs.get(job.name).state == "done")
    (streets,) = session.cache.status().datasets
    assert streets.users == ["ada"]
    assert Session(workspace, is_command=True).job_queue.user == user_here()
