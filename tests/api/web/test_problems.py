"""Problems as a browser shows them, times and durations, and pages of what is many."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from api.app import create_app
from api.settings import Settings
from api.web.find.facets import groups_of
from api.web.find.url_question import UrlQuestion
from api.web.moments import duration, moment
from api.web.plain_words import in_plain_words
from api.web.run.matrix import matrix_of
from api.web.run.measured import slices_of
from catalog.errors import AlreadyExists, RemovalRefused
from catalog.records.tables import Dataset, Job, Scan, Source, Task
from query.statistics.facet_report import Facet, FacetReport
from query.statistics.histogram_report import Bin
from tests.pipeline.homes import open_home

HERE = {"Sec-Fetch-Site": "same-origin"}
_HIDDEN = (
    "framesift ", "/v1", "openapi", " --", "UnknownName", "InvalidInput", "NotFound", "SQLSTATE",
    "SQL0",
)  # fmt: skip
"""What no page says of a problem."""


@pytest.fixture(scope="module")
def browser(shared_home: Path) -> Iterator[TestClient]:
    """A browser at a server that asks nobody who they are."""
    app = create_app(Settings(home=shared_home, cache=None), authenticates=False)
    with TestClient(app, headers={"Accept": "text/html"}, follow_redirects=False) as client:
        yield client


@pytest.mark.parametrize(
    ("path", "status", "title", "said"),
    [
        ("/?min.carr=1", 400, "This cannot be used as it is", "carr"),
        ("/datasets/none", 404, "Not found", "no dataset named 'none'"),
        ("/jobs/none", 404, "Not found", "no job named 'none'"),
        (
            "/?where=confusion('car','truck')>0",
            400,
            "This cannot be used as it is",
            "Give one: model, or the question's model",
        ),
        ("/?where=foo(", 400, "This cannot be used as it is", 'The condition "foo(" is not valid.'),
        ("/nothing/here", 404, "Not found", "/nothing/here: this server has no such path"),
    ],
)
def test_a_problem_is_a_page_in_plain_words(
    browser: TestClient, path: str, status: int, title: str, said: str
) -> None:
    """With a way back, and no class name, status or command; programs get the same document."""
    answer = browser.get(path, headers={"Referer": "http://testserver/jobs?job=a"})
    text = unescape(answer.text)
    assert (answer.status_code, answer.headers["content-type"]) == (
        status, "text/html; charset=utf-8",
    )  # fmt: skip
    main = text[text.index("<main") : text.index("</main>")]
    assert f"<h1>{title}</h1>" in main
    assert said in main
    for hidden in (*_HIDDEN, str(status)):
        assert hidden not in main.replace(said, "")
    assert '<a class="button quiet" href="/jobs?job=a">Back to the page before</a>' in main
    document = browser.get(path, headers={"Accept": "*/*"})
    assert document.headers["content-type"] == "application/problem+json"
    kinds = ("UnknownName", "InvalidInput", "NotFound", "Not Found", "SqlError")
    assert document.json()["title"] in kinds


_OF_CHROMIUM = (
    "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
)


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/v1/jobs/none", 404, "no job named 'none'"),
        ("/v1/nothing", 404, "/v1/nothing: this server has no such path"),
        ("/v1/jobs?limit=x", 422, "The address (limit): got 'x', expected a whole number"),
        ("/v1/sql", 405, "The address takes what programs send, and is no page."),
    ],
)
def test_rests_problem_is_a_page_where_a_browser_opens_it(
    browser: TestClient, path: str, status: int, said: str
) -> None:
    """And a document to programs, whatever they take, and to a page's scripts."""
    opened = {"Accept": _OF_CHROMIUM, "Sec-Fetch-Mode": "navigate"}
    answer = browser.get(path, headers=opened)
    main = unescape(answer.text).partition("<main")[2]
    assert (answer.status_code, answer.headers["content-type"], answer.headers["vary"]) == (
        status, "text/html; charset=utf-8", "Accept, Accept-Encoding",
    )  # fmt: skip
    assert said in main
    assert 'class="button quiet" href="/">Find</a>' in main
    for headers in (
        {"Accept": "*/*"}, {"Accept": "application/json"}, {"Accept": ""},
        {"Accept": "application/json, text/html"}, {"Accept": "*/*, text/html;q=0.1"},
        opened | {"Sec-Fetch-Mode": "cors"},
    ):  # fmt: skip
        document = browser.get(path, headers=headers)
        assert document.headers["content-type"] == "application/problem+json", headers
        assert document.json()["status"] == status
    posted = browser.post("/v1/jobs", json={}, headers=opened)
    assert posted.headers["content-type"] == "application/problem+json"
    assert browser.get("/v1/jobs", headers=opened).headers["content-type"] == "application/json"


