"""What to train on next, on the page: proposed, looked at, saved as a version or as a list."""

import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from api.app import create_app
from api.settings import Settings
from api.web.run.prediction import question_of
from catalog.records.datasets import recorded_dataset, recorded_datasets
from catalog.records.jobs import recorded_job
from catalog.records.tables import Job
from pipeline.manifest import Manifest
from query.frames.select_frames import select_frames
from query.question.question import Question
from tests.api.web.jobs import home_with_jobs
from tests.api.web.loop import HELD, UNLABELLED, home_with_loop, validated_by_training
from tests.pipeline.homes import open_home

pytestmark = pytest.mark.wide

HERE = {"Sec-Fetch-Site": "same-origin"}
PART = HERE | {"HX-Request": "true"}
PAGE = "/jobs/v-night/next-frames"


@pytest.fixture(scope="module")
def home(catalogued: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That of `home_with_loop`."""
    return home_with_loop(catalogued, tmp_path_factory.mktemp("loop"))


@pytest.fixture
def browser(home: Path) -> Iterator[TestClient]:
    """A browser at a server that asks nobody who they are."""
    app = create_app(Settings(home=home, cache=home / "cache"), authenticates=False)
    with TestClient(app, headers={"Accept": "text/html"}, follow_redirects=False) as client:
        yield client


def ticked(page: str, field: str) -> list[str]:
    """The frames that a page keeps of a part."""
    found = re.findall(rf'name="{field}" value="([^"]+)" form="{field}" checked', page)
    return [unescape(one) for one in found]


def asked(page: str) -> dict[str, str]:
    """The hidden fields of a page's first form that sends a proposal."""
    form = page[page.index('class="card tools proposal"') :].partition("</form>")[0]
    fields = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form)
    return {name: unescape(value) for name, value in fields}


def versions(home: Path, name: str) -> list[int]:
    """The versions of a dataset."""
    workspace = open_home(home)
    of_name = [one.version for one in recorded_datasets(workspace.records, name)]
    workspace.close()
    return of_name


def test_a_proposal_is_looked_at_and_saved(home: Path, browser: TestClient) -> None:
    """Frames with reasons and labels over them; those that are kept are saved, and no others."""
    job = browser.get("/jobs/v-night").text
    assert 'action="/jobs/v-night/next-frames"' in job
    assert re.search(r'name="classes" value="car[,"]', job)
    assert "next-frames" not in browser.get("/jobs/v-untold").text
    assert "the setting trained on" in browser.get("/jobs/v-untold/next-frames").text
    dataset = browser.get("/datasets/taught").text
    assert '<a href="/jobs/v-night/next-frames">Frames for night</a>' in dataset
    assert "next-frames" not in browser.get("/datasets/held").text
    form = browser.get(PAGE).text
    assert "proposal" not in form.partition("<main")[2]
    page = browser.get(f"{PAGE}?frames=5&label=3&classes=car").text
    to_add, to_label = ticked(page, "add"), ticked(page, "list")
    assert len(to_add) == 5
    assert page.count("labelled ") >= 5
    assert page.count("/pictures/overlays/") == 5
    assert not any(HELD in fkey for fkey in (*to_add, *to_label))
    assert len(to_label) == 2
    assert all(UNLABELLED in fkey for fkey in to_label)
    assert "predicted 2,100 pixels of car, 61 % uncertain" in page
    assert page.count("/pictures/predictions/") == 2
    assert '<td class="number" data-class="car">5</td>' in page
    assert versions(home, "taught") == [1]
    fields = asked(page)
    assert fields.keys() == {"frames", "label", "classes", "at"}
    # Without scripts the totals follow by a button.
    counted = browser.post(
        f"{PAGE}/kept", data=fields | {"add": to_add[1:], "list": to_label}, headers=HERE
    ).text
    assert ticked(counted, "add") == to_add[1:]
    assert '<td class="number" data-class="car">4</td>' in counted
    assert "<strong data-kept>4</strong> of 5 frames kept" in counted
    assert versions(home, "taught") == [1]
    strange = fields | {"add": [*to_add, "local:a2d2:other.png"]}
    refused = browser.post(PAGE, data=strange, headers=PART)
    assert (refused.status_code, "not proposed any more" in refused.text) == (400, True)
    none = browser.post(PAGE, data=fields, headers=PART)
    assert (none.status_code, "are dropped" in none.text) == (400, True)
    assert browser.post(PAGE, data=fields | {"add": to_add}).status_code == 403  # from no page
    assert versions(home, "taught") == [1]
    saved = browser.post(PAGE, data=fields | {"add": to_add[1:]}, headers=HERE)
    assert (saved.status_code, saved.headers["location"]) == (303, "/datasets/taught@2")
    workspace = open_home(home)
    frames = {
        version: Manifest.read(
            Path(recorded_dataset(workspace.records, f"taught@{version}").manifest)
        )
        .frames["fkey"]
        .to_pylist()
        for version in (1, 2)
    }
    workspace.close()
    assert {*frames[2]} - {*frames[1]} == {*to_add[1:]}
    train = browser.post(PAGE, data=fields | {"add": to_add, "then": "train"}, headers=PART)
    assert train.headers["hx-redirect"] == "/new-job?dataset=taught%403&again=night"
    assert browser.get(train.headers["hx-redirect"]).status_code == 200


