"""The form of a job beside many datasets and models, and forms that ask for what does not exist."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from api.app import create_app
from api.schemas.new_jobs import NewPreflight, NewScaling, NewTraining
from api.schemas.order_bodies import simple_fields
from api.settings import Settings
from api.web.forms import Form
from api.web.run.job_form import AnyBody, new_job
from catalog.records.datasets import recorded_dataset
from catalog.records.tables import Dataset, Job
from catalog.values import now
from pipeline.runs.orders import Training, Validation
from pipeline.runs.preflight_order import Preflight
from pipeline.runs.scaling_order import Scaling
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
    assert (len(form) < 85_000, form.count('type="search"')) == (True, 5)
    newest = [f"train-{number}" for number in range(129, 29, -1)]
    assert models == newest * 2  # to go on from, and to validate
    assert "train-failed" not in form
    assert "city-model" not in form

    part = browser.get("/new-job/datasets?holding=CITY").text
    assert re.findall(r'value="([^"]*)"', part) == ["city@2", "city@1"]
    assert len(re.findall("<option", browser.get("/new-job/datasets?holding=night-25").text)) == 10
    found = browser.get("/new-job/models?holding=Y-mod").text
    assert found.count("<option") == 2
    assert '<option value="">none: score predictions</option>' in found
    read = re.findall(r'value="([^"]*)"', browser.get("/new-job/datasets?none=1&holding=CITY").text)
    assert read == ["", "city@2", "city@1"]
    assert form.count('hx-get="/new-job/trained" hx-target="#newest-models"') == 2
    for query, expected in (
        ("continue_from=Y-mod", ["city-model"]), ("compare=train-12", range(129, 119, -1)),
        ("continue_from=train-12@300", range(129, 119, -1)), ("compare=train-128", [128]),
    ):  # fmt: skip
        names = re.findall(r'value="([^"]*)"', browser.get(f"/new-job/trained?{query}").text)
        named = [f"train-{one}" if isinstance(one, int) else one for one in expected]
        assert names[: len(named)] == named
        assert {*names[len(named) :]} <= {"train-12"}
    for pattern in ("%25", "_", "night-removed", "*"):
        assert "<option" not in browser.get(f"/new-job/datasets?holding={pattern}").text


def test_datasets_and_scores_of_a_new_dataset_are_searched(browser: TestClient) -> None:
    """A hundred are proposed at first, then those that have what is typed, in whatever case."""
    form = browser.get("/new-dataset").text
    lists = re.findall(r'<datalist id="([\w-]+)">(.*?)</datalist>', form)
    numbers = {name: text.count("<option") for name, text in lists}
    assert (numbers["datasets-like"], numbers["datasets-apart"]) == (100, 100)
    assert form.count('hx-get="/new-dataset/datasets" hx-target="#datasets-') == 2
    assert [name for name in ("like", "disjoint_from", "tag") if f'name="{name}"' not in form] == []
    assert 'name="tag" placeholder="model_uncertainty" list="scores"' in form

    def options(path: str) -> list[str]:
        return re.findall(r'<option value="([^"]*)"', browser.get(path).text)

    assert options("/new-dataset/datasets?like=CITY") == ["city@2", "city@1"]
    assert options("/new-dataset/datasets?like=city@1") == ["city@2", "city@1"]
    several = options("/new-dataset/datasets?disjoint_from=night-3@1,%20CITY")
    assert several == ["night-3@1,city@2", "night-3@1,city@1"]
    assert options("/new-dataset/datasets?like=none-such") == []
    scores = options("/new-dataset/scores")
    assert {"car", "speed"} & {*scores} == {"car"}
    assert {"camera", "scene", "fkey"}.isdisjoint(scores)
    assert "bicycle" in options("/new-dataset/scores?tag=BICY")
    assert "car" not in options("/new-dataset/scores?tag=BICY")


def test_without_scripts_a_name_is_typed(browser: TestClient) -> None:
    """In each place with a longer list than it shows: it goes before what the list has."""
    form = browser.get("/new-job").text
    assert form.count('name="named.dataset"') == 4
    assert form.count('name="named.model"') == 1
    newest = {"dataset": "night-258@1", "named.dataset": " night-2@1 "}
    dry = {"kind": "scaling", "ranks": "1", "max_steps": "1"}
    told = browser.post("/new-job/dry-run", data=newest | dry, headers=HERE).text
    assert ("night-2@1" in told, "night-258" in told) == (True, False)
    refused = browser.post(
        "/new-job/dry-run", data=newest | dry | {"named.dataset": "night-"}, headers=HERE
    )
    assert (refused.status_code, "night" in refused.text) == (404, True)
    body = new_job(Form([("kind", "validate"), ("dataset", "a"), ("model", ""),
                         ("named.model", "city-model"), ("named.dataset", "")]))  # fmt: skip
    assert body.order() == Validation(dataset="a", model="city-model")
    page = browser.get("/datasets/city@1").text
    assert page.count('name="named.other"') == 1
    diff = browser.get("/datasets/city@1/diff?other=night-258@1&named.other=night-2").text
    assert ('to <a href="/datasets/night-2@1">' in diff.replace("%40", "@")) is True


def test_onnx_files_of_programs_are_offered(catalogued: Path, tmp_path: Path) -> None:
    """To validate, among trainings, and not to go on from; what the file does not say is sent."""
    home = copy_home(catalogued, tmp_path / "onnx")
    workspace = open_home(home)
    make(workspace, "city")
    for name, kind, files in (
        ("mine", "run", ("model.onnx", "x.onnx")), ("text", "run", ("model.pt",)),
        ("of-keras", "train", ()), ("two", "run", ("a.onnx", "b.onnx")),
    ):  # fmt: skip
        folder = tmp_path / name
        for file in files:
            path = folder / "output" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"")
        with workspace.records.session() as session:
            session.add(
                Job(
                    name=name, kind=kind, backend="local", state="done", metrics={},
                    request={"stages": []}, paths={"folder": str(folder), "model_dir": "/none"},
                )
            )  # fmt: skip
    workspace.close()
    app = create_app(Settings(home=home, cache=home / "cache"), authenticates=False)
    with TestClient(app, headers={"Accept": "text/html"}, follow_redirects=False) as client:
        form = client.get("/new-job?model=mine").text
        match = re.search(r'aria-labelledby="validate-title".*?</form>', form, re.S)
        assert match
        assert re.findall(r'<option value="([^"]*)"( selected)?>([^<]*)', match[0])[:5] == [
            ("two/a.onnx", "", "two/a.onnx (ONNX)"), ("two/b.onnx", "", "two/b.onnx (ONNX)"),
            ("of-keras", "", "of-keras"), ("mine", " selected", "mine (ONNX)"),
            ("", "", "none: score predictions"),
        ]  # fmt: skip
        go_on = re.search(r'<datalist id="newest-models">.*?</datalist>', form, re.S)
        assert go_on
        assert re.findall(r'value="([^"]*)"', go_on[0]) == ["of-keras"]
        asked = {"kind": "validate", "dataset": "city", "model": "mine", "onnx": "scale"}
        refused = client.post("/new-job/dry-run", data=asked, headers=HERE)
        assert refused.status_code == 400
        assert "expected NAME=VALUE, such as scale=1/255" in refused.text
        asked["onnx"] = "sclae=1/255"
        refused = client.post("/new-job/dry-run", data=asked, headers=HERE)
        assert (refused.status_code, "does not say &#39;sclae&#39;" in refused.text) == (400, True)
    body = new_job(Form([*(asked | {"onnx": "scale=1/255,channels=bgr"}).items()]))
    assert body.order() == Validation(
        dataset="city", model="mine", onnx={"scale": "1/255", "channels": "bgr"}
    )


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
    """The page of datasets has each once, by its newest version: 100, or those of a name."""
    row = r'<th scope="row"><a href="/datasets/([^"]*)"'
    listed = browser.get("/datasets").text
    names = re.findall(row, listed)
    assert names[:2] == ["city", "night-258"]
    assert (len(names), "2 versions" in listed) == (100, True)
    of_name = re.findall(row, browser.get("/datasets?holding=night-25").text)
    assert of_name == [*(f"night-{number}" for number in range(258, 249, -1)), "night-25"]


@pytest.mark.parametrize("kind", ["", "trian", "Train", "predict", "scan", "remove"])
def test_a_kind_that_is_none_is_refused(browser: TestClient, kind: str) -> None:
    """By the form, as by REST, with the kinds that it begins; nothing is trained."""
    for path in ("/new-job", "/new-job/dry-run"):
        form = {"kind": kind, "dataset": "city", "max_steps": "1"}
        answer = browser.post(path, data=form, headers=HERE)
        assert answer.status_code == 400
        assert (
            f"kind '{kind}': expected train, validate, preflight, scaling"
            in answer.text.replace("&#39;", "'")
        )
    assert browser.get("/v1/jobs?state=pending").json()["jobs"] == []


def test_an_action_that_is_none_is_refused(browser: TestClient) -> None:
    """Forms of users and cache name the actions that they know."""
    for path, form, expected in (
        ("/operate/users/change", {"name": "anna", "action": "delete"}, "expected roles, disable"),
        ("/operate/cache", {"dataset": "city", "action": "purge"}, "expected pin, unpin, evict"),
    ):
        answer = browser.post(path, data=form, headers=HERE)
        assert (answer.status_code, expected in answer.text) == (400, True), answer.text


@pytest.mark.parametrize(
    ("kind", "body"),
    [("train", NewTraining), ("scaling", NewScaling), ("preflight", NewPreflight)],
)
def test_every_setting_of_a_request_has_a_field(
    browser: TestClient, kind: str, body: type[AnyBody]
) -> None:
    """Once, whether the page places it or takes it from the request."""
    title = rf'aria-labelledby="{kind}-title".*?</form>'
    form = re.search(title, browser.get("/new-job").text, re.S)
    assert form
    fields = re.findall(r'name="([a-z_]+)"', form[0])
    elsewhere = {"stage": "unstaged", "save_as": "dataset"}
    for field in simple_fields(body):
        assert fields.count(elsewhere.get(field.name, field.name)) == 1, field.name


@pytest.mark.parametrize("kind", ["train", "validate", "scaling", "preflight"])
def test_an_empty_field_says_what_the_job_then_has(browser: TestClient, kind: str) -> None:
    """Each field of resources and of further settings has a value, or words in its place."""
    title = rf'aria-labelledby="{kind}-title".*?</form>'
    form = re.search(title, browser.get("/new-job").text, re.S)
    assert form
    folded = "".join(re.findall(r"<details>.*?</details>", form[0], re.S))
    fields = [one for one in re.findall(r"<input [^>]*>", folded) if "checkbox" not in one]
    assert len(fields) > 8
    assert [one for one in fields if not re.search(r'(value|placeholder)="[^"]', one)] == []
    assert 'name="wall_minutes" inputmode="numeric" placeholder="default: none (local' in folded
    # An example is no promise of others, nor one of a backend that takes none.
    assert ('placeholder="default: none, or mirror"' in folded) is (kind == "validate")
    assert "such as mirror" not in folded
    assert 'name="options" placeholder="default: none (local has no such setting)"' in folded
    assert "as that backend has them: of Slurm, partition=gpu" in folded


def test_what_is_sent_arrives() -> None:
    """As the order that REST would make of it; what is empty is left to its default."""
    training = {
        "kind": "train", "dataset": "a", "label_smoothing": "0.1", "prepare": "false",
        "augment": "mirror, crop",
    }  # fmt: skip
    assert new_job(Form([*training.items()])).order() == Training(
        dataset="a", label_smoothing=0.1, prepare=False, augment=["mirror", "crop"]
    )
    study = {
        "kind": "scaling", "dataset": "a@2", "ranks": "1, 2,8", "repeats": "3", "epochs": "2",
        "batch_size": "", "backend": "lsf", "unstaged": "1", "gpus": "1", "target_miou": "0.5",
        "evaluate_every": "1",
    }  # fmt: skip
    order = new_job(Form([*study.items()])).order()
    assert (order.resources or {})["gpus"] == 1
    assert replace(order, resources=None) == Scaling(
        dataset="a@2", ranks=[1, 2, 8], repeats=3, epochs=2, backend="lsf", stage=False,
        target_miou=0.5, evaluate_every=1,
    )  # fmt: skip
    preflight = {
        "kind": "preflight", "dataset": "", "path": "/gpfs/adas", "ranks": "16",
        "through": "horovod", "synthetic": "true", "steps": "5", "backend": "slurm",
    }  # fmt: skip
    assert new_job(Form([*preflight.items()])).order() == Preflight(
        path="/gpfs/adas", ranks=16, synthetic=True, steps=5, backend="slurm"
    )


def test_forms_of_preflights_and_studies(browser: TestClient) -> None:
    """Without scripts: what is wrong is a page that says it, what is right is handed over.

    Another site's form begins nothing.
    """
    study = {"kind": "scaling", "dataset": "city", "ranks": "1,two", "max_steps": "1"}
    refused = browser.post("/new-job", data=study, headers=HERE)
    assert (refused.status_code, "ranks" in refused.text) == (400, True)
    assert browser.post("/new-job", data=study | {"ranks": "1"}, headers={
        "Sec-Fetch-Site": "cross-site"}).status_code == 403  # fmt: skip
    dry = browser.post("/new-job/dry-run", data=study | {"ranks": "1,2"}, headers=HERE).text
    assert ("training-r1" in dry, "--num_workers 2" in dry) == (True, True)
    preflight = {"kind": "preflight", "ranks": "2", "steps": "5"}
    refused = browser.post("/new-job", data=preflight, headers=HERE)
    assert (refused.status_code, "steps 5: goes with synthetic" in refused.text) == (400, True)
    del preflight["steps"]
    dry = browser.post("/new-job/dry-run", data=preflight, headers=HERE).text
    assert ("--ranks 2" in dry, "None" in dry) == (True, False)
    assert browser.get("/v1/jobs?state=pending").json()["jobs"] == []


def test_machines_are_checked_without_a_dataset(catalogued: Path, tmp_path: Path) -> None:
    """On a home that has none yet, where nothing can be trained."""
    home = copy_home(catalogued, tmp_path / "none")
    app = create_app(Settings(home=home, cache=home / "cache"), authenticates=False)
    with TestClient(app, headers={"Accept": "text/html"}) as client:
        form = client.get("/new-job").text
    assert re.findall(r'name="kind" value="(\w+)"', form) == ["preflight"]
    assert "There is no dataset yet" in form