def test_rests_401_leads_to_no_login(shared_home: Path) -> None:
    """A session would not count there: the page says so."""
    app = create_app(Settings(home=shared_home, cache=None), authenticates=True)
    with TestClient(app, follow_redirects=False) as client:
        answer = client.get("/v1/jobs", headers={"Accept": _OF_CHROMIUM})
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert "<h1>This address is for programs</h1>" in answer.text
        assert "It takes a token that a program sends" in unescape(answer.text)
        assert client.get("/jobs", headers={"Accept": _OF_CHROMIUM}).status_code == 303
        plain = client.get("/v1/jobs")
        assert plain.headers["content-type"] == "application/problem+json"


def test_a_way_back_leads_to_no_other_server(browser: TestClient) -> None:
    """Whatever page led here; the list that the path is of stands there."""
    for referer in ("http://elsewhere/jobs", "http://testserver//elsewhere/x", "nonsense", ""):
        text = browser.get("/datasets/none", headers={"Referer": referer}).text
        assert "Back to the page before" not in text
        assert 'href="/datasets">Build</a>' in text[text.index("<main") :]


def test_a_part_of_a_page_has_the_same_words(browser: TestClient) -> None:
    """As htmx puts it into a form."""
    part = browser.post(
        "/new-dataset", data={"name": "x/y"}, headers={**HERE, "HX-Request": "true"}
    )
    assert part.text.startswith('<p class="problem"><strong>This cannot be used as it is:</strong>')
    assert "InvalidInput" not in part.text


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (
            "no tag 'carr': did you mean car? framesift tags list, or GET /v1/tags, lists them.",
            "no tag 'carr': did you mean car?",
        ),
        ("no job named 'x': framesift jobs list and GET /v1/jobs list them", "no job named 'x'"),
        ("workers 9: at most 4; ask for fewer", "workers 9: at most 4; ask for fewer"),
        ("framesift is away", "framesift is away"),
        (str(AlreadyExists("job", "x", "give another --name")),
         "job 'x' already exists: give another name"),
        ("evaluate split b of dataset d@1: is not there; name another with --evaluate-split: c, d",
         "evaluate split b of dataset d@1: is not there; name another: c, d"),
        (("split_given: no source's layout has a field {split}: none of 3 has (framesift source "
         "show NAME shows it); divide by shares, such as --split train=0.8,validation=0.2"),
         ("split_given: no source's layout has a field {split}: none of 3 has; divide by shares, "
         "such as split train=0.8,validation=0.2")),
        (("model m: is none; expected the name of a training job, which framesift models list "
         "shows, or the --model-name of scored predictions"),
         ("model m: is none; expected the name of a training job, or the model name of scored "
         "predictions")),
        ("model m: runs code; name the training job that made it, or give --trust-model",
         "model m: runs code; name the training job that made it, or give your trust in the model"),
        (("dataset d@1: split x has no frames; name another with --split, or divide it again: "
         "framesift dataset split d"),
         "dataset d@1: split x has no frames; name another, or divide it again"),
        (("backend b: fetches none; stage the dataset first (framesift stage), or leave it where "
         "it is (--no-stage)"),
         "backend b: fetches none; stage the dataset first, or leave it where it is"),
        (str(RemovalRefused("a", 9, 10, 0.1)).partition("; ")[2],
         "where they are gone for good, have them removed"),
        ("the token is none: get another one from /login, or by 'framesift token create'; log in",
         "the token is none: get another one from /login; log in"),
        ("rank 1 failed: unrecognized arguments: --lst a --classes=b, and 'uv sync --extra x'",
         "rank 1 failed: unrecognized arguments: --lst a --classes=b, and 'uv sync --extra x'"),
        ('SQL0206N  "X" is not valid in the context where it is used.  SQLSTATE=42703',
         '"X" is not valid in the context where it is used.'),
        (("frames 5000, label 3: a page proposes at most 1,000 of each; ask for fewer; framesift "
          "improve has no such limit"),
         "frames 5000, label 3: a page proposes at most 1,000 of each; ask for fewer"),
        ("", ""),
    ],
)  # fmt: skip
def test_advice_for_programs_is_left_out(message: str, said: str) -> None:
    """And nothing else of the message: reasons stay, and so do the lines of other programs."""
    assert in_plain_words(message) == said


