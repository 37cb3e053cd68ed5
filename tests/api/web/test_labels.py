"""Problems of forms name fields as their pages do: by their labels."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from api.app import create_app
from api.settings import Settings
from api.web.labels import OF_JOBS, labelled, labels_of
from tests.api.web.jobs import home_with_jobs
from tests.api.web.loop import home_with_loop

HERE = {"Sec-Fetch-Site": "same-origin"}
_PART = {**HERE, "HX-Request": "true"}

_NO_FIELDS = {"holding", "named.dataset", "named.model", "named.other", "roles"}
"""Of searches and lists, which no message names."""


@pytest.fixture(scope="module")
def home(catalogued: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with jobs and datasets."""
    return home_with_jobs(catalogued, tmp_path_factory.mktemp("labels"))


@pytest.fixture(scope="module")
def browser(home: Path) -> Iterator[TestClient]:
    """A browser at its server."""
    yield from _browser(home)


@pytest.fixture
def of_loop(home: Path, tmp_path: Path) -> Iterator[TestClient]:
    """A browser at a server whose jobs have validated models, too, that want more frames."""
    yield from _browser(home_with_loop(home, tmp_path))


def _browser(home: Path) -> Iterator[TestClient]:
    app = create_app(Settings(home=home, cache=home / "cache"), authenticates=False)
    with TestClient(app, headers={"Accept": "text/html"}, follow_redirects=False) as client:
        yield client


def labels_in(text: str) -> Iterator[tuple[str, str, str, str]]:
    """Path, kind of job, name and label of each field of a page's forms."""
    text = re.sub(r"(?s)<noscript>.*?</noscript>", "", text)
    for form in re.findall(r"(?s)<form\b.*?</form>", text):
        action = re.search(r'action="([^"#?]+)', form)
        kind = re.search(r'name="kind" value="(\w+)"', form)
        assert action
        for label in re.findall(r"(?s)<label\b[^>]*>(.*?)</label>", form):
            name = re.search(r'<(?:input|select|textarea)\b[^>]*? name="([^"]+)"', label)
            words = re.sub(r"(?s)<select.*?</select>|<textarea.*?</textarea>|<[^>]+>", "", label)
            if name and 'type="radio"' not in label and name[1] not in _NO_FIELDS:
                said = unescape(" ".join(words.split()))
                yield unescape(action[1]), kind[1] if kind else "", name[1], said


@pytest.mark.wide
def test_each_label_of_the_templates_is_in_the_tables(of_loop: TestClient) -> None:
    """And none else; a further setting of a job without one there has its name in words."""
    pages = (
        "/new-job", "/new-job?min.car=1", "/new-dataset", "/datasets/city", "/datasets/city/gaps",
        "/jobs/v-night/next-frames?frames=3", "/operate", "/operate/sources/a2d2",
        "/operate/tokens", "/operate/users", "/operate/audit", "/?min.car=1",
        "/questions", "/jobs/v-night",
    )  # fmt: skip
    seen: dict[tuple[str, str], set[str]] = {}
    others = []
    for page in pages:
        answer = of_loop.get(page)
        assert answer.status_code == 200, (page, answer.text)
        for path, kind, name, said in labels_in(answer.text):
            if path in ("/", "/jobs", "/jobs/v-night"):
                continue  # of lists, logs and Find, whose problems name no fields
            labels = labels_of(path, kind)
            expected = labels.get(name) or (kind and name.replace("_", " ").capitalize())
            if page == "/new-job?min.car=1" and name == "dataset" and kind != "preflight":
                expected = labels["save_as"]
            if name == "uri":
                assert said in ("Folder", "Bucket")
                said = labels["uri"]
            if said != expected:
                others.append((page, path, kind, name, said, expected))
            seen.setdefault((path, kind), set()).add(name)
    assert others == []
    absent = {kind: {*OF_JOBS[kind]} - seen["/new-job", kind] for kind in OF_JOBS}
    fields = {"save_as"}  # it is the field of the dataset, where a question is trained on
    ranks = {"workers", "start_after"}
    assert absent == {
        "train": fields, "validate": fields, "scaling": fields | ranks,
        "preflight": fields | ranks | {"unstaged"},
    }  # fmt: skip
    assert len(seen) > 12


