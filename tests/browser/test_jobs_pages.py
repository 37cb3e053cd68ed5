"""Pages of jobs in a browser: odd metrics, many logs, many datasets."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from catalog.records.datasets import recorded_dataset
from catalog.records.tables import Dataset, Job
from pipeline.jobs.request import JobPaths
from tests.api.every_job import METRICS, EveryJob, home_with_every_job
from tests.api.servers import serving
from tests.browser.conftest import NARROW, WIDE, overflow, violations
from tests.pipeline.homes import open_home

pytestmark = pytest.mark.browser


@dataclass(frozen=True)
class Served:
    """A server of jobs of every kind.

    Attributes:
        url: Its URL.
        jobs: Its jobs.
    """

    url: str
    jobs: EveryJob


@pytest.fixture(scope="module")
def served(catalogued: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One job of it has 1,024 logs; there are 150 datasets, and 131 models that all predicted."""
    jobs = home_with_every_job(catalogued, tmp_path_factory.mktemp("every"))
    logs = JobPaths(jobs.home / "jobs" / "run-nothing").logs
    logs.mkdir(parents=True, exist_ok=True)
    for rank in range(1024):
        (logs / f"run-{rank}.log").write_text(f"rank {rank}\n" * 4_000)
    workspace = open_home(jobs.home)
    city = recorded_dataset(workspace.records, "city")
    names = [column.name for column in Dataset.__table__.columns if column.name != "id"]
    values = {name: getattr(city, name) for name in names}
    with workspace.records.session() as session:
        session.add_all(Dataset(**values | {"name": f"night-{n}"}) for n in range(150))
        session.add_all(
            Job(
                name=f"{kind}-{name}", kind=kind, backend="local", state="done", metrics={},
                request={"stages": [], "settings": {"model": f"train-{name}"}}, dataset_id=city.id,
                paths={"folder": "/none", "model_dir": "/none"},
            )
            for kind in ("train", "predict")
            for name in ("of-city", *(f"of-night-{n}" for n in range(130)))
        )  # fmt: skip
    workspace.close()
    with serving(jobs.home) as (url, _):
        yield Served(url, jobs)


def test_odd_metrics_fit_into_the_page(served: Served, tab: Page) -> None:
    """Each page is no wider than its window, and no rule of axe is broken."""
    pages = ["/jobs", *(f"/jobs/run-{title.replace(' ', '-')}" for title in METRICS)]
    for size in (WIDE, NARROW):
        tab.set_viewport_size(size)  # type: ignore[arg-type]  # it is a mapping
        for page in pages:
            tab.goto(served.url + page)
            assert overflow(tab) <= 0, page
    for page in ("/jobs", "/jobs/run-nothing", "/jobs/run-names", "/jobs/validate-begun"):
        tab.goto(served.url + page)
        assert violations(tab) == [], page


def test_one_log_of_many_is_chosen_and_followed(served: Served, tab: Page) -> None:
    """The last line is in sight; a log that was chosen stays chosen while the job goes on.

    Also where it is chosen while the page still waits for the one before.
    """
    late: list[Route] = []
    tab.route("**/output?log=", lambda route: late.append(route))  # the method itself is refused
    with tab.expect_request("**/output?log="):
        tab.goto(f"{served.url}/jobs/run-nothing")
    log = tab.locator("#log-end pre")
    expect(log).to_contain_text("rank 1023")
    assert log.evaluate("(e) => e.scrollTop + e.clientHeight >= e.scrollHeight - 4")
    tab.select_option("select[name=log]", "run-7")
    expect(log).to_contain_text("rank 7\n")
    late.pop().continue_()
    tab.unroute("**/output?log=")
    path = JobPaths(served.jobs.home / "jobs" / "run-nothing").logs / "run-7.log"
    with path.open("a") as file:
        file.write("the next line\n")
    workspace = open_home(served.jobs.home)
    with workspace.records.session() as session:
        session.query(Job).filter_by(name="run-nothing").update({"metrics": {"loss": 0.25}})
    workspace.close()
    expect(tab.locator(".figures")).to_contain_text("0.25")
    expect(log).to_contain_text("the next line")
    expect(tab.locator("select[name=log]")).to_have_value("run-7")
    assert log.evaluate("(e) => e.scrollTop + e.clientHeight >= e.scrollHeight - 4")


