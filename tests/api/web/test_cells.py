"""A confusion cell's page: the job that shows the error itself, and marks of its frames."""

import re
from collections.abc import Iterator
from datetime import timedelta
from html import unescape
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from api.app import create_app
from api.settings import Settings
from catalog.accounts import tokens, users
from catalog.records.datasets import recorded_dataset
from catalog.records.tables import Job
from pipeline.jobs.request import JobPaths
from tests.api.web.jobs import home_with_jobs
from tests.pipeline.homes import open_home

HERE = {"Sec-Fetch-Site": "same-origin"}
CELL = "/jobs/v-first/frames?truth=car&predicted=sky"
FORM = 'action="/jobs/v-first/predict"'


@pytest.fixture
def home(catalogued: Path, tmp_path: Path) -> Path:
    """That of `home_with_jobs`, whose validation says what it was asked for."""
    home = home_with_jobs(catalogued, tmp_path)
    workspace = open_home(home)
    (JobPaths(workspace.jobs / "first").model / "model.json").write_text("{}")
    settings = {"model": "first", "split": "train", "workers": 1, "stage": False}
    request = {
        "stages": [], "settings": settings, "resources": {"ranks": 1, "gpus": 0, "cores": None},
    }  # fmt: skip
    with workspace.records.session() as session:
        session.query(Job).filter_by(name="v-first").update({"request": request})
    workspace.close()
    return home


@pytest.fixture
def browser(home: Path) -> Iterator[TestClient]:
    """A browser at its server, which asks nobody who they are."""
    app = create_app(Settings(home=home, cache=home / "cache"), authenticates=False)
    with TestClient(app, headers={"Accept": "text/html"}, follow_redirects=False) as client:
        yield client


def test_a_cell_begins_the_prediction_that_shows_its_errors(browser: TestClient) -> None:
    """Of the validation's model, dataset, split and workers; only of a validation."""
    assert FORM in browser.get(CELL).text
    assert FORM not in browser.get(CELL.replace("sky", "car")).text
    begun = browser.post("/jobs/v-first/predict", headers=HERE)
    assert begun.status_code == 303, begun.text
    path = begun.headers["location"]
    job = browser.get(f"/v1{path}").json()
    assert (job["kind"], job["dataset"], job["split"]) == ("predict", "city@1", "train")
    assert {name: job["settings"][name] for name in ("model", "workers", "stage")} == {
        "model": "first", "workers": 1, "stage": False,
    }  # fmt: skip
    browser.post(f"{path}/cancel", headers=HERE)
    for name in ("first", "mine"):
        refused = browser.post(f"/jobs/{name}/predict", headers=HERE)
        assert (refused.status_code, "expected the validation of a model" in refused.text) == (
            400, True,
        )  # fmt: skip
    assert browser.post("/jobs/none/predict", headers=HERE).status_code == 404


@pytest.mark.parametrize(
    ("state", "split", "is_told", "is_offered"),
    [
        ("running", "train", True, False), ("done", "train", False, False),
        ("failed", "train", False, True), ("done", "validation", False, True),
    ],
)  # fmt: skip
def test_a_prediction_is_offered_once(
    home: Path, browser: TestClient, state: str, split: str, is_told: bool, is_offered: bool
) -> None:
    """Not where one of the same frames is done or runs, which has its link; again after a fault."""
    record_prediction(home, state, {"model": "first", "split": split})
    cell = browser.get(CELL).text
    assert ('<a href="/jobs/p-1">p-1</a> predicts these frames' in cell) is is_told
    assert (FORM in cell) is is_offered


@pytest.mark.parametrize(("network", "is_offered"), [("net", False), ("net-2", True)])
def test_networks_in_onnx_files_are_told_apart(
    home: Path, browser: TestClient, network: str, is_offered: bool
) -> None:
    """By their names: neither is a training's."""
    workspace = open_home(home)
    settings = {"onnx": "/net.onnx", "model_name": "net", "split": "train"}
    with workspace.records.session() as session:
        session.query(Job).filter_by(name="v-first").update(
            {"request": {"stages": [], "settings": settings}}
        )
    workspace.close()
    record_prediction(home, "done", settings | {"model_name": network})
    assert (FORM in browser.get(CELL).text) is is_offered


def record_prediction(home: Path, state: str, settings: dict[str, str]) -> None:
    """The job p-1, of the dataset that is validated."""
    workspace = open_home(home)
    dataset = recorded_dataset(workspace.records, "city")
    with workspace.records.session() as session:
        session.add(
            Job(
                name="p-1", kind="predict", backend="local", state=state, error="", metrics={},
                request={"stages": [], "settings": settings}, dataset_id=dataset.id,
                paths={"folder": str(home / "jobs" / "p-1")},
            )
        )  # fmt: skip
    workspace.close()


