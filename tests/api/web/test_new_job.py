"""The form of a job beside many datasets and models, and forms that ask for what does not exist."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from api.app import create_app
from api.schemas.new_jobs import NewTraining
from api.schemas.order_bodies import simple_fields
from api.settings import Settings
from api.web.forms import Form
from api.web.run.job_form import new_job
from catalog.records.datasets import recorded_dataset
from catalog.records.tables import Dataset, Job
from catalog.values import now
from pipeline.runs.orders import Training
from tests.pipeline.homes import copy_home, open_home
from tests.pipeline.test_datasets import make

HERE = {"Sec-Fetch-Site": "same-origin"}


@pytest.fixture(scope="module")
def browser(catalogued: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A browser at a server with 260 datasets and 130 models; the oldest of either is called city.

    A dataset that was removed is among the newest.
    """
    home = copy_home(catalogued, tmp_path_factory.mktemp("many"))
    workspace = open_home(home)
    make(workspace, "city")
    first = recorded_dataset(workspace.records, "city")
    names = [column.name for column in Dataset.__table__.columns if column.name != "id"]
    values = {name: getattr(first, name) for name in names}
    with workspace.records.session() as session:
        for number in range(259):
            session.add(Dataset(**values | {"name": f"night-{number}"}))
        session.add(Dataset(**values | {"name": "night-removed", "removed": now()}))
        session.add(Dataset(**values | {"version": 2}))
        for number in range(130):
            name = f"train-{number}" if number else "city-model"
            session.add(
                Job(
                    name=name, kind="train", backend="local", state="done", metrics={},
                    request={"stages": []}, dataset_id=first.id,
                    paths={"folder": "/none", "model_dir": "/none/model"},
                )
            )  # fmt: skip
        session.add(
            Job(
                name="train-failed", kind="train", backend="local", state="failed", metrics={},
                request={"stages": []}, paths={"folder": "/none", "model_dir": "/none/model"},
            )
        )  # fmt: skip
    workspace.close()
    app = create_app(Settings(home=home, cache=home / "cache"), authenticates=False)
    with TestClient(app, headers={"Accept": "text/html"}, follow_redirects=False) as client:
        yield client


def options(html: str, name: str) -> tuple[list[str], str]:
    """The values of a form's list, and the one that is chosen; empty where none is."""
    match = re.search(rf'<select name="{name}" .*?</select>', html, re.DOTALL)
    assert match
    chosen = re.search(r'value="([^"]*)" selected', match[0])
    return re.findall(r'<option value="([^"]*)"', match[0]), chosen[1] if chosen else ""


def test_the_newest_are_offered_and_others_searched(browser: TestClient) -> None:
    """A hundred of each, newest first; a name brings up those that hold it, in whatever case."""
    form = browser.get("/new-job").text
    datasets, chosen = options(form, "dataset")
    assert datasets[:2] == ["city@2", "night-258@1"]
    assert (len(datasets), len(set(datasets)), chosen) == (100, 100, "")
    models = re.findall(r'<option value="(train-\d+)"', form)
    assert (len(form) < 60_000, form.count('type="search"')) == (True, 3)
    newest = [f"train-{number}" for number in range(129, 29, -1)]
    assert models == newest * 2  # to go on from, and to validate
    assert "train-failed" not in form
    assert "city-model" not in form

    part = browser.get("/new-job/datasets?holding=CITY").text
    assert re.findall(r'value="([^"]*)"', part) == ["city@2", "city@1"]
    assert len(re.findall("<option", browser.get("/new-job/datasets?holding=night-25").text)) == 10
    assert browser.get("/new-job/models?holding=Y-mod").text.count("<option") == 1
    for pattern in ("%25", "_", "night-removed", "*"):
        assert "<option" not in browser.get(f"/new-job/datasets?holding={pattern}").text


def test_what_a_link_names_is_offered_and_chosen(browser: TestClient) -> None:
    """An old dataset and model among the newest; one that was removed is passed over."""
    form = browser.get("/new-job?dataset=city@1&model=city-model").text
    datasets, chosen = options(form, "dataset")
    assert (datasets[0], chosen, len(datasets)) == ("city@1", "city@1", 101)
    assert '<option value="city-model" selected>' in form
    assert options(browser.get("/new-job?dataset=city").text, "dataset")[1] == "city@2"
    gone = browser.get("/new-job?dataset=night-removed@1&model=train-failed")
    assert (gone.status_code, options(gone.text, "dataset")[1]) == (200, "")


def test_lists_of_datasets_begin_with_the_newest(browser: TestClient) -> None:
    """The page of datasets has each once, by its newest version."""
    listed = browser.get("/datasets").text
    names = re.findall(r'<th scope="row"><a href="/datasets/([^"]*)"', listed)
    assert names[:2] == ["city", "night-258"]
    assert (len(names), "2 versions" in listed) == (260, True)


@pytest.mark.parametrize("kind", ["", "trian", "Train", "predict", "scan", "remove"])
def test_a_kind_that_is_none_is_refused(browser: TestClient, kind: str) -> None:
    """By the form, as by REST, with the kinds that it begins; nothing is trained."""
    for path in ("/new-job", "/new-job/dry-run"):
        form = {"kind": kind, "dataset": "city", "max_steps": "1"}
        answer = browser.post(path, data=form, headers=HERE)
        assert answer.status_code == 400
        assert f"kind '{kind}': expected train or validate" in answer.text.replace("&#39;", "'")
    assert browser.get("/v1/jobs?state=pending").json()["jobs"] == []


def test_an_action_that_is_none_is_refused(browser: TestClient) -> None:
    """Forms of users and cache name the actions that they know."""
    for path, form, expected in (
        ("/operate/users/change", {"name": "anna", "action": "delete"}, "expected roles, disable"),
        ("/operate/cache", {"dataset": "city", "action": "purge"}, "expected pin, unpin, evict"),
    ):
        answer = browser.post(path, data=form, headers=HERE)
        assert (answer.status_code, expected in answer.text) == (400, True), answer.text


def test_every_setting_of_a_request_has_a_field(browser: TestClient) -> None:
    """Once, whether the page places it or takes it from the request; what is sent arrives."""
    form = re.search(r'aria-labelledby="train-title".*?</form>', browser.get("/new-job").text, re.S)
    assert form
    fields = re.findall(r'name="([a-z_]+)"', form[0])
    elsewhere = {"stage": "unstaged", "save_as": "dataset"}
    for field in simple_fields(NewTraining):
        assert fields.count(elsewhere.get(field.name, field.name)) == 1, field.name
    values = {
        "kind": "train", "dataset": "a", "label_smoothing": "0.1", "prepare": "false",
        "augment": "mirror, crop",
    }  # fmt: skip
    body = new_job(Form([*values.items()]))
    assert body.order() == Training(
        dataset="a", label_smoothing=0.1, prepare=False, augment=["mirror", "crop"]
    )