def test_errors_of_jobs_and_scans_are_in_plain_words(
    browser: TestClient, shared_home: Path
) -> None:
    """A job's, its tasks', and why it waits; a scan's on each page that shows it."""
    workspace = open_home(shared_home)
    with workspace.records.session() as session:
        source = session.query(Source).one()
        error = str(RemovalRefused(source.name, 9, 10, 0.1))
        scan = Scan(source_id=source.id, state="failed", counts={}, error=error)
        session.add(scan)
        job = Job(
            name="unplain", kind="train", backend="local", state="failed", metrics={},
            error="no cache: framesift cache limit sets one", request={"stages": []},
            waits="for space; framesift cache unpin makes some", paths={"folder": "", "logs": ""},
        )  # fmt: skip
        session.add(job)
        session.flush()
        number = scan.id
        session.add_all(
            Task(job_id=job.id, position=at, name=f"step-{at}", state="failed", backend="local",
                 error=f"no frames {at}: GET /v1/frames lists them",
                 waits=f"for step {at} (framesift jobs list)")
            for at in range(2)
        )  # fmt: skip
    workspace.close()
    for path in ("/operate", f"/operate/scans/{number}", f"/operate/sources/{source.name}"):
        text = browser.get(path).text
        assert "gone for good, have them removed<" in text, path
        assert "framesift ingest" not in text, path
    page = browser.get("/jobs/unplain").text
    for said in ("</strong> no cache<", "no frames 0<", "no frames 1<", "for step 1<",
                 "Waits for space<"):  # fmt: skip
        assert said in page, said
    assert "<small>for space</small>" in browser.get("/jobs").text
    assert "framesift cache" not in page
    assert "framesift jobs" not in page
    assert "GET /v1" not in page


def test_times_are_elements_with_the_exact_one() -> None:
    """In UTC until a script has the viewer's zone; other texts are escaped."""
    assert moment("2026-11-21T14:08:18Z") == (
        '<time datetime="2026-11-21T14:08:18Z" title="2026-11-21T14:08:18Z">2026-11-21 14:08 UTC'
        "</time>"
    )
    assert moment("<b>never</b>") == "&lt;b&gt;never&lt;/b&gt;"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.04, "0.0 s"), (24, "24 s"), (119.4, "119 s"), (120, "2 minutes"), (7199, "120 minutes"),
     (7200, "2 hours"), (172_799, "48.0 hours"), (1_212_678.6, "14.0 days"),
     (86_400 * 1234, "1,234 days")],
)  # fmt: skip
def test_durations_have_a_unit_for_people(seconds: float, said: str) -> None:
    """Not 1,212,678.6 s."""
    assert duration(seconds) == said


