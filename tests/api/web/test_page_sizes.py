"""Every page and form of a large home, for an admin and for a reader: small, and no fault.

Pages are those of the routes themselves, so that a new one is walked, too.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import unescape
from itertools import product
from pathlib import Path
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient
from httpx2 import Response

from api.app import create_app
from api.http.rules import Api
from api.settings import Settings
from tests.api.route_rules import rules
from tests.api.web.large_home import ARABIC, UNBROKEN, LargeHome, large_home

pytestmark = pytest.mark.wide

LARGEST = 300_000
"""Of a page or part, as it is before compression [bytes]."""

_PART = {"HX-Request": "true"}
_FROM_HERE = {"Sec-Fetch-Site": "same-origin"}

_LEFT_OUT = {
    "/login", "/login/oidc", "/login/oidc/callback", "/static/{name}", "/jobs/{name}/events",
    "/pictures/images/{fkey:path}", "/pictures/labels/{fkey:path}",
    "/pictures/overlays/{fkey:path}", "/pictures/predictions/{fkey:path}",
}  # fmt: skip
"""Routes of GET that are no page of a catalog's."""

_OF_MANY = ("/operate", "/operate/cache", "/operate/tokens", "/operate/users")
"""Lists of Operate that a part of a name narrows."""


@pytest.fixture(scope="module")
def large(catalogued: Path, tmp_path_factory: pytest.TempPathFactory) -> LargeHome:
    """188 classes, 2,008 scenes, 10,000 datasets, 1,000 users, tokens, sources, and all jobs."""
    return large_home(catalogued, tmp_path_factory.mktemp("large"))


@pytest.fixture(scope="module")
def browser(large: LargeHome) -> Iterator[TestClient]:
    """A browser at its server, which asks who somebody is."""
    settings = Settings(home=large.home, cache=large.home / "cache")
    app = create_app(settings, authenticates=True)
    html = {"Accept": "text/html"}
    with TestClient(app, headers=html, follow_redirects=False) as client:
        yield client


def pages_of(large: LargeHome) -> dict[str, list[str]]:
    """Addresses of each route of a page, by the route's path."""
    questions = [
        "", "?min.car=1000&has.bicycle=1",
        f"?scene={quote(ARABIC)}&camera={quote(UNBROKEN)}&holding.scene=scene",
        "?" + "&".join(f"pin=more_{number}" for number in range(100)),
        "?" + "&".join(f"min.more_{number}=1" for number in range(50)),
    ]  # fmt: skip
    datasets = ["many-00001", "city@1", 127 * "n"]
    jobs = [f"/jobs/{quote(name)}" for name in (*large.jobs[::11], "v-large")]
    cell = f"/frames?truth={quote(ARABIC)}&predicted={quote(UNBROKEN)}"
    frames = [f"/frames/{quote(fkey)}" for fkey in large.fkeys]
    known = {
        "/": ["/" + one for one in questions],
        "/facets": ["/facets" + one for one in questions],
        "/drag": ["/drag" + one for one in questions],
        "/gallery": ["/gallery", f"/gallery?caption={','.join(f'more_{n}' for n in range(8))}"],
        "/map": [],  # no frame of theirs has a position
        "/values": [f"/values?tag=scene&number=1{one}" for one in ("", "&holding.scene=SCENE")],
        "/overlays": ["/overlays", "/overlays?holding.over=TRAINED&over=errors:trained-00001"],
        "/steps": ["/steps?field=min.more_7&values=1,10,100,1000,10000"],
        "/frames/{fkey:path}": [path + one for path, one in product(frames[:3], questions[:2])],
        "/new-dataset": [f"/new-dataset{one}" for one in questions[:3]],
        "/new-dataset/datasets": ["/new-dataset/datasets?like=MANY"],
        "/new-dataset/scores": ["/new-dataset/scores", "/new-dataset/scores?tag=MORE_1"],
        "/datasets": ["/datasets", "/datasets?holding=many", "/datasets?holding=nnn"],
        "/datasets/{name}": [f"/datasets/{name}" for name in datasets],
        "/datasets/{name}/gaps": [f"/datasets/{name}/gaps?at_least=50" for name in datasets[:2]],
        "/datasets/{name}/diff": ["/datasets/city@1/diff?other=many-00001"],
        "/jobs": ["/jobs", "/jobs?holding=trained", *_compared(large.jobs)],
        "/curves": [path.replace("/jobs", "/curves") for path in _compared(large.jobs)],
        "/jobs/{name}": [*jobs, "/jobs/v-large?class=Class+number+7"],
        "/jobs/{name}/part": [f"{job}/part" for job in jobs],
        "/jobs/{name}/output": [f"{job}/output" for job in jobs],
        "/jobs/{name}/files/{path:path}": ["/jobs/v-large/files/report.json"],
        "/jobs/{name}/frames": [f"/jobs/v-large{cell}"],  # it has no cells: a problem's page
        "/new-job": ["/new-job", "/new-job?dataset=city", f"/new-job{questions[1]}"],
        "/new-job/datasets": ["/new-job/datasets?holding=many", "/new-job/datasets?none=1"],
        "/new-job/models": ["/new-job/models?holding=t"],
        "/new-job/trained": ["/new-job/trained", "/new-job/trained?continue_from=TRAINED"],
        "/new-job/plan": ["/new-job/plan?dataset=city&kind=train"],
        "/new-job/estimate": ["/new-job/estimate?kind=train&dataset=city&workers=2"],
        "/jobs/{name}/next-frames": ["/jobs/v-large/next-frames"],
        **{path: [path, f"{path}?holding=000"] for path in _OF_MANY},
        "/operate/sources/{name}": [f"/operate/sources/{name}" for name in ("a2d2", 127 * "n")],
        "/operate/scans/{number}": ["/operate/scans/1", "/operate/scans/2"],
        "/questions/{name}": ["/questions/cars", f"/questions/{127 * 'n'}"],
    }  # fmt: skip
    routes = [
        path for (method, path), rule in rules().items()
        if method == "GET" and rule.api is Api.WEB and path not in _LEFT_OUT
    ]  # fmt: skip
    of_jobs = {path: [f"{jobs[0]}{path.removeprefix('/jobs/{name}')}"] for path in routes}
    return {
        path: known[path] if path in known else of_jobs[path] if "{name}" in path else [path]
        for path in routes
    }


