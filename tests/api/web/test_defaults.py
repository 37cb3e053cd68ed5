"""What empty fields of a job's form stand for: numbers and names, as the job then has them."""

import os
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from api.app import create_app
from api.settings import Settings
from tests.api.web.jobs import home_with_jobs

HERE = {"Sec-Fetch-Site": "same-origin"}
_KINDS = ("train", "validate", "scaling", "preflight")


@pytest.fixture(scope="module")
def browser(catalogued: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A browser at a home with jobs, the dataset city of two splits, and whole of none."""
    home = home_with_jobs(catalogued, tmp_path_factory.mktemp("defaults"))
    (home / "backends.toml").write_text('[hosts]\nhosts = ["a:4", "b:2", "c:4"]\n')
    app = create_app(Settings(home=home, cache=home / "cache"), authenticates=False)
    with TestClient(app, headers={"Accept": "text/html"}, follow_redirects=False) as client:
        made = client.post("/new-dataset", data={"asked": "", "name": "whole"}, headers=HERE)
        assert made.status_code == 303, made.text
        yield client


def form_of(text: str, kind: str) -> str:
    """The form of a kind of job."""
    forms: list[str] = re.findall(r"(?s)<form\b.*?</form>", text)
    return next(form for form in forms if f'name="kind" value="{kind}"' in form)


def shown(form: str) -> dict[str, str]:
    """The text of each empty field of a form that says a default."""
    fields = re.findall(r'<(?:input|textarea) name="(\w+)"[^>]*? placeholder="([^"]*)"', form)
    lists = re.findall(r'<select name="(\w+)"[^>]*>\s*<option value="">([^<]*)', form)
    return {name: unescape(text) for name, text in (*fields, *lists)}


def following(browser: TestClient, query: str) -> dict[str, str]:
    """The defaults that follow from a form's fields."""
    text = browser.get(f"/new-job/estimate?{query}").text
    found = re.findall(r'data-default="(\w+)" value="([^"]*)"', text)
    return {name: unescape(value) for name, value in found}


def test_each_empty_field_has_its_default(browser: TestClient) -> None:
    """Of all kinds; none is left to words such as "as the job decides"."""
    text = browser.get("/new-job?dataset=city").text
    for kind in _KINDS:
        fields = shown(form_of(text, kind))
        fields.pop("dataset", None)  # of a check of machines: none
        fields.pop("holding", None)
        assert len(fields) > 12
        others = {n: said for n, said in fields.items() if not said.startswith("default: ")}
        assert others == {}, kind
    train = shown(form_of(text, "train"))
    expected = {
        "split": "train", "max_steps": "300", "height": "152", "width": "240",
        "evaluate_every": "never", "learning_rate": "0.002", "augment": "mirror",
        "evaluate_split": "validation", "checkpoint_every": "100", "continue_from": "new weights",
        "keep_checkpoints": "2", "start_after": "100", "attempts": "3", "gpus": "0",
        "prepare": "no", "precision": "auto", "model": "small_unet",
        "memory_mb": "none (local has no such setting)",
        "cores": f"any of this machine's {len(os.sched_getaffinity(0))}",
    }  # fmt: skip
    assert {name: train[name] for name in expected} == {
        name: f"default: {said}" for name, said in expected.items()
    }
    validate = shown(form_of(text, "validate"))
    assert validate["slices"] == "default: camera and scene; such as weather,speed"
    assert validate["split"] == "default: validation"
    undivided = browser.get("/new-job?dataset=whole").text
    for kind in ("train", "validate", "scaling"):
        assert shown(form_of(undivided, kind))["split"] == "default: all"
    of_question = shown(form_of(browser.get("/new-job?min.car=1").text, "train"))
    assert of_question["split"] == "default: all"


def test_a_name_is_the_one_that_the_job_gets(browser: TestClient) -> None:
    """The next free one of its kind and dataset."""
    text = browser.get("/new-job?dataset=city").text
    said = shown(form_of(text, "preflight"))["name"].removeprefix("default: ")
    begun = browser.post("/new-job", data={"kind": "preflight", "ranks": "1"}, headers=HERE)
    assert (begun.status_code, begun.headers["location"]) == (303, f"/jobs/{said}")
    browser.post(f"/jobs/{said}/cancel", headers=HERE)
    number = int(said.rpartition("-")[2])
    assert said == f"preflight-local-{number}"
    assert following(browser, "kind=train&dataset=city")["name"] == f"train-city-{number + 1}"


def test_steps_and_epochs_follow_from_each_other(browser: TestClient) -> None:
    """And from workers, frames of each step, and the split's frames."""
    plan = browser.get("/new-job/plan?dataset=city").text
    frames = int(re.findall(r"train</bdi> (\d+)", plan)[0])
    of = "kind=train&dataset=city&workers=2&batch_size=2"
    assert following(browser, of)["max_steps"] == "300"
    assert following(browser, of)["epochs"] == f"{1200 / frames:.3g}, by its steps"
    assert following(browser, f"{of}&epochs=7")["max_steps"] == str(-(-7 * frames // 4))
    assert following(browser, f"{of}&max_steps=5")["epochs"] == f"{20 / frames:.3g}, by its steps"
    wrong = following(browser, f"{of}&max_steps=x")
    assert (wrong["max_steps"], wrong["epochs"]) == ("300, or an epoch if more", "as steps say")
    assert wrong["prepare"] == "yes where that saves work"
    many = following(browser, "kind=train&frames=100000&workers=1&batch_size=4&epochs=3")
    assert (many["max_steps"], many["prepare"]) == ("75000", "yes, if staged")
    study = following(browser, "kind=scaling&dataset=city&ranks=4,8&batch_size=1&epochs=1")
    assert study["max_steps"] == str(-(-frames // 4))


def test_resources_follow_from_the_backend(browser: TestClient) -> None:
    """Numbers that the hand-over of such a job has."""
    of = {
        backend: following(browser, f"kind=train&dataset=city&workers=4&backend={backend}")
        for backend in ("local", "hosts", "slurm", "lsf", "pbs", "kubernetes", "none")
    }
    assert {name: each["ranks_per_node"] for name, each in of.items()} == {
        "local": "none (local has no such setting)", "hosts": "4 or 2, its slots", "slurm": "4",
        "lsf": "4", "pbs": "4", "kubernetes": "4", "none": "none (none has no such setting)",
    }  # fmt: skip
    assert (of["pbs"]["cores"], of["hosts"]["cores"]) == ("1", "none (hosts has no such setting)")
    assert of["slurm"]["memory_mb"] == "none asked; slurm's queue limits it"
    assert of["kubernetes"]["wall_minutes"] == "none"
    assert of["lsf"]["nodes"] == "any"
    asked = {"kind": "train", "dataset": "city", "workers": "4", "unstaged": "1"}
    for backend, words in (("slurm", "--ntasks-per-node=4"), ("pbs", "ncpus=4:mpiprocs=4")):
        dry = browser.post("/new-job/dry-run", data=asked | {"backend": backend}, headers=HERE)
        assert words in dry.text, (backend, dry.text[-3000:])