def test_times_of_frames_are_of_the_readers_zone_or_say_utc(browser: TestClient) -> None:
    """On a frame's page those of its tags and file; on Find the ends of a time's range."""
    made = browser.post("/v1/tags", json={"tag": "seen_at", "type": "timestamp"})
    assert made.status_code == 201, made.text
    fkeys = re.findall(r'href="/frames/([^"?]+)', browser.get("/gallery").text)[:2]
    for fkey, day in zip(fkeys, ("2026-11-21", "2026-11-23"), strict=True):
        marks = {"fkey": fkey, "tag": "seen_at", "value": f"{day} 14:08:18"}
        assert browser.post("/marks", data=marks, headers=HERE).status_code == 200
    page = browser.get(f"/frames/{fkeys[0]}").text
    assert f"<bdi>{moment('2026-11-21T14:08:18Z')}</bdi>" in page
    assert re.search(r'>mtime</th><td><time datetime="\d{4}-\d\d-\d\dT[\d:]+Z"', page)
    assert not re.search(r"<td>(<bdi>)?\d{4}-\d\d-\d\d", page)
    found = browser.get("/").text
    facet = found[found.index('data-facet="seen_at"') :].partition('<div class="facet')[0]
    assert 'placeholder="2026-11-21T14:08:18" aria-label="seen_at at least, UTC"' in facet
    assert 'aria-label="Highest seen_at, UTC"' in facet
    assert 'aria-label="seen_at, UTC: 2026-11-21T14:08:18 to 2026-11-23T14:08:18;' in facet
    assert "<small>UTC</small></div>" in facet
    other = found[found.index('data-facet="car"') :].partition('<div class="facet')[0]
    assert "UTC" not in other


def test_datasets_are_found_by_a_part_of_their_name(browser: TestClient, shared_home: Path) -> None:
    """A page lists the newest hundred of many, stays small, and finds the others."""
    made = browser.post("/new-dataset", data={"asked": "", "name": "early-bird"}, headers=HERE)
    assert made.status_code == 303, made.text
    workspace = open_home(shared_home)
    with workspace.records.session() as session:
        row = session.query(Dataset).filter_by(name="early-bird").one()
        columns = [one.key for one in Dataset.__table__.columns if one.key not in ("id", "name")]
        values = {name: getattr(row, name) for name in columns}
        session.add_all(Dataset(name=f"many-{number:04}", **values) for number in range(1_500))
    workspace.close()
    page = browser.get("/datasets").text
    assert page.count('<th scope="row">') == 100
    assert "early-bird" not in page
    assert "a part of a name finds others" in page
    assert len(page.encode()) < 300_000
    found = browser.get("/datasets?holding=BIRD").text
    assert re.findall(r'<a href="/datasets/([^"]+)"><bdi>', found) == ["early-bird"]
    assert "No dataset has this in its name" in browser.get("/datasets?holding=birdie").text
    assert len(browser.get("/datasets/early-bird").text.encode()) < 300_000


def _facets(classes: int) -> FacetReport:
    """A report of classes that ever fewer frames have."""
    bins = (Bin(kind="zero"), *(Bin(kind="range", low=2**n, high=2 ** (n + 1)) for n in range(24)))
    facets = tuple(
        Facet(
            tag=f"class_{number}", type="INTEGER", scale="log",
            edges=tuple(2**n for n in range(25)), bins=bins, name=f"Class {number}", asked=False,
            of_all=(10_000, *(classes - number + n for n in range(24))),
            counts=(10_000, *(classes - number + n for n in range(24))),
        )
        for number in range(classes)
    )  # fmt: skip
    return _report(facets)


def _report(facets: tuple[Facet, ...]) -> FacetReport:
    return FacetReport(snapshot=1, frames=20_000, matching=20_000, in_memory=True, facets=facets)


