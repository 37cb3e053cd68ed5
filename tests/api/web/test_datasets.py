"""The pages of datasets, without a browser: what they show, and what their forms do."""

import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from api.app import create_app
from api.settings import Settings
from tests.api.servers import framesift

HERE = {"Sec-Fetch-Site": "same-origin"}
ASKED = {"asked": "min.car=1000"}


@pytest.fixture(scope="module")
def browser(shared_home: Path) -> Iterator[TestClient]:
    """A browser at a server that asks nobody who they are; dataset city@1 is there."""
    app = create_app(Settings(home=shared_home, cache=None), authenticates=False)
    with TestClient(app, headers={"Accept": "text/html"}, follow_redirects=False) as client:
        form = ASKED | {"name": "city", "split": "train=0.5,validation=0.5", "seed": "3"}
        made = client.post("/new-dataset", data=form, headers=HERE)
        assert (made.status_code, made.headers["location"]) == (303, "/datasets/city@1"), made.text
        yield client


def shown(browser: TestClient, path: str) -> str:
    """A page."""
    answer = browser.get(path)
    assert answer.status_code == 200, answer.text
    assert " style=" not in answer.text  # the policy forbids it
    return answer.text


def test_a_question_is_saved_as_a_dataset(browser: TestClient) -> None:
    """The form shows the question of Find's URL; the dataset has its frames and its splits."""
    found = shown(browser, "/?min.car=1000")
    assert 'href="/new-dataset?min.car=1000"' in found
    number = re.search(r'id="matching"[^>]*>(\d+)<', found)
    assert number
    form = shown(browser, "/new-dataset?min.car=1000")
    assert f"<strong>{number[1]}</strong>" in form
    assert 'name="asked" value="min.car=1000"' in form
    page = shown(browser, "/datasets/city")
    assert f"<strong>{number[1]}</strong>" in page
    assert "car pixels" in page
    assert re.search(r'aria-label="train: \d+ frames, [\d.]+ %, .*, target 50.0 %"', page)
    shares = re.findall(r'aria-label="(?:train|validation): \d+ frames, ([\d.]+) %, ([^,]*),', page)
    assert len(shares) == 2
    for share, verdict in shares:
        off = abs(float(share) - 50)
        is_near = off <= 100 / int(number[1])
        assert (verdict == "met") == is_near or off <= 1
    assert 'href="/datasets/city"' in shown(browser, "/datasets")


def test_targets_stand_beside_what_was_achieved(browser: TestClient) -> None:
    """A bar for each value and demand, and what could not be met."""
    matched = ASKED | {
        "name": "matched", "method": "match", "frames": "8", "like": "", "tolerance": "0.01",
        "targets": '{"camera": {"front_center": 0.9, "*": 0.1}}',
    }  # fmt: skip
    made = browser.post("/new-dataset", data=matched, headers=HERE)
    assert made.status_code == 303, made.text
    page = shown(browser, "/datasets/matched")
    assert "Target against achieved" in page
    told = re.findall(r'aria-label="front_center: ([\d.]+) %, ([^,]*), target 90.0 %: ', page)
    (missed,) = [verdict for _, verdict in told]
    assert ("too few" in missed) == ("Not met: camera front_center" in page)
    covered = {"asked": "", "name": "covered", "method": "cover", "demands": "car=3,bicycle=9999"}
    made = browser.post("/new-dataset", data=covered, headers=HERE)
    assert made.status_code == 303, made.text
    page = shown(browser, "/datasets/covered")
    assert re.search(r"Not met: Bicycle: short by [\d,]+ of 9,999 frames", page)
    assert re.search(r'aria-label="Bicycle: \d+ frames, target 9,999, [\d,]+ too few', page)
    sampled = {"asked": "", "name": "sampled", "method": "sample", "frames": ["6", ""],
               "stratify": "camera,car:0,1000", "allocation": "equal",
               "split": "train=0.5,validation=0.5", "split_by": "frame", "allow_leakage": "1",
               "stratify_splits": "car:1000,bicycle"}  # fmt: skip
    made = browser.post("/new-dataset", data=sampled, headers=HERE)
    assert made.status_code == 303, made.text
    page = shown(browser, "/datasets/sampled")
    assert 'aria-label="frames: 6 frames, target 6, met"' in page
    assert "<bdi>front_center, Car: 1,000 pixels or more</bdi>" in page
    assert "<td>Car: 1,000 pixels or more, Bicycle: there</td>" in page
    bins = ASKED | {"asked": "", "name": "bins", "method": "match", "frames": "8",
                    "targets": '{"car:1000,5000": {"1000:5000": 0.5, "5000:": 0.5}}'}  # fmt: skip
    assert browser.post("/new-dataset", data=bins, headers=HERE).status_code == 303
    page = shown(browser, "/datasets/bins")
    assert "<h3>Car [pixels]</h3>" in page
    assert "Not met: Car, 1,000 to 4,999 pixels: wants 4 frames and gets 0" in page
    assert "it stands in for what is missing of 1,000 to 4,999 pixels</p>" in page
    assert "percentage points off a target; 50.0 % of the frames are others" in page
    for raw in ("1000:", "total variation", "Jensen"):
        assert raw not in page.replace("camera,car:0,1000", "")