def test_a_dataset_is_searched_for(served: Served, tab: Page) -> None:
    """What a name brings up is chosen, and its staging planned."""
    tab.goto(f"{served.url}/new-job")
    training = tab.locator("form", has=tab.get_by_role("heading", name="Train a network"))
    expect(training.locator(".plan")).to_contain_text("night-149@1")
    training.get_by_role("searchbox").fill("ITY")
    expect(training.locator("select[name=dataset]")).to_have_value("city@1")
    expect(training.locator(".plan")).to_contain_text("city@1")
    assert violations(tab) == []


def test_models_are_searched_for(served: Served, tab: Page) -> None:
    """As one types the name of one to go on from; and of one to lay over Find's pictures."""
    tab.goto(f"{served.url}/new-job")
    options = tab.locator("#newest-models option")
    expect(options).to_have_count(100)
    training = tab.get_by_role("form", name="Train a network")
    training.get_by_label("Go on from").press_sequentially("of-CIT")
    expect(options).to_have_count(1)
    expect(options).to_have_attribute("value", "train-of-city")
    tab.get_by_label("Compare with").last.fill("night-12@300")
    expect(options).to_have_count(11)
    tab.goto(f"{served.url}/?over=errors:train-of-night-129")
    over = tab.get_by_label("Over the pictures")
    expect(over.locator("option")).to_have_count(2 + 50)
    tab.get_by_label("Search for a model to lay over pictures").fill("of-CIT")
    expect(over.locator("option")).to_have_count(2 + 2 + 1)
    expect(over).to_have_value("errors:train-of-night-129")
    over.select_option("prediction:train-of-city")
    tab.wait_for_url("**over=prediction%3Atrain-of-city**")
    tab.reload()
    expect(over).to_have_value("prediction:train-of-city")
    expect(over.locator("option")).to_have_count(2 + 2)
    assert violations(tab) == []


def test_ticked_jobs_stay_while_another_is_searched(served: Served, tab: Page) -> None:
    """They are first in the list, and compared with the one that the search brought."""
    tab.goto(f"{served.url}/jobs")
    search = tab.get_by_role("searchbox")
    search.fill("of-night-12")
    boxes = tab.get_by_role("checkbox")
    expect(boxes).to_have_count(22)
    tab.get_by_label("Compare train-of-night-12", exact=True).check()
    search.fill("of-city")
    expect(boxes).to_have_count(3)
    expect(boxes.first).to_be_checked()
    expect(boxes.first).to_have_value("train-of-night-12")
    tab.get_by_label("Compare train-of-city").check()
    tab.get_by_role("button", name="Compare those that are ticked").click()
    compared = tab.get_by_role("region", name="Side by side")
    expect(compared).to_contain_text("train-of-night-12")
    expect(compared).to_contain_text("train-of-city")
    assert violations(tab) == []


def test_machines_are_checked_from_a_form(served: Served, tab: Page) -> None:
    """What is wrong is said in the form; what its backend would be handed stands below it."""
    tab.goto(f"{served.url}/new-job")
    form = tab.get_by_role("form", name="Check machines before a training")
    form.get_by_label("Timed steps").fill("5")
    form.get_by_role("button", name="Check the machines").click()
    expect(form.get_by_role("alert")).to_contain_text("steps 5: goes with synthetic")
    form.get_by_label("Train ResNet-50").check()
    form.get_by_role("button", name="What would be submitted").click()
    expect(form.locator(".dry")).to_contain_text("--synthetic --steps 5")
    study = tab.get_by_role("form", name="Study how training scales")
    study.get_by_label("Numbers of ranks").fill("1,2")
    study.locator("select[name=dataset]").select_option("night-149@1")
    study.get_by_role("button", name="What would be submitted").click()
    expect(study.locator(".dry")).to_contain_text("training-r2")
    assert violations(tab) == []