def test_a_label_list_is_a_download(browser: TestClient) -> None:
    """The frames that are kept, an fkey a line, or CSV with their reasons; it may come alone.

    Not listed is the frame of what the model finds wherever it is.
    """
    page = browser.get(f"{PAGE}?frames=0&label=3").text
    to_label = ticked(page, "list")
    assert (len(to_label), ticked(page, "add")) == (2, [])
    fields = asked(page)
    told = browser.post(f"{PAGE}/list", data=fields | {"list": to_label[1:]}, headers=HERE)
    assert told.text.splitlines() == to_label[1:]
    assert told.headers["content-type"].startswith("text/plain")
    assert "night-to-label.txt" in told.headers["content-disposition"]
    told = browser.post(
        f"{PAGE}/list", data=fields | {"list": to_label[:1], "as": "csv"}, headers=HERE
    )
    head, row = told.text.splitlines()
    assert head == "fkey,reason,uncertainty"
    assert row.startswith(f'{to_label[0]},"predicted ')
    strange = fields | {"list": ["other.png"]}
    refused = browser.post(f"{PAGE}/list", data=strange, headers=HERE)
    assert (refused.status_code, "not proposed any more" in refused.text) == (400, True)


def test_frames_without_a_prediction_are_predicted(catalogued: Path, tmp_path: Path) -> None:
    """By a model that is here: those to label that are kept; while it runs, its job has a link.

    Where only a command may load the model the page says so, and the form is refused; where all are
    predicted, and of another program's predictions, nothing is offered.
    """
    home = home_with_loop(home_with_jobs(catalogued, tmp_path / "jobs"), tmp_path / "loop")
    (home / "jobs" / "first" / "model" / "model.json").write_text("{}")
    page = f"{PAGE.replace('night', 'untold')}?frames=0&label=3"
    button = 'formaction="/jobs/v-untold/next-frames/predict"'
    of_name = {"model_name": "untold"}
    _set_model(home, {"model": "/models/untold.onnx", **of_name})
    app = create_app(Settings(home=home, cache=home / "cache"), authenticates=False)
    with TestClient(app, headers={"Accept": "text/html"}, follow_redirects=False) as browser:
        assert "/next-frames/predict" not in browser.get(f"{PAGE}?frames=0&label=3").text
        told = browser.get(page).text
        to_label, path = ticked(told, "list"), page.partition("?")[0]
        assert "No page begins one, as the model lies in a folder of its own" in unescape(told)
        assert button not in told
        fields = asked(told) | {"list": to_label[1:]}
        refused = browser.post(f"{path}/predict", data=fields, headers=HERE)
        assert (refused.status_code, "can have this one predict" in unescape(refused.text)) == (
            400, True,
        )  # fmt: skip
        assert "framesift" not in refused.text.partition("<main")[2].partition("</main")[0]
        _set_model(home, {"model": "ours/untold.onnx", **of_name})
        offered = browser.get(page).text
        assert button in offered
        assert f"Of {len(to_label)} frames no prediction by untold is known." in offered
        nothing = browser.post(f"{path}/predict", data=fields | {"list": []}, headers=HERE)
        assert (nothing.status_code, "without a prediction to be kept" in nothing.text) == (
            400, True,
        )  # fmt: skip
        strange = browser.post(f"{path}/predict", data=fields | {"list": ["x"]}, headers=HERE)
        assert (strange.status_code, "not proposed any more" in strange.text) == (400, True)
        validated_by_training(home)
        first = asked(browser.get(page).text) | {"list": to_label[1:]}
        begun = browser.post(f"{path}/predict", data=first, headers=HERE)
        assert begun.status_code == 303, begun.text
        job = browser.get(f"/v1{begun.headers['location']}").json()
        running = browser.get(page).text
        browser.post(f"{begun.headers['location']}/cancel", headers=HERE)
        assert (job["kind"], job["settings"]["model"]) == ("predict", "first")
        assert f">{job['name']}</a> predicts with it now." in running
        assert button not in running
    workspace = open_home(home)
    recorded = json.dumps(recorded_job(workspace.records, job["name"]).request)
    workspace.close()
    assert [fkey in recorded for fkey in to_label] == [False] + [True] * (len(to_label) - 1)


def test_the_question_for_frames_by_name_finds_them(home: Path) -> None:
    """Two of three without labels, whatever signs a name has; and no other frame."""
    workspace = open_home(home)
    everything = Question(where="labelled = 0")
    frames = select_frames(workspace.catalog, everything).frames["fkey"].to_pylist()
    chosen = question_of([*frames[1:], "it's no frame"], workspace.catalog.snapshot())
    rows = select_frames(workspace.catalog, chosen).frames["fkey"].to_pylist()
    workspace.close()
    assert len(frames) == 3
    assert sorted(rows) == sorted(frames[1:])


def _set_model(home: Path, model: dict[str, str]) -> None:
    """Make v-untold the validation of a model that was trained as night was."""
    workspace = open_home(home)
    with workspace.records.session() as session:
        night = session.query(Job).filter_by(name="v-night").one()
        settings = {**night.request["settings"], **model}
        del settings["predictions"]
        session.query(Job).filter_by(name="v-untold").update(
            {"request": {**night.request, "settings": settings}}
        )
    workspace.close()


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("frames=5&classes=unicorn", "unknown class"),
        ("frames=5&classes=animals", "no frame of the pool is expected to help"),
        ("frames=0&label=0", "frames 0: expected 1 or more"),
        ("frames=x", "frames"),
        ("frames=1001", "at most 1,000"),
        ("frames=5&at=x", "number of a snapshot"),
    ],
)
def test_what_cannot_be_proposed_is_said_above_the_form(
    browser: TestClient, query: str, message: str
) -> None:
    """The form keeps what was typed."""
    answer = browser.get(f"{PAGE}?{query}")
    assert answer.status_code == 422
    assert message in unescape(answer.text)
    assert "proposal" not in answer.text.partition("<main")[2]
    for pair in query.split("&"):
        name, _, value = pair.partition("=")
        assert name == "at" or f'name="{name}"' in answer.text
        assert name == "at" or f'value="{value}"' in answer.text