def test_only_a_model_that_is_here_predicts(home: Path, browser: TestClient) -> None:
    """Of another program's predictions the cell offers none, and the route refuses them."""
    workspace = open_home(home)
    settings = {"model_name": "theirs", "predictions": "/p", "split": "train"}
    with workspace.records.session() as session:
        session.query(Job).filter_by(name="v-first").update(
            {"request": {"stages": [], "settings": settings}}
        )
    workspace.close()
    cell = browser.get(CELL).text
    assert FORM not in cell
    assert "Predict th" not in cell
    refused = browser.post("/jobs/v-first/predict", headers=HERE)
    assert (refused.status_code, "is no model" in refused.text) == (400, True)


@pytest.mark.parametrize(
    ("settings", "by_command"),
    [
        ({"model": "/models/first"}, True), ({"model": "first", "trust_model": True}, True),
        ({"model": "/models/first", "trust_model": True}, True),
        ({"model": "/models/first.onnx", "model_name": "first"}, True),
        ({"model": "first"}, False), ({"model": "ours/first.onnx", "model_name": "first"}, False),
    ],
)  # fmt: skip
def test_what_only_a_command_may_load_has_no_button(
    home: Path, browser: TestClient, settings: dict[str, object], by_command: bool
) -> None:
    """The cell says so in the button's place, and a form that is sent all the same is refused."""
    workspace = open_home(home)
    with workspace.records.session() as session:
        session.query(Job).filter_by(name="v-first").update(
            {"request": {"stages": [], "settings": settings | {"split": "train"}}}
        )
    workspace.close()
    cell = browser.get(CELL).text
    told = "who works on the server&#39;s machine can."
    assert (FORM in cell, told.replace("&#39;", "'") in cell) == (not by_command, by_command)
    assert told not in browser.get(CELL.replace("sky", "car")).text
    if by_command:
        refused = browser.post("/jobs/v-first/predict", headers=HERE)
        assert (refused.status_code, "whose code needs no trust" in refused.text) == (400, True)


def test_who_may_only_read_is_told(home: Path) -> None:
    """The sentence stays; neither the job nor marks are offered, or begun."""
    workspace = open_home(home)
    users.add(workspace.records, "otto", ["admin"], None)
    (_, token) = tokens.create(workspace.records, "otto", "t", "read", timedelta(days=1))
    workspace.close()
    app = create_app(Settings(home=home, cache=home / "cache"), authenticates=True)
    with TestClient(app, headers={"Accept": "text/html"}, follow_redirects=False) as client:
        client.cookies.set("framesift", token)
        cell = client.get(CELL)
        refused = client.post("/jobs/v-first/predict", headers=HERE)
    assert (cell.status_code, refused.status_code) == (200, 403)
    assert "Predict these frames with first to see the error itself." in cell.text
    assert FORM not in cell.text
    assert 'name="fkey"' not in cell.text
    assert 'id="marks"' not in cell.text


def test_frames_of_a_cell_are_marked_and_restored(browser: TestClient) -> None:
    """Those that are ticked, with several tags, a note among them; later parts have ticks, too."""
    cell = browser.get(CELL).text
    ticks = r'name="fkey" value="([^"]+)" form="marks"'
    fkeys = [unescape(fkey) for fkey in re.findall(ticks, cell)]
    assert len(fkeys) == 3
    part = browser.get(f"{CELL}&begin=2", headers={"HX-Request": "true"}).text
    assert [unescape(fkey) for fkey in re.findall(ticks, part)] == fkeys[2:]
    form = re.search(r'<form[^>]* id="marks".*?</form>', cell, re.DOTALL)
    assert form
    (back,) = re.findall(r'name="next" value="([^"]*)"', form[0])
    marks = {
        "next": unescape(back), "tag": ["quality", "note"], "value": ["bad", "a wet lens"],
        "fkey": fkeys[:2],
    }  # fmt: skip
    plain = browser.post("/marks", data=marks, headers=HERE)
    assert (plain.status_code, f'href="{back}">Go on</a>' in plain.text) == (200, True)

    def noted() -> list[str]:
        pages = [browser.get(f"/frames/{fkey}").text for fkey in fkeys]
        return [re.findall(r'name="note" value="([^"]*)"', page)[0] for page in pages]

    assert noted() == ["a wet lens", "a wet lens", ""]
    marks |= {"value": ["bad", "a dry lens"]}
    told = browser.post("/marks", data=marks, headers=HERE | {"HX-Request": "true"}).text
    assert noted()[:2] == ["a dry lens"] * 2
    hidden = re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', told)
    undo: dict[str, list[str]] = {}
    for name, value in hidden:
        undo.setdefault(name, []).append(unescape(value))
    undone = browser.post("/marks/undo", data=undo, headers=HERE | {"HX-Request": "true"})
    assert "of 2 frames are as before" in undone.text
    assert noted() == ["a wet lens", "a wet lens", ""]
    none = browser.post("/marks", data={"tag": "quality", "value": "bad"}, headers=HERE)
    assert none.status_code == 400