def test_of_150_classes_the_most_frequent_are_drawn() -> None:
    """The others are folded, but for one that is pinned, which stands before all."""
    report = _facets(150)
    tags = [facet.tag for facet in report.facets]
    groups = groups_of(report, UrlQuestion.of([("pin", "class_149")]), tags)
    assert [facet.tag for facet in groups.pinned] == ["class_149"]
    assert not groups.pinned[0].folded
    drawn = [facet.tag for facet in groups.classes if not facet.folded]
    assert drawn == tags[:40]
    assert len(groups.classes) == 149
    assert len(groups.every) == 41


def _tags(tag: str, many: int, *, values: int = 0) -> Iterator[Facet]:
    """Facets of as many tags: of numbers, or of texts with so many values."""
    edges, bins, counts = _facets(1).facets[0].edges, _facets(1).facets[0].bins, tuple(range(25))
    if values:
        bins = tuple(Bin(kind="value", value=f"value {value}") for value in range(values))
        edges, counts = (), tuple(range(values))
    for number in range(many):
        yield Facet(
            tag=f"{tag}_{number}", type="VARCHAR" if values else "DOUBLE",
            scale="categories" if values else "linear", edges=edges, bins=bins,
            name=f"{tag}_{number}", asked=tag == "asked", of_all=counts, counts=counts,
        )  # fmt: skip


def test_of_many_own_tags_the_first_are_drawn() -> None:
    """Lists of values take more place; what is pinned and what is asked for is drawn beside."""
    own = [*_tags("asked", 50), *_tags("speed", 500), *_tags("weather", 20, values=300)]
    of_classes = _facets(3).facets
    classes = [facet.tag for facet in of_classes]
    search = UrlQuestion.of([("pin", "weather_19")])
    groups = groups_of(_report((*of_classes, *own)), search, classes)
    assert [facet.tag for facet in groups.pinned] == ["weather_19"]
    drawn = [facet.tag for facet in groups.tags if not facet.folded]
    assert drawn == [f"asked_{number}" for number in range(50)]
    assert len(groups.tags) == 569
    assert groups.folded_tags == {facet.tag for facet in groups.tags} - {*drawn}

    groups = groups_of(_report((*of_classes, *own[50:])), search, classes)
    assert not groups.classes[2].folded
    drawn = [facet.tag for facet in groups.tags if not facet.folded]
    assert drawn == [f"speed_{number}" for number in range(30)]

    many_values = _report((*_tags("place", 20, values=300), *_tags("hour", 9)))
    groups = groups_of(many_values, UrlQuestion.of([]), [])
    assert [facet.tag for facet in groups.tags if not facet.folded] == [
        f"place_{number}" for number in range(7)
    ]


def test_a_matrix_of_150_classes_shows_those_with_most_errors() -> None:
    """Unless some are chosen; pixels that are right are no error."""
    names = [f"class {number}" for number in range(150)]
    matrix = [[0] * 150 for _ in names]
    for number in range(150):
        matrix[number][number] = 10**6 * (150 - number)
        matrix[number][149 - number] += number**2
    report = {"confusion_matrix": matrix, "classes": names}
    shown = matrix_of(report)
    assert (len(shown.columns), len(shown.rows), len(shown.others)) == (40, 40, 110)
    assert {"class 0", "class 149"} <= set(shown.columns)
    assert list(shown.columns) == [name for name in names if name in shown.columns]
    chosen = matrix_of(report, ["class 70", "class 3", "none"])
    assert chosen.columns == ("class 3", "class 70")
    assert matrix_of(report, ["none"]).columns == shown.columns


def test_of_2000_scenes_the_worst_are_listed() -> None:
    """And how many more there are; few stay in their order."""
    scenes = [{"scene": f"s{number}", "miou": (number % 7) / 7} for number in range(2_000)]
    few = [{"camera": "b", "miou": 0.9}, {"camera": "a", "miou": 0.1}]
    slices = slices_of({"slices": {"scene": scenes, "camera": few}})
    listed, more = slices["scene"]
    assert (len(listed), more) == (100, 1_900)
    assert {one["miou"] for one in listed} == {0.0}
    assert slices["camera"] == (few, 0)