def test_what_is_missed_most_is_shown_first(browser: TestClient, shared_home: Path) -> None:
    """Ten misses of twelve on the page and by command, the rest folded; what is met is none."""
    alike = {"asked": "", "name": "alike", "method": "match", "frames": "15", "like": "city",
             "tolerance": "0.01", "targets": ""}  # fmt: skip
    made = browser.post("/new-dataset", data=alike, headers=HERE)
    assert made.status_code == 303, made.text
    page = shown(browser, "/datasets/alike")
    assert "wants 0 frames and gets 0" not in page
    report = browser.get("/v1/datasets/alike", headers={"Accept": "application/json"}).json()[
        "report"
    ]
    assert all(round(one["wanted"]) != one["achieved"] for one in report["unmet"])
    met = int(re.search(r"(\d+) tags met", page)[1])  # type: ignore[index]
    assert met + len({one["marginal"] for one in report["unmet"]}) == len(report["marginals"])

    noses = {f"nose{number:02}": 0.06 + 0.002 * number for number in range(12)}
    targets = {"camera": {**noses, "front_center": 1 - sum(noses.values())}}
    form = alike | {"name": "noses", "frames": "24", "like": "", "targets": json.dumps(targets)}
    assert browser.post("/new-dataset", data=form, headers=HERE).status_code == 303
    page = shown(browser, "/datasets/noses")
    told = unescape(page)
    missed = [int(one) for one in re.findall(r"Not met: .* wants (\d+) frames and gets 0", told)]
    assert told.count("Not met: ") == 10
    assert missed == sorted(missed, reverse=True)
    more = re.search(r"(\d+) more are not met", told)
    said = framesift(shared_home, "dataset", "show", "noses").stdout.splitlines()
    lines = [line for line in said if line.startswith("not met: ")]
    assert len(lines) == 11
    assert more
    assert lines[10].startswith(f"not met: {more[1]} more")
    said_so = [line[9:].replace("camera *:", "camera all others:") for line in lines[:10]]
    assert said_so == re.findall(r"Not met: (.*?)</p>", told)


def test_gaps_lead_to_frames_and_to_a_new_version(browser: TestClient) -> None:
    """Of the dataset and of each split; what is ticked is added, and the difference shown."""
    small = {"asked": "scene=20260616_094856", "name": "small"}
    assert browser.post("/new-dataset", data=small, headers=HERE).status_code == 303
    gaps = shown(browser, "/datasets/small/gaps?at_least=12")
    demands = re.findall(r'name="demand" value="(\w+=12)"', gaps)
    assert demands
    (path,) = re.findall(rf'value="{demands[0]}".*?href="(/\?[^"]*)"', gaps, re.DOTALL)[:1]
    assert 'id="matching"' in shown(browser, unescape(path))
    none = browser.post("/datasets/small/extensions", data={"seed": ""}, headers=HERE)
    assert (none.status_code, "tick what is to be added" in none.text) == (400, True)
    grown = browser.post("/datasets/small/extensions", data={"demand": demands[:2]}, headers=HERE)
    assert (grown.status_code, grown.headers["location"]) == (303, "/datasets/small@2"), grown.text
    page = shown(browser, "/datasets/small")
    assert 'href="/datasets/small%401/diff' not in page
    assert 'href="/datasets/small%402/diff?other=small%401"' in page
    assert 'href="/datasets/small%401">small@1</a> </dd>' in page
    diff = shown(browser, "/datasets/small@1/diff?other=small@2")
    assert "lie elsewhere than before; the largest difference is" in diff
    assert "jensen shannon" not in diff
    added = re.search(r'id="added">(\d+)<', diff)
    assert added
    assert int(added[1]) > 0
    assert "/frames/local:a2d2:" in diff
    splits = shown(browser, "/datasets/city/gaps?at_least=1000")
    assert '<th scope="col" class="number">train</th>' in splits
    lacking = re.search(r"Split <bdi>train</bdi></strong>\s*(.*?)</li>", splits, re.DOTALL)
    assert lacking
    following = re.search(r'<a href="(/\?[^"]*)"><bdi>[^<]+</bdi></a> \(', lacking[1])
    assert following is None or 'id="matching"' in shown(browser, unescape(following[1]))
    assert following or "no other frames" in lacking[1]