def _compared(jobs: Sequence[str]) -> list[str]:
    groups = [jobs[at : at + 6] for at in range(0, len(jobs), 40)] + [jobs[-2:]]
    return [f"/jobs?{'&'.join(f'job={quote(name)}' for name in group)}" for group in groups]


PARTS = {
    "/facets", "/drag", "/steps", "/gallery", "/map", "/values", "/overlays", "/jobs/{name}/part",
    "/jobs/{name}/output", "/jobs/{name}/frames", "/datasets/{name}/gaps", "/new-job/plan",
    "/new-job/datasets", "/new-job/models", "/new-job/trained", "/new-job/estimate",
    "/new-dataset/datasets", "/new-dataset/scores",
}  # fmt: skip
"""Routes that scripts ask."""


def asked(browser: TestClient, large: LargeHome, user: str, route: str, path: str) -> Response:
    """A page for a user, compressed as a browser takes it."""
    browser.cookies.set("framesift", large.tokens[user])
    headers = {"Accept-Encoding": "gzip", **(_PART if route in PARTS else {})}
    return browser.get(path, headers=headers)


def test_every_page_of_an_admin_is_small(browser: TestClient, large: LargeHome) -> None:
    """Each answers, but two of a drawn validation's; none is larger than LARGEST."""
    sizes, refused = {}, {}
    for route, paths in pages_of(large).items():
        for path in paths:
            answer = asked(browser, large, "root", route, path)
            sizes[path] = len(answer.content)
            if answer.status_code not in (200, 303):
                refused[path] = answer.status_code
    assert {path: size for path, size in sizes.items() if size > LARGEST} == {}
    # It has neither cells nor a model that frames could be proposed for.
    drawn = pages_of(large)["/jobs/{name}/frames"] + pages_of(large)["/jobs/{name}/next-frames"]
    assert {path: status for path, status in refused.items() if path not in drawn} == {}
    assert len(sizes) > 70
    assert max(sizes.values()) > LARGEST / 2


def test_every_page_of_a_reader_is_small(browser: TestClient, large: LargeHome) -> None:
    """The same pages, or that they are closed; nothing is a fault."""
    statuses = {}
    for route, paths in pages_of(large).items():
        for path in paths[:2]:
            answer = asked(browser, large, "otto", route, path)
            statuses[path] = answer.status_code
            assert len(answer.content) < LARGEST, path
    usual = {200, 303, 403, 404}
    others = {path: status for path, status in statuses.items() if status not in usual}
    assert others == {f"/questions/{127 * 'n'}": 400}  # it names scenes that he may not see
    assert usual < {*statuses.values()}
    closed = {path for path, status in statuses.items() if status == 403}
    assert {"/operate/users", "/operate/audit", "/operate/cache"} <= closed
    assert {"/", "/datasets", "/jobs", "/questions", "/operate/tokens"}.isdisjoint(closed)
    # He is in no collection: none of 10,000 datasets was looked at for what he sees of it.
    assert not (large.home / "seen").exists()


