"""Pages of jobs of every kind and state, whatever their programs measured and left."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from api.app import create_app
from api.settings import Settings
from pipeline.jobs.request import JobPaths
from tests.api.every_job import HOSTILE, METRICS, EveryJob, home_with_every_job

_MARKUP = HOSTILE[:20]


@pytest.fixture(scope="module")
def jobs(catalogued: Path, tmp_path_factory: pytest.TempPathFactory) -> EveryJob:
    """The home."""
    return home_with_every_job(catalogued, tmp_path_factory.mktemp("every"))


@pytest.fixture(scope="module")
def browser(jobs: EveryJob) -> Iterator[TestClient]:
    """A browser at its server."""
    app = create_app(Settings(home=jobs.home, cache=jobs.home / "cache"), authenticates=False)
    with TestClient(app, headers={"Accept": "text/html"}, raise_server_exceptions=False) as client:
        yield client


def faults(browser: TestClient, *paths: str) -> list[str]:
    """The pages that are an error, or hold the markup that a program wrote."""
    answers = {path: browser.get(path) for path in paths}
    return [
        path
        for path, answer in answers.items()
        if answer.status_code != 200 or _MARKUP in answer.text
    ]


def row_of(listed: str, name: str) -> str:
    """A job's cell of the list that says how far it is."""
    match = re.search(rf'href="/jobs/{name}".*?<td class="number">([^<]*)</td>', listed, re.DOTALL)
    assert match
    return match[1]


@pytest.mark.wide
def test_every_page_shows_every_job(browser: TestClient, jobs: EveryJob) -> None:
    """Each of 154 jobs: its page, the part that is renewed, and its log; no page is an error."""
    assert faults(browser, *(f"/jobs/{name}" for name in jobs.names)) == []
    parts = [f"/jobs/{name}/{part}" for name in jobs.names for part in ("part", "output")]
    assert faults(browser, *parts) == []


def test_the_list_says_how_far_each_is(browser: TestClient) -> None:
    """A score, or a count of steps or files; nothing where a job measures neither."""
    listed = browser.get("/jobs").text
    assert _MARKUP not in listed
    assert row_of(listed, "run-ours") == "mIoU 0.310"
    assert row_of(listed, "run-begun") == "0 of 20"
    odd = set(METRICS) - {"ours", "begun", "below zero"}
    assert {row_of(listed, f"run-{title.replace(' ', '-')}") for title in odd} == {""}


def test_older_jobs_are_a_page_further(browser: TestClient, jobs: EveryJob) -> None:
    """A hundred, then the rest: each job once, the newest first; before the first there is none."""
    pages, path = [], "/jobs"
    while path:
        text = browser.get(path).text
        pages.append(re.findall(r'<th scope="row"><a href="/jobs/([^"]+)"', text))
        older = re.findall(r'href="(/jobs\?before=\d+)">Older<', text)
        path = older[0] if older else ""
    assert [len(page) for page in pages] == [100, len(jobs.names) - 100]
    listed = [name for page in pages for name in page]
    assert sorted(listed) == sorted(jobs.names)
    all_jobs = browser.get("/v1/jobs?limit=500", headers={"Accept": "*/*"}).json()["jobs"]
    assert listed == [job["name"] for job in all_jobs]
    assert "No older job." in browser.get("/jobs?before=1").text
    assert "No job yet" not in browser.get("/jobs?before=1").text


@pytest.mark.wide
def test_jobs_beside_each_other(browser: TestClient, jobs: EveryJob) -> None:
    """Jobs of each kind are compared, and their curves drawn, as far as they have numbers."""
    names = jobs.names
    groups = [names[at : at + 6] for at in range(0, len(names), 6)]
    for path in ("/jobs", "/curves"):
        addresses = [f"{path}?{'&'.join(f'job={name}' for name in group)}" for group in groups]
        assert faults(browser, *addresses) == []
    odd = browser.get("/curves?job=train-loss").json()["plots"]
    points = {plot["name"]: plot["runs"][0] for plot in odd}
    assert points["loss"] == {"job": "train-loss", "steps": [1, 1], "values": [2.5, 2.5]}


def test_a_damaged_report_is_said(browser: TestClient) -> None:
    """The page names the file and its first fault; REST refuses it, and cells lead nowhere."""
    damaged = "report.json of job validate-begun: is none that this version reads, in 'classes'"
    assert damaged in browser.get("/jobs/validate-begun").text.replace("&#39;", "'")
    answer = browser.get("/v1/jobs/validate-begun/report", headers={"Accept": "*/*"})
    assert (answer.status_code // 100, damaged in answer.json()["detail"]) == (5, True)
    cell = browser.get("/jobs/validate-begun/frames?truth=car&predicted=sky")
    assert (cell.status_code // 100, damaged in cell.text.replace("&#39;", "'")) == (5, True)


def test_one_log_of_many_is_shown(browser: TestClient, jobs: EveryJob) -> None:
    """A job of 1,024 ranks: the page has their names in order and the end of one, and is small.

    The last that was written is shown, or the one that is chosen; a link in a log's place, or a
    folder, is none.
    """
    logs = JobPaths(jobs.home / "jobs" / "run-large").logs
    logs.mkdir(parents=True, exist_ok=True)
    for rank in range(1024):
        (logs / f"run-{rank}.log").write_text(f"rank {rank}\n" * 4_000)
    (logs / "secret.log").symlink_to(jobs.home / "settings.json")
    page = browser.get("/jobs/run-large").text
    assert len(page) < 200_000
    names = re.findall(r"<option>(run-\d+)</option>", page)
    assert names == [f"run-{rank}" for rank in range(1024)]
    assert "<option>secret" not in page
    assert page.count("<pre") == 1
    assert "rank 1023\n" in page
    part = browser.get("/jobs/run-large/output?log=run-7").text
    assert "<option selected>run-7</option>" in part
    assert "rank 7\nrank 7\n" in part
    assert "rank 1023" not in part
    unknown = browser.get("/jobs/run-large/output?log=run-2000")
    assert (unknown.status_code, "run-2000" in unknown.text) == (400, True)
    assert json.dumps(browser.get("/v1/jobs/run-large/logs/sizes").json()).count("run-") == 1024