def test_a_dataset_is_divided_again(browser: TestClient) -> None:
    """A split is a new version; the form shows an error, also where htmx sends it."""
    path = "/datasets/city@1/splits"
    wrong = browser.post(path, data={"split": "train=0.9"}, headers=HERE | {"HX-Request": "true"})
    assert wrong.status_code == 400
    assert wrong.text.startswith('<p class="problem">')
    form = {"split": "a=0.5,b=0.5", "split_by": "frame", "allow_leakage": "1"}
    made = browser.post(path, data=form, headers=HERE | {"HX-Request": "true"})
    assert (made.status_code, made.headers["hx-redirect"]) == (200, "/datasets/city@2")
    assert "(guard off)" in shown(browser, "/datasets/city@2")


def test_a_dataset_is_described_renamed_and_removed(browser: TestClient) -> None:
    """Its versions follow; a name that was had is not taken by another."""
    for question in ("min.car=1", "min.car=1000"):
        form = {"asked": question, "name": "old"}
        assert browser.post("/new-dataset", data=form, headers=HERE).status_code == 303
    said = "<b>night</b> drives"
    path = "/datasets/old@2/change"
    described = browser.post(path, data={"description": said}, headers=HERE)
    assert (described.status_code, described.headers["location"]) == (303, "/datasets/old@2")
    page = shown(browser, "/datasets/old@2")
    assert said not in page
    assert said in unescape(page)
    taken = browser.post(path, data={"rename": "city"}, headers=HERE)
    assert (taken.status_code, "a dataset has this name" in taken.text) == (409, True)
    renamed = browser.post(path, data={"rename": "new"}, headers=HERE)
    assert renamed.headers["location"] == "/datasets/new@2"
    assert browser.get("/datasets/old").status_code == 404
    assert said in unescape(shown(browser, "/datasets/new"))
    assert 'href="/frames/' in shown(browser, "/datasets/new@1/diff?other=new@2")  # manifests
    again = browser.post("/new-dataset", data={"asked": "", "name": "old"}, headers=HERE)
    assert again.headers["location"] == "/datasets/old@3"  # old@1 never means another
    gone = browser.post("/datasets/new@2/remove", headers=HERE)
    assert (gone.status_code, gone.headers["location"]) == (303, "/datasets")
    assert browser.get("/datasets/new@2").status_code == 404
    assert "version 1" in shown(browser, "/datasets/new")
    assert browser.post("/datasets/new/remove", headers=HERE).status_code == 303
    assert 'href="/datasets/new"' not in shown(browser, "/datasets")


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"name": "x/y"}, "expected letters, digits"),
        ({"name": "x", "method": "some"}, "expected sample, match, cover, uncertain"),
        ({"name": "x", "method": "sample", "frames": "many"}, "frames"),
        ({"name": "x", "method": "match", "frames": "3", "targets": "nonsense"}, "targets"),
        ({"name": "x", "asked": "dataset=city"}, "remove that condition"),
        ({"name": "x", "asked": "min.sky=99999999999"}, "no frames"),
    ],
)
def test_wrong_forms_say_what_is_wrong(
    browser: TestClient, form: dict[str, str], said: str
) -> None:
    """In the words of REST."""
    refused = browser.post("/new-dataset", data=form, headers=HERE)
    assert refused.status_code == 400
    assert said in unescape(refused.text)


def test_pages_of_what_there_is_not(browser: TestClient) -> None:
    """404 as a page; forms of other sites are refused."""
    for path in ("/datasets/none", "/datasets/none/gaps", "/datasets/city/diff?other=none"):
        assert browser.get(path).status_code == 404
    abroad = {"Sec-Fetch-Site": "cross-site"}
    assert browser.post("/new-dataset", data={"name": "x"}, headers=abroad).status_code == 403
