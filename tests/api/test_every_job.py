"""Commands, REST and the client on jobs of every kind and state, whatever their programs wrote."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

import framesift
from api.cli.commands.jobs.follow import check_scores, followed, show_job
from api.services.session import Session
from catalog.errors import JobFailed
from catalog.records.tables import Job
from catalog.values import now
from framesift.progress import state_of
from tests.api.every_job import METRICS, EveryJob, home_with_every_job
from tests.api.servers import serving, several, wait_until
from tests.pipeline.homes import open_home

BELOW = ["validate-lists"]
"""Ended jobs whose metrics say that a score was not reached."""


@pytest.fixture(scope="module")
def jobs(catalogued: Path, tmp_path_factory: pytest.TempPathFactory) -> EveryJob:
    """The home."""
    return home_with_every_job(catalogued, tmp_path_factory.mktemp("every"))


@pytest.fixture(scope="module")
def url(jobs: EveryJob) -> Iterator[str]:
    """A server of it."""
    with serving(jobs.home) as (address, _):
        yield address


def commands_on(jobs: EveryJob) -> list[list[str]]:
    """What a user asks of jobs; those that follow one, of jobs that have ended.

    Of each metrics one job is asked for by name, of another kind each.
    """
    some = jobs.names[:: len(METRICS) + 1] + jobs.names[len(METRICS) - 1 :: len(METRICS) - 1]
    ended = [name for name in some if name in jobs.ended]
    return [
        ["jobs", "list"], ["jobs", "list", "--json"], ["jobs", "usage"],
        ["models", "list"], ["models", "list", "--json"], ["models", "show", "train-nothing"],
        *(["jobs", "show", name] for name in some),
        ["jobs", "show", some[-1], "--json"],
        *(["jobs", "logs", name] for name in some[::3]),
        *(["jobs", "timeline", name] for name in some[::5]),
        ["jobs", "compare", *some],
        ["jobs", "compare", *jobs.names[:100], "--json"],
        *(["jobs", "wait", name] for name in [*ended, *BELOW]),
        *(["jobs", "logs", "--follow", name] for name in ended[:2]),
    ]  # fmt: skip


def check(jobs: EveryJob, commands: list[list[str]], ended: list[tuple[int, str, str]]) -> None:
    """Each command did what it does; one that waited ends as its job did, and says so in a line."""
    for command, (status, out, err) in zip(commands, ended, strict=True):
        assert "\x1b" not in out
        if "--json" in command:
            json.loads(out)
        name = command[-1]
        failed = command[:2] == ["jobs", "wait"] and (jobs.ended[name] != "done" or name in BELOW)
        assert status == failed, (command, err)
        if failed:
            assert err.startswith(f"error: job {name}"), err
            assert err.count("\n") == 1


@pytest.mark.wide
def test_commands_on_a_home(jobs: EveryJob) -> None:
    """Every command on jobs shows a job of each metrics; none ends in a traceback."""
    commands = commands_on(jobs)
    assert {name.partition("-")[2] for command in commands for name in command[-1:]} >= {
        title.replace(" ", "-") for title in METRICS
    }
    check(jobs, commands, several(jobs.home, *commands))


def test_every_job_is_shown(jobs: EveryJob, capsys: pytest.CaptureFixture[str]) -> None:
    """What `jobs show` prints of each of them, and of how each ended."""
    workspace = open_home(jobs.home)
    for job in Session(workspace, is_command=True).jobs.list():
        show_job(job, as_json=False)
        assert capsys.readouterr().out.startswith(f"job {job.name}: {job.state}")
        if job.name in BELOW:
            with pytest.raises(JobFailed, match="miou is unknown"):
                check_scores(job)
        else:
            check_scores(job)
    workspace.close()


@pytest.mark.wide
def test_commands_on_a_server(jobs: EveryJob, url: str) -> None:
    """The same, of a server."""
    commands = commands_on(jobs)
    asked = [["--server", url, *command] for command in commands]
    check(jobs, commands, several(jobs.home, *asked))


def test_rest_and_the_client_tell_every_job(jobs: EveryJob, url: str) -> None:
    """Metrics come as JSON has them, and a job's state is one line; events and logs are there."""
    with framesift.connect(url) as client, httpx.Client(base_url=url, timeout=120) as http:
        listed = {job.name: job for job in client.jobs}
        assert set(listed) == set(jobs.names)
        assert listed["run-nan"]["metrics"]["miou"] is None
        assert "[31m?" in listed["run-texts"]["metrics"]["loss"]
        assert listed["run-nested"]["metrics"]["loss"]["a"]["b"][0] is None
        for name, job in listed.items():
            assert "\n" not in state_of(job)
            assert len(repr(job)) < 200, name
        for name in jobs.ended:
            events = http.get(f"/v1/jobs/{name}/events")
            assert events.status_code == 200
            assert events.text.count("\ndata: ") == 1
        assert http.get("/metrics").status_code == 200


def state(title: str, metrics: dict[str, Any]) -> str:
    """A running job's state, of these metrics."""
    return state_of({"name": title, "state": "running", "metrics": metrics})


def test_a_state_is_a_bar_and_a_loss_where_there_are_numbers() -> None:
    """A count without an end has no bar, a loss no step; what is no number is left out."""
    bar = "[####--------------------]"
    assert state("ours", METRICS["ours"]) == f"running {bar} step 3/20 loss 0.5"
    assert state("begun", METRICS["begun"]) == f"running [{'-' * 24}] step 0/20"
    assert state("stage", {"files": 2, "of_files": 12}) == f"running {bar} files 2/12"
    assert state("loss", METRICS["loss"]) == "running loss 1.17"
    assert state("steps", {"step": 3, "loss": None}) == "running step 3"
    for title in ("none", "nothing", "nan", "texts", "truths", "huge", "lists", "nested", "names"):
        assert state(title, METRICS[title]) == "running"
    assert state("large", {"step": 10**30, "max_steps": 10**30, "loss": 1e299}) == (
        "running loss 1e+299"
    )


@pytest.mark.wide
def test_followers_of_running_jobs(
    jobs: EveryJob, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A command on a home, one on a server and a program follow jobs that run, to their end.

    Of each metrics a job; what the followers show of it on the way is made, too.
    """
    workspace = open_home(jobs.home)
    session = Session(workspace, is_command=True)
    running = [job.name for job in session.jobs.list(state="running")]
    titles = {title.replace(" ", "-") for title in METRICS}
    assert {name.partition("-")[2] for name in running} == titles
    with framesift.connect(url) as client:
        seen: list[str] = []

        def in_a_program(name: str) -> Any:
            def show(job: framesift.Job) -> None:
                state_of(job)
                seen.append(name)

            return client.jobs.wait(name, progress=show)

        followers: list[Callable[[str], Any]] = [
            lambda name: followed(session.jobs, session.jobs.get(name), False),
            lambda name: followed(client.jobs, client.jobs.get(name), False),
            in_a_program,
        ]
        with ThreadPoolExecutor(len(followers) * len(running)) as threads:
            ends = [threads.submit(follow, name) for follow in followers for name in running]
            try:
                wait_until(lambda: set(seen) == set(running))
            finally:
                with workspace.records.session() as records:
                    records.query(Job).filter(Job.name.in_(running)).update(
                        {"state": "done", "finished": now()}
                    )
            assert {end.result(300)["state"] for end in ends} == {"done"}
    workspace.close()
    assert "Traceback" not in capsys.readouterr().err