@pytest.mark.parametrize(
    ("path", "form", "said"),
    [
        ("/new-job", {"kind": "train", "dataset": "city", "max_steps": "x"},
         "Steps: got 'x', expected a whole number"),
        ("/new-job", {"kind": "train", "dataset": "city", "augment": "mirror,x"},
         "Augmented by, value 2: got 'x', expected 'mirror', 'crop', 'scale' or 'colour'"),
        ("/new-job", {"kind": "train", "dataset": "city", "max_steps": "3", "epochs": "2"},
         "Steps 3 and epochs 2: give one of them"),
        ("/new-job", {"kind": "train", "dataset": "city", "gpus": "-1"},
         "GPUs for each worker: got '-1', expected 0 or more"),
        ("/new-job", {"kind": "validate", "dataset": "city", "model": "first", "onnx": "scale"},
         "What an ONNX file does not say 'scale': expected NAME=VALUE, such as scale=1/255"),
        ("/new-job", {"kind": "preflight", "ranks": "x"},
         "Ranks: got 'x', expected a whole number"),
        ("/new-job", {"kind": "scaling", "dataset": "city", "ranks": "1,x"},
         "Numbers of ranks, value 2: got 'x', expected a whole number"),
        ("/new-job", {"kind": "train", "dataset": "city", "keep_checkpoints": "x"},
         "Keep checkpoints: got 'x', expected a whole number"),
        ("/new-dataset", {"name": "a", "method": "sample", "frames": "x"},
         "Frames: got 'x', expected a whole number"),
        ("/new-dataset", {"name": "a", "method": "match", "frames": "5", "tolerance": "x",
                          "like": "city"},
         "Shares may be off by: got 'x', expected a number"),
        ("/new-dataset", {"name": "a", "min_gap_s": "x", "split": "a=0.5,b=0.5"},
         "Nearer frames stay on one side [s]: got 'x', expected a number"),
        ("/operate/tokens", {"name": "a", "days": "x"},
         "Days: got 'x', expected a whole number"),
    ],
)  # fmt: skip
def test_a_forms_problem_has_its_label(
    browser: TestClient, path: str, form: dict[str, str], said: str
) -> None:
    """In the form and on a page of its own; programs' names stand in neither."""
    part = browser.post(path, data=form, headers=_PART)
    text = unescape(part.text)
    assert (part.status_code // 100, said in text) == (4, True), text
    page = browser.post(path, data=form, headers=HERE)
    assert said in unescape(page.text)
    of_program = browser.post(path, data=form, headers={**HERE, "Accept": "*/*"})
    assert of_program.headers["content-type"] == "application/problem+json"
    assert said not in of_program.json()["detail"]


def test_a_problem_says_its_field(browser: TestClient) -> None:
    """A script puts it below that field."""
    form = {"kind": "train", "dataset": "city", "max_steps": "x"}
    text = browser.post("/new-job", data=form, headers=_PART).text
    assert text.startswith('<p class="problem" data-field="max_steps"><strong>')
    none = browser.post("/new-job", data={"kind": "train", "dataset": "none"}, headers=_PART).text
    assert none.startswith('<p class="problem"><strong>')


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/operate/scans/x", 422, "The address: got 'x', expected a whole number"),
        ("/datasets/city/gaps?at_least=x", 422,
         "Classes and cameras with fewer frames than: got 'x', expected a whole number"),
        ("/jobs?before=x", 422, "The address (before): got 'x', expected a whole number"),
        ("/marks", 405,
         "The address is where a form is sent to, and no page: open the form's page"),
    ],
)  # fmt: skip
def test_a_wrong_address_is_told_in_words(
    browser: TestClient, path: str, status: int, said: str
) -> None:
    """With a way back; no name of a program's parameter, and no method."""
    answer = browser.get(path)
    text = unescape(answer.text)
    main = text[text.index("<main") : text.index("</main>")]
    assert (answer.status_code, said in main) == (status, True), main
    assert 'class="button quiet" href="/">Find</a>' in main
    for hidden in ("path.", "query.", "OPTIONS", "POST"):
        assert hidden not in main


def test_words_of_a_sentence_are_left_alone() -> None:
    """Only names that are no words are labels within it; values stay as they came."""
    labels = OF_JOBS["train"]
    for message in (
        "model m: is none",
        "dataset d@1: split x has no frames",
        "split x: is not there",
        "no dataset named 'max_steps'",
    ):
        assert labelled(message, labels).text == message
    within = labelled("evaluate split b: needs evaluate_every", labels)
    assert within.text == "Evaluate split b: needs “Evaluate every [epochs]”"
    assert within.field == "evaluate_split"