def test_ten_thousand_datasets_are_searched(browser: TestClient, large: LargeHome) -> None:
    """Where datasets, models and jobs are listed or offered: the one meant, and not those alike."""
    browser.cookies.set("framesift", large.tokens["root"])

    def names(path: str, pattern: str) -> list[str]:
        return [unescape(name) for name in re.findall(pattern, browser.get(path).text)]

    option = r'<option value="([^"]+)"'
    for path in ("/new-job", "/datasets/city", "/datasets/many-00001"):
        listed = {*names(path, option)}
        assert len([one for one in listed if one.startswith("many-09")]) == 99  # and one long name
        assert "many-00009@1" not in listed
    for path, pattern in (
        ("/new-job/datasets?holding=MANY-{}", r'<option value="many-(\d+)'),
        ("/datasets?holding=MANY-{}", r'<a href="/datasets/many-(\d+)'),
        ("/new-job/models?holding=TRAINED-{}", r'<option value="trained-(\d+)'),
        ("/new-dataset/datasets?like=MANY-{}", r'<option value="many-(\d+)'),
        (
            "/new-dataset/datasets?disjoint_from=city%401,MANY-{}",
            r'<option value="city@1,many-(\d+)',
        ),
        ("/new-job/trained?compare=TRAINED-{}", r'<option value="trained-(\d+)'),
        ("/jobs?holding=TRAINED-{}", r'name="job" value="trained-(\d+)'),
    ):
        assert names(path.format("00009"), pattern) == ["00009"]
        assert names(path.format("0000"), pattern) == [f"0000{n}" for n in range(9, -1, -1)]
        assert len(names(path.format("00"), pattern)) == 100
    laid = names("/overlays?holding.over=TRAINED-0039&over=errors:trained-00001", option)
    kinds = [(kind, name[:13]) for kind, _, name in (one.partition(":") for one in laid[1:])]
    assert kinds == [
        *(
            (kind, f"trained-0039{n}")
            for n in range(9, -1, -1)
            for kind in ("prediction", "errors")
        ),
        ("errors", "trained-00001"),
    ]
    find = browser.get("/?holding.over=TRAINED-0039&over=errors:trained-00001").text
    assert find.count('value="prediction:trained-') == 10
    assert 'value="errors:trained-00001" selected>errors of trained-00001<' in find
    assert browser.get("/").text.count('value="prediction:trained-') == 25
    older = names("/jobs?holding=trained", r'href="([^"]+)">Older<')
    assert older[0].startswith("/jobs?holding=trained&before=")
    assert len(names(older[0], r'name="job" value="trained-')) == 100


@dataclass(frozen=True)
class Form:
    """Where a form of a page sends to, and its hidden fields."""

    action: str
    fields: dict[str, str]


def forms_of(text: str) -> Iterator[Form]:
    """The forms of a page that change something."""
    for form in re.findall(r"<form ([^>]*method=\"post\".*?)</form>", text, re.DOTALL):
        fields = re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', form)
        for action in re.findall(r'(?:action|hx-post)="([^"]+)"', form):
            yield Form(unescape(action), {name: unescape(value) for name, value in fields})


def test_every_form_sent_empty_says_what_it_lacks(browser: TestClient, large: LargeHome) -> None:
    """By a writer, and by a reader, who may change nothing; no answer is large or a fault."""
    forms: dict[str, Form] = {}
    for route, paths in pages_of(large).items():
        if route in PARTS - {"/datasets/{name}/gaps", "/jobs/{name}/part"}:
            continue
        for path in paths[:2]:
            for form in forms_of(asked(browser, large, "root", route, path).text):
                forms.setdefault(re.sub(r"\d+", "N", form.action), form)
    actions = {form.action for form in forms.values()}
    assert {"/marks", "/new-dataset", "/new-job", "/questions", "/operate/users"} <= actions
    statuses: dict[str, set[int]] = {"otto": set(), "dora": set()}
    for user, said in statuses.items():
        for form in sorted(forms.values(), key=lambda one: one.action.endswith("/remove")):
            if form.action == "/logout":
                continue
            browser.cookies.set("framesift", large.tokens[user])
            answer = browser.post(form.action, data=form.fields, headers=_FROM_HERE | _PART)
            assert len(answer.content) < LARGEST, form.action
            assert answer.status_code < 500, (form.action, answer.text)
            said.add(answer.status_code)
    assert 403 in statuses["otto"]
    assert 400 in statuses["dora"]
