"""Find, the frame page and marks, over a real catalog and without a browser."""

import io
import json
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient
from PIL import Image

from api.app import create_app
from api.frame_images.predictions import predictions_of
from api.schemas.selections import DescriptionAnswer
from api.settings import Settings
from api.web.find.shown import copies_of
from api.web.find.url_question import UrlQuestion
from api.web.run.matrix import shown_of
from catalog.accounts import row_collections, tokens, users
from catalog.errors import InvalidInput
from catalog.records.store import RecordStore
from catalog.records.tables import Job
from framesift import connect
from ingest.labels.label_image import decode_label
from pipeline.jobs.request import JobPaths
from query.frames.select_frames import select_frames
from query.question.question import Question
from tests.api.servers import framesift, serving
from tests.api.web.predicted import CAR, CLASSES, home_with_prediction
from tests.pipeline.homes import SAMPLE, copy_home, open_home

HERE = {"Sec-Fetch-Site": "same-origin"}
JSON = {"Accept": "application/json"}
PART = {"HX-Request": "true"}


@pytest.fixture(scope="module")
def browser(shared_home: Path) -> Iterator[TestClient]:
    """A browser at a server that asks nobody who they are."""
    app = create_app(Settings(home=shared_home, cache=None), authenticates=False)
    html = {"Accept": "text/html"}
    with TestClient(app, headers=html, follow_redirects=False) as client:
        yield client


def matching(page: str) -> int:
    """The number of frames that a page says."""
    found = re.search(r'id="matching"[^>]*>([\d,]+)<', page)
    assert found, page[:2000]
    return int(found[1].replace(",", ""))


def test_the_url_is_the_question() -> None:
    """Each kind of field, with what it means."""
    asked = UrlQuestion.of(
        [("min.car", "1,000"), ("max.car", ""), ("has.bicycle", "1"), ("without.truck", "1"),
         ("camera", "front_center"), ("camera", "rear_center"), ("is.weather", "rain"),
         ("not.quality", "bad"), ("not.quality", "dark"),
         ("min.speed", "12.5"), ("max.mtime", "2026-01-01T00:00:00"), ("where", "size > 1"),
         ("question", '{"where": "size < 9", "scenes": ["s"]}')]
    )  # fmt: skip
    question = asked.question(["car", "bicycle", "truck"])
    assert [each.model_dump() for each in question.ranges] == [
        {"tag": "car", "lowest": 1000, "highest": None}
    ]
    assert (question.cameras, question.scenes) == (("front_center", "rear_center"), ("s",))
    assert question.where == "(size < 9) and (size > 1)"
    assert question.condition is not None
    assert question.condition.model_dump()["of"] == (
        {"kind": "has", "tag": "bicycle", "pixels": 1},
        {"kind": "without", "tag": "truck", "pixels": 1},
        {"kind": "tag", "tag": "weather", "op": "=", "value": "rain"},
        {"kind": "tag", "tag": "quality", "op": "not_known_to_be", "value": "bad"},
        {"kind": "tag", "tag": "quality", "op": "not_known_to_be", "value": "dark"},
        {"kind": "tag", "tag": "speed", "op": ">=", "value": 12.5},
        {"kind": "tag", "tag": "mtime", "op": "<=", "value": "2026-01-01T00:00:00"},
    )
    assert UrlQuestion.of(asked.pairs) == asked


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ([("min.car", "many")], "car: 'many' is no number"),
        ([("min.car", "2"), ("max.car", "1")], "swap them"),
        ([("min.car", "nan")], "is no number"),
        ([("at", "x")], "at=x"),
        ([("colour", "red")], "colour: no parameter of this page"),
        ([("sort", "car down")], "'desc' for falling order"),
        ([("over", "errors")], "prediction:MODEL or errors:MODEL"),
        ([("over", "label:first")], "prediction:MODEL or errors:MODEL"),
        ([("size", "huge")], "expected small, medium, large"),
        ([("caption", ",".join("abcdefghi"))], "9 columns, expected 8"),
        ([("question", "{")], "JSON"),
    ],
)
def test_a_wrong_url_says_what_is_wrong(pairs: list[tuple[str, str]], said: str) -> None:
    """And nothing of it is ignored."""
    with pytest.raises(InvalidInput, match=re.escape(said)):
        read(pairs)


def read(pairs: list[tuple[str, str]]) -> None:
    """Read a URL's parameters, all of them."""
    asked = UrlQuestion.of(pairs)
    asked.question(["car"])
    assert asked.at is None or asked.at > 0
    assert asked.view.order is None or asked.view.order.column


def test_how_frames_are_shown_is_no_part_of_the_question() -> None:
    """Two URLs that differ in it ask the same; links can take it along."""
    shown = [("sort", "car desc"), ("over", "errors:first"), ("truth", "car"),
             ("predicted", "truck"), ("size", "large"), ("caption", "Bicycle, car")]  # fmt: skip
    asked = UrlQuestion.of([("min.car", "1"), *shown])
    assert asked.which(["car"]) == UrlQuestion.of([("min.car", "1")]).which(["car"])
    assert asked.asked_alone.query == "min.car=1"
    assert asked.view.columns == ("car", "bicycle")
    assert asked.view.layer("a:b c") == (
        "/pictures/predictions/a:b%20c?width=640&format=jpeg&quality=75&alpha=1&classes=car"
        "&model=first&errors=true&taken_for=truck"
    )
    of_truck = shown_of("first", ("truck", "car")).view
    assert (of_truck.over, of_truck.truth, of_truck.predicted) == ("errors:first", "truck", "car")
    for model, tags in ((None, ("truck", "car")), ("first", ("truck", "truck"))):
        assert shown_of(model, tags).query == "over=label&truth=truck"


@pytest.mark.wide
def test_the_page_answers_as_rest_does(browser: TestClient) -> None:
    """Number, sentence, plots, and the copies for programs."""
    query = "min.car=1000&has.bicycle=1"
    question = {"ranges": [{"tag": "car", "lowest": 1000}],
                "condition": {"kind": "has", "tag": "bicycle"}}  # fmt: skip
    expected = browser.post("/v1/selections", json=question, headers=JSON).json()
    text = browser.get(f"/?{query}").text
    assert matching(text) == expected["count"] == 5
    assert expected["sentence"] in unescape(text)
    assert re.search(r'name="min.car" value="1000"', text)
    part = browser.get(f"/facets?{query}", headers=PART | {"HX-Trigger": "find"})
    assert part.headers["hx-push-url"] == f"/?{query}"
    assert matching(part.text) == 5
    moved = browser.get(f"/drag?{query}", headers=PART).json()
    assert moved["matching"] == "5"
    drawn = re.findall(
        r'id="plot-(\d+)".*?class="beyond" d="(.*?)".*?class="within" d="(.*?)"',
        part.text,
        re.DOTALL,
    )
    assert len(drawn) > 20
    assert moved["plots"] == {number: [within, beyond] for number, beyond, within in drawn}
    assert moved["numbers"] == dict(re.findall(r'id="n-(\d+-\d+)"[^>]*>([\d,]+)<', part.text))
    assert "is no number" in browser.get("/drag?min.car=many", headers=PART).text
    copies = [unescape(each) for each in re.findall(r'id="copy-\d">(.*?)</pre>', text, re.DOTALL)]
    assert [word in copy for word, copy in zip(("curl", "Client", "select"), copies, strict=True)]
    assert '<a class="edit" href="#min.car">' in text
    assert 'id="min.car"' in text
    asked = json.loads(re.findall(r"echo '(.*)' \|", copies[2])[0])
    assert browser.post("/v1/selections", json=asked, headers=JSON).json()["count"] == 5


@pytest.mark.parametrize(
    ("field", "query"),
    [("min.car", "max.truck=1000&camera=front_center"), ("max.car", "has.car=1"),
     ("min.frame_number", "camera=front_center")],
)  # fmt: skip
def test_a_slider_is_told_at_every_position_what_its_field_is_told(
    browser: TestClient, field: str, query: str
) -> None:
    """Numbers to be summed by the page: those that `/drag` says with the field in the question."""
    end, _, tag = field.partition(".")
    page = unescape(browser.get("/").text)
    listed = "low" if end == "min" else "high"
    found = re.search(rf'data-facet="{tag}".*?data-{listed}="(.*?)"', page)
    assert found
    values = found[1].split(",")
    values = values[1:] if end == "min" else values[-2::-1]
    asked = {"field": field, "values": ",".join(values)}
    table = browser.get(f"/steps?{query}&{field}=7&{urlencode(asked)}", headers=PART).json()
    assert str(table["snapshot"]) == re.findall(r'data-snapshot="(\d+)"', page)[0]
    told = set()
    for position in range(0, len(values) + 1, 4):
        own = {field: values[position - 1]} if position else {}
        moved = browser.get(f"/drag?{query}&{urlencode(own)}", headers=PART).json()
        assert f"{sum(table['matching'][position:]):,}" == moved["matching"]
        numbers = {key: f"{sum(row[position:]):,}" for key, row in table["numbers"].items()}
        assert numbers == moved["numbers"]
        assert {*table["plots"]} == {*moved["plots"]}
        for number, plot in table["plots"].items():
            first, last = (plot["ranges"][position:] or plot["ranges"])[0]
            bars = [bin_ for bin_, row in enumerate(plot["counts"]) if sum(row[position:])]
            for path, within in zip(moved["plots"][number], (True, False), strict=True):
                drawn = [int(bin_) for bin_ in re.findall(r"M(\d+)\.5 ", path)]
                assert drawn == [bin_ for bin_ in bars if (first <= bin_ <= last) == within]
        told.add(moved["matching"])
    assert len(told) > 1
    for wrong, said in (("field=has.car&values=1", "min.TAG or max.TAG"),
                        ("field=min.car&values=many", "is no number"),
                        ("field=min.carr&values=1", "carr")):  # fmt: skip
        refused = browser.get(f"/steps?{wrong}", headers=PART)
        assert (refused.status_code >= 400, said in unescape(refused.text)) == (True, True)


def listed(text: str, tag: str) -> dict[str, str]:
    """The values of a tag that a page lists, and what stands beside each."""
    found = re.search(rf'<ul class="values" id="{tag}".*?</ul>', text, re.DOTALL)
    assert found
    rows = re.findall(r'value="([^"]*)"[^>]*> <bdi>.*?<output[^>]*>([^<]*)<', found[0], re.DOTALL)
    return {unescape(value): number for value, number in rows}


def test_values_are_searched_for(browser: TestClient) -> None:
    """By a text in letters of either case, as a part and as the whole page, numbers alike."""
    every = listed(browser.get("/").text, "scene")
    wanted = {scene: number for scene, number in every.items() if "202604" in scene}
    assert 0 < len(wanted) < len(every)
    path = "/values?tag=scene&number=1&holding.scene=202604"
    for text in (browser.get(path, headers=PART).text, browser.get("/?holding.scene=202604").text):
        assert listed(text, "scene") == wanted
        assert 'id="n-1-0"' not in text
    assert matching(browser.get("/?holding.scene=202604").text) == 24
    assert "n-1-" not in browser.get("/facets?holding.scene=202604", headers=PART).text
    # Under the other conditions, but those on the tag itself; what is ticked stays.
    other = next(scene for scene in every if scene not in wanted)
    conditions = f"camera=front_center&scene={other}"
    narrowed = browser.get(f"{path}&{conditions}", headers=PART).text
    of_camera = listed(browser.get("/?camera=front_center").text, "scene")
    assert listed(narrowed, "scene") == {
        scene: of_camera[scene] for scene in (other, *wanted) if of_camera[scene] != "0"
    }
    assert re.search(rf'value="{other}"[^>]* checked', narrowed)
    # In letters of either case; its own % and _ count as themselves, and a quote ends nothing.
    cameras = [*listed(browser.get("/").text, "camera")]
    for text in ("_", "R", "%", "!", "'", "T_CENTER", "r_c"):
        query = urlencode({"holding.camera": text})
        part = browser.get(f"/values?tag=camera&number=0&{query}", headers=PART)
        found = [camera for camera in cameras if text.lower() in camera]
        assert sorted(listed(part.text, "camera")) == sorted(found), text
    assert listed(browser.get("/values?tag=scene&number=1", headers=PART).text, "scene") == every
    for wrong, said in ((f"camera&holding.camera={'x' * 201}", "201 characters"),
                        ("car", "expected the tag of a text"), ("carr", "carr")):  # fmt: skip
        refused = browser.get(f"/values?number=0&tag={wrong}", headers=PART)
        assert (400 <= refused.status_code < 500, said in unescape(refused.text)) == (True, True)


def test_of_many_conditions_some_are_chips(browser: TestClient) -> None:
    """Each chip's link has all other conditions: with all of 50 they would be most of the page."""
    tags = re.findall(r'name="has\.(\w+)"', browser.get("/").text)[:25]
    assert len(tags) == 25
    text = browser.get("/?" + "&".join(f"without.{tag}=1" for tag in tags)).text
    assert text.count('aria-label="Remove: ') == 20
    assert "and 5 more" in text
    assert len(re.findall(r'name="without\.\w+" value="1" checked', text)) == 25


def test_a_search_in_values_is_no_part_of_the_question() -> None:
    """Nor of what is saved of it."""
    asked = UrlQuestion.of([("scene", "none"), ("holding.scene", "2026"), ("sort", "car")])
    assert asked.asked_alone.query == "scene=none"
    assert asked.which(["car"]) == UrlQuestion.of([("scene", "none")]).which(["car"])


def test_a_question_of_a_dataset_is_copied_with_it() -> None:
    """For each program, the command line too."""
    asked = UrlQuestion.of([("dataset", "mine"), ("split", "train"), ("min.car", "1000")])
    question = {"ranges": [{"tag": "car", "lowest": 1000}]}
    described = DescriptionAnswer(question=question, snapshot=1, sentence="", sql="", note="")
    copies = dict(copies_of(asked, described, "http://server", "/v1/frames"))
    assert copies["curl"].endswith("--data-urlencode dataset=mine --data-urlencode split=train")
    assert copies["Python"].endswith(", dataset='mine', split='train'))")
    assert copies["command line"].endswith(
        "| framesift facets --dataset mine --split train --question -"
    )
    asked = UrlQuestion.of([("dataset", "mine"), ("split", "train")])
    whole = dict(copies_of(asked, described, "http://server", "/v1/frames"))
    assert whole["command line"] == "framesift dataset export mine --split train"


def test_many_predictions_of_a_model_do_not_hide_those_of_another(
    catalogued: Path, tmp_path: Path
) -> None:
    """The first model's one job is older than 50 of another, which has other frames."""
    home, frame, _ = home_with_prediction(catalogued, tmp_path)
    workspace = open_home(home)
    folder = tmp_path / "of-others"
    report = JobPaths(folder).report
    report.mkdir(parents=True)
    row = {"fkey": "another", "picture": "p.png", "uncertainty": 0.5, "margin": 0.5}
    pq.write_table(pa.Table.from_pylist([row]), report / "frame_scores.parquet")
    with workspace.records.session() as session:
        for number in range(50):
            session.add(
                Job(
                    name=f"later-{number}", kind="predict", backend="local", state="done",
                    error="", metrics={}, request={"stages": [], "settings": {"model": "second"}},
                    paths={"folder": str(folder)},
                )
            )  # fmt: skip
    assert [each.job for each in predictions_of(workspace, frame.fkey)] == ["p-1"]
    assert predictions_of(workspace, frame.fkey, "second") == []
    assert [each.model for each in predictions_of(workspace, "another")] == ["second"]
    workspace.close()


def test_other_conditions_move_a_histogram_and_its_own_do_not(browser: TestClient) -> None:
    """What the plot's text says: frames that fulfil the other conditions."""

    def told(query: str) -> str:
        found = re.search(r'aria-label="(Car: [^"]*)"', browser.get(f"/?{query}").text)
        assert found
        return found[1]

    assert " 24 of 24 frames" in told("")
    assert told("min.car=100000") == told("")
    assert " 24 of 24 frames" not in told("camera=front_center")


def test_the_gallery_has_each_frame_once(browser: TestClient) -> None:
    """Page by page; the pictures are there."""
    text = browser.get("/gallery", headers=PART).text
    links = re.findall(r'<a href="(/frames/[^"]+)"', text)
    assert len(set(links)) == len(links) == 24
    picture = re.findall(r'<img src="([^"]+)"', text)[0]
    assert browser.get(unescape(picture)).headers["content-type"] == "image/jpeg"
    assert browser.get(unescape(links[0])).status_code == 200


def test_an_unknown_order_or_caption_is_named(browser: TestClient) -> None:
    """Above the frames, which are all there, with the captions that are known; by name, then."""
    plain = browser.get("/gallery?caption=truck", headers=PART).text
    frames = re.findall(r'href="(/frames/[^"?]+)', plain)
    answer = browser.get("/gallery?sort=carr+desc&caption=truck,bicicle,carr", headers=PART)
    assert answer.status_code == 200
    problems = re.findall(r'<p class="problem" role="alert">(.*?)</p>', unescape(answer.text))
    assert [each.partition(":")[0] for each in problems] == [
        "unknown column 'carr'", "unknown column 'bicicle'",
    ]  # fmt: skip
    assert "did you mean bicycle?" in problems[1]
    assert re.findall(r'href="(/frames/[^"?]+)', answer.text) == frames
    assert len(re.findall(r'title="truck [\d,]+"', answer.text)) == len(frames) == 24
    assert "carr" not in "".join(re.findall(r'href="[^"]+"', answer.text))
    assert 'class="problem"' not in plain
    refused = browser.get("/gallery?where=carr+%3E+3&caption=truck", headers=PART)
    assert (refused.status_code, "carr" in refused.text.lower()) == (400, True)


def test_the_gallery_is_sorted_and_walked_through(browser: TestClient) -> None:
    """By a tag, as the URL says: with the tag's value below, and each frame's place among them."""
    query = "sort=car+desc&caption=bicycle&over=label&min.truck=1&size=small"
    text = browser.get(f"/gallery?{query}", headers=PART).text
    cars = [int(each.replace(",", "")) for each in
            re.findall(r'title="car ([\d,]+) · bicycle [\d,]+"', text)]  # fmt: skip
    assert cars == sorted(cars, reverse=True)
    assert len(cars) > 3
    overs = re.findall(r'<img class="over" src="(/pictures/overlays/[^"]+)"', text)
    assert len(overs) == len(cars)
    assert browser.get(unescape(overs[0])).headers["content-type"] == "image/jpeg"
    links = [unescape(each) for each in re.findall(r'href="(/frames/[^"]+)"', text)]
    assert all(link.endswith("size=small") for link in links)
    walked = [links[0]]
    while True:
        page = browser.get(walked[-1]).text
        count = f"<strong>{len(walked)}</strong> of {len(links)}</span>"
        assert count in page
        if not (following := re.findall(r'id="found-next".*?href="([^"]+)"', page)):
            break
        walked.append(unescape(following[0]))
    assert walked == links
    assert 'id="place"' not in browser.get(f"{links[0]}&max.truck=0&min.truck=0").text


def test_a_frame_has_its_classes_neighbours_and_tags(browser: TestClient) -> None:
    """Most pixels first, and the frames before and after it in its drive."""
    text = browser.get("/gallery?scene=20260616_094856&camera=front_center", headers=PART).text
    first, second = re.findall(r'<a href="(/frames/[^?"]+)', text)
    page = browser.get(second).text
    assert re.findall(r'id="previous"[^>]*href="([^"]+)"', page) == [first]
    assert 'id="next"' not in page
    pixels = [int(each.replace(",", "")) for each in
              re.findall(r'</button> <span class="number">([\d,]+)<', page)]  # fmt: skip
    assert pixels == sorted(pixels, reverse=True)
    assert 'fill="#ff00ff"' in page  # RD normal street
    assert browser.get("/frames/none").status_code == 404


@pytest.mark.wide
def test_marks_are_tags(browser: TestClient) -> None:
    """Of several frames at once, asked for by the same page; taken away by no value."""
    text = browser.get("/gallery", headers=PART).text
    fkeys = [unescape(each) for each in re.findall(r'name="fkey" value="([^"]+)"', text)][:3]
    form = {"fkey": fkeys, "tag": "quality", "value": "bad", "next": "/?camera=x"}
    assert browser.post("/marks", data=form).status_code == 403  # from no page
    answer = browser.post("/marks", data=form, headers=HERE)
    assert (answer.status_code, "Set quality=bad on 3 frames." in answer.text) == (200, True)
    assert '<a class="button" href="/?camera=x">Go on</a>' in answer.text
    assert matching(browser.get("/?is.quality=bad").text) == 3
    assert browser.get("/gallery?is.quality=bad", headers=PART).text.count("badge") == 3
    part = browser.post(
        "/marks", data={**form, "fkey": fkeys[:1], "value": ""}, headers=HERE | PART
    )
    assert "Removed quality from 1 frame" in part.text
    assert matching(browser.get("/?is.quality=bad").text) == 2
    wrong = browser.post("/marks", data={**form, "fkey": [*fkeys, "none"]}, headers=HERE | PART)
    assert (wrong.status_code, "nothing was marked" in wrong.text) == (404, True)
    assert matching(browser.get("/?is.quality=bad").text) == 2
    scanned = browser.post("/marks", data={**form, "tag": "car", "value": "1"}, headers=HERE)
    assert scanned.status_code == 400
    # Everything found at once, and undone: each frame has its own value again.
    everything = {"everything": "1", "asked": "camera=front_center", "tag": "quality"}
    asked = browser.get("/?camera=front_center&sort=car").text
    assert '<input type="hidden" name="asked" form="marks" value="camera=front_center">' in asked
    part = browser.post("/marks", data=everything | {"value": "good"}, headers=HERE | PART)
    assert "Set quality=good on 18 frames" in part.text
    assert matching(browser.get("/?is.quality=good").text) == 18
    undone = browser.post("/marks/undo", data=hidden(part.text), headers=HERE | PART)
    assert "quality of 18 frames is as before" in undone.text
    assert matching(browser.get("/?is.quality=bad").text) == 2
    assert matching(browser.get("/?is.quality=good&camera=front_center").text) == 0
    # What somebody else gave some of the frames since stays.
    part = browser.post("/marks", data={**form, "value": "odd"}, headers=HERE | PART)
    other = browser.post("/marks", data={**form, "fkey": fkeys[:2], "value": "fine"}, headers=HERE)
    assert other.status_code == 200
    undone = browser.post("/marks/undo", data=hidden(part.text), headers=HERE | PART)
    assert "quality of 1 frame is as before" in undone.text
    assert "2 frames were changed since, and stay as they are" in undone.text
    assert matching(browser.get("/?is.quality=fine").text) == 2
    assert matching(browser.get("/?is.quality=odd").text) == 0
    again = browser.post("/marks/undo", data=hidden(part.text), headers=HERE | PART).text
    assert "quality of" not in again
    assert "3 frames were changed since" in again
    browser.post("/marks", data=form | {"fkey": fkeys[1:]}, headers=HERE)
    browser.post("/marks", data=form | {"fkey": fkeys[:1], "value": ""}, headers=HERE)
    # Several tags at once; a row without a tag says nothing.
    several = {"tag": ["quality", "Weather_seen", ""], "value": ["good", "fog", ""]}
    part = browser.post("/marks", data={"fkey": fkeys[:1], **several}, headers=HERE | PART)
    assert "Set quality=good, weather_seen=fog on 1 frame" in part.text
    assert matching(browser.get("/?is.weather_seen=fog").text) == 1
    part = browser.post("/marks/undo", data=hidden(part.text), headers=HERE | PART)
    assert "quality, weather_seen of 1 frame are as before" in part.text
    assert matching(browser.get("/?is.quality=bad").text) == 2
    # A note beside the mark, which has not changed.
    was = {"tag_was": "quality", "value_was": "bad", "note_was": ""}
    noted = form | was | {"fkey": fkeys[:1], "note": "look, again"}
    part = browser.post("/marks", data=noted, headers=HERE | PART)
    assert "Set note=look, again on 1 frame" in part.text
    assert 'name="note" value="look, again"' in browser.get(f"/frames/{fkeys[0]}").text
    part = browser.post("/marks/undo", data=hidden(part.text), headers=HERE | PART)
    assert "note of 1 frame is as before" in part.text
    assert 'name="note" value=""' in browser.get(f"/frames/{fkeys[0]}").text
    # Without scripts the answer is a page, whose form undoes it.
    plain = browser.post("/marks", data={**form, "value": "plain"}, headers=HERE)
    assert matching(browser.get("/?is.quality=plain").text) == 3
    assert '<form method="post" action="/marks/undo"' in plain.text
    undone = browser.post("/marks/undo", data=hidden(plain.text), headers=HERE)
    assert "quality of 3 frames is as before" in undone.text
    assert '<a class="button" href="/?camera=x">Go on</a>' in undone.text
    assert matching(browser.get("/?is.quality=plain").text) == 0
    for elsewhere in ("//elsewhere/x", "https://elsewhere/", ""):
        marks = {**form, "value": "bad", "fkey": fkeys[1:], "next": elsewhere}
        assert '<a class="button" href="/">Go on</a>' in browser.post(
            "/marks", data=marks, headers=HERE
        ).text  # fmt: skip
    wrong = browser.post("/marks/undo", data={"marked_at": "x"}, headers=HERE | PART)
    assert (wrong.status_code, "number of a snapshot" in wrong.text) == (400, True)
    # Two are bad: all others are left, also those that nobody has looked at.
    others = browser.get("/?not.quality=bad").text
    assert matching(others) == matching(browser.get("/").text) - 2
    assert re.search(r'name="not.quality" value="bad" checked', others)
    assert "quality is not known to be bad" in others
    assert matching(browser.get("/?not.quality=bad&not.quality=good&is.quality=bad").text) == 0
    different = '{"condition": {"kind": "tag", "tag": "quality", "op": "!=", "value": "x"}}'
    form = {"asked": urlencode({"question": different}), "name": "known"}
    assert browser.post("/new-dataset", data=form, headers=HERE).status_code == 303
    assert "frames have no quality, so they are left out" in browser.get("/datasets/known").text


def hidden(text: str) -> dict[str, list[str]]:
    """What the hidden fields of a part of a page would send."""
    fields: dict[str, list[str]] = {}
    for name, value in re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', text):
        fields.setdefault(name, []).append(unescape(value))
    return fields


@pytest.mark.parametrize("codings", ["gzip, deflate", "gzip, deflate, br, zstd"])
def test_the_first_page_is_small(browser: TestClient, codings: str) -> None:
    """Apart from images, 60 KB at most with all that it loads, as browsers take it.

    Without TLS they ask for the older codings only.
    """
    files = re.findall(r'(?:href|src)="(/static/[^"]+)"', browser.get("/").text)
    taken = {"Accept-Encoding": codings}
    page = browser.get("/", headers=taken)
    assert len(files) >= 4
    parts = [page, browser.get("/gallery", headers=PART | taken)]
    parts += [browser.get(file, headers=taken) for file in files]
    assert {part.status_code for part in parts} == {200}
    sent = sum(part.num_bytes_downloaded for part in parts)
    assert 10_000 < sent < 60_000


@pytest.mark.wide
def test_users_of_collections_are_told_why_an_answer_takes_longer(
    catalogued: Path, tmp_path: Path
) -> None:
    """Ranges and SQL of theirs are counted in memory, too; old snapshots are not."""
    home = copy_home(catalogued, tmp_path)
    records = RecordStore(home / "records" / "records.sqlite")
    users.add(records, "otto", ["datauser"], None)
    row_collections.add(records, "one", "filename like '%/20260616_094856/%'")
    row_collections.assign(records, "one", "otto")
    _, token = tokens.create(records, "otto", "t", "read", timedelta(days=1))
    app = create_app(Settings(home=home, cache=None, snapshot_memory_mb=500))
    html = {"Accept": "text/html", "Cookie": f"framesift={token}"}
    with TestClient(app, headers=html) as client:
        while client.get("/readyz").status_code == 503:
            time.sleep(0.05)
        seen = client.get("/?min.car=1").text
        assert "of 3 frames" in seen
        assert "Counted from files" not in seen
        values = client.get("/values?tag=scene&number=1&holding.scene=_", headers=PART).text
        assert set(re.findall(r"2026\d{4}_\d{6}|2018\d{4}_\d{6}", values)) == {"20260616_094856"}
        steps = client.get("/steps?field=min.car&values=1,1000,100000", headers=PART).json()
        assert sum(steps["matching"]) == 3
        assert max(sum(row) for row in steps["numbers"].values()) <= 3
        assert {plot["most"] <= 3 for plot in steps["plots"].values()} == {True}
        for position, pixels in enumerate((1, 1000, 100_000), 1):
            alone = client.get(f"/drag?min.car={pixels}", headers=PART).json()["matching"]
            assert str(sum(steps["matching"][position:])) == alone
        # Walks, galleries and captions tell of no other frame; nor does a picture.
        shown = "sort=car+desc&caption=truck&over=label"
        links = re.findall(
            r'href="(/frames/[^"]+)"', client.get(f"/gallery?{shown}", headers=PART).text
        )
        assert len(links) == 3
        assert {"20260616_094856" in link for link in links} == {True}
        last = client.get(unescape(links[-1])).text
        assert "<strong>3</strong> of 3</span>" in last
        assert 'id="found-next"' not in last
        workspace = open_home(home)
        every = select_frames(workspace.catalog, Question()).frames["fkey"].to_pylist()
        workspace.close()
        other = next(fkey for fkey in every if "20260616_094856" not in fkey)
        for path in ("/frames/", "/pictures/overlays/", "/pictures/images/"):
            answer = client.get(path + other, params={"format": "jpeg"} if "pic" in path else {})
            assert answer.status_code == 404
        asked = client.get("/?where=car >= 1").text
        assert "Counted from files" not in asked
        assert matching(asked) == matching(seen)
        at = int(re.findall(r"as of snapshot (\d+)", seen)[0]) - 1
        assert f"snapshot {at} is read from files" in client.get(f"/?at={at}").text


@pytest.mark.wide
def test_the_map_shows_where_frames_were_taken(browser: TestClient) -> None:
    """Where some have a position: a cell leads to its frames."""
    assert 'id="where"' not in browser.get("/").text
    text = browser.get("/gallery", headers=PART).text
    fkeys = [unescape(each) for each in re.findall(r'name="fkey" value="([^"]+)"', text)]
    for place, fkey in enumerate(fkeys[:3]):
        values = {"latitude_deg": str(48.1 + place / 100), "longitude_deg": f"11.5{place}"}
        marked = browser.post(
            "/v1/tags/marks", json={"fkeys": [fkey], "values": values}, headers=JSON
        )
        assert marked.status_code == 200, marked.text
    page = browser.get("/").text
    assert 'id="where"' in page
    assert "<h2>Tags of own <small>" in page
    drawn = browser.get("/map", headers=PART).text
    cells = re.findall(r'<a href="([^"]+)" aria-label="1 frame at', drawn)
    assert len(cells) == 3
    assert matching(browser.get(unescape(cells[0])).text) == 1
    assert "Map of 3 frames between 48.1" in drawn
    assert "No frame of these" in browser.get("/map?max.latitude_deg=1", headers=PART).text


@pytest.mark.wide
def test_a_models_predictions_and_errors_are_seen(catalogued: Path, tmp_path: Path) -> None:
    """Over the image, and where they differ from the label; merged classes are one."""
    home, frame, predicted = home_with_prediction(catalogued, tmp_path)
    app = create_app(Settings(home=home, cache=None), authenticates=False)
    with TestClient(app, headers={"Accept": "text/html"}) as client:
        text = client.get(f"/frames/{frame.fkey}").text
        assert "Prediction of first" in text
        assert "Errors of first" in text
        assert "p-1, uncertainty 0.25" in text
        url = f"/pictures/predictions/{frame.fkey}?format=png&alpha=1&job="
        seen = pixels(client.get(url + "p-1").content)
        assert (seen == predicted).all()
        different = pixels(client.get(url + "p-1&errors=true").content)
        marked = (different == (255, 0, 200)).all(axis=2)
        assert marked[:40, :40].all()
        assert not marked[40:].any()
        assert not marked[:, 40:].any()
        of_cars = pixels(client.get(url + "p-1&errors=true&classes=car").content)
        assert not (of_cars == (255, 0, 200)).all(axis=2).any()
        # In the corner the model takes sky for a car, and it merges sky with all but cars.
        for taken_for, is_marked in (("car", True), ("truck", False), ("sky", False)):
            drawn = client.get(url + f"p-1&errors=true&classes=sky&taken_for={taken_for}").content
            assert (pixels(drawn)[:40, :40] == (255, 0, 200)).all(axis=2).mean() == is_marked
        assert client.get(url + "p-1&taken_for=car", headers=JSON).status_code == 400
        gallery = client.get("/gallery?over=errors:first", headers=PART).text
        assert gallery.count('class="over errors"') == 24
        assert '<option value="errors:first">errors of first</option>' in client.get("/").text
        assert client.get(url + "p-2").status_code == 404
        # Models are kept until a prediction job is done or removed.
        workspace = open_home(home)
        with workspace.records.session() as session:
            first = session.query(Job).filter_by(name="p-1").one()
            values = {
                n: getattr(first, n) for n in ("kind", "backend", "error", "metrics", "paths")
            }
            third = {"name": "p-3", "request": {"settings": {"model": "third"}}}
            session.add(Job(**values | third, state="running"))
        assert "errors:third" not in client.get("/").text
        with workspace.records.session() as session:
            session.query(Job).filter_by(name="p-3").update({"state": "done"})
        assert "errors:third" in client.get("/").text
        with workspace.records.session() as session:
            session.query(Job).filter_by(name="p-3").delete()
        assert "errors:third" not in client.get("/").text
        assert "errors:first" in client.get("/").text
        workspace.close()
        rest = f"/v1/predictions/{frame.fkey}?format=png&alpha=1"
        for which in ("", "&model=first", "&job=p-1"):
            assert (pixels(client.get(rest + which).content) == predicted).all()
        assert client.get(f"{rest}&model=first&errors=true").content == client.get(
            url + "p-1&errors=true").content  # fmt: skip
        other_model = client.get(f"{rest}&model=second", headers=JSON)
        assert (other_model.status_code, "first" in other_model.text) == (404, True)
        assert client.get(f"{rest}&model=first&job=p-1", headers=JSON).status_code == 400
        # Without a map: a model's classes have the order of its dataset, and not of the source.
        keys = sorted(CLASSES.keys, key=lambda key: (key.name != "Car", key.name != "Sky"))
        turned = replace(CLASSES, keys=tuple(keys))
        about = {"class_map": None, "class_list": turned.to_json()}
        (home / "jobs" / "first" / "model" / "model.json").write_text(json.dumps(about))
        label = decode_label((SAMPLE / str(frame.label)).read_bytes(), CLASSES)
        ids = np.array([turned.tags.index(tag) for tag in CLASSES.tags])
        model_ids = (predicted != CAR).any(axis=2)
        known = label < len(CLASSES)
        differing = np.zeros(label.shape, bool)
        differing[known] = ids[label[known]] != model_ids[known]
        different = pixels(client.get(url + "p-1&errors=true").content)
        assert ((different == (255, 0, 200)).all(axis=2) == differing).all()
        assert 0 < differing[label == CLASSES.tags.index("sky")].mean() < 1  # but for the corner
        other = client.get("/v1/frames?limit=2", headers=JSON).json()["frames"][1]["fkey"]
        assert "Prediction of" not in client.get(f"/frames/{other}").text
        gone = client.get(f"/pictures/predictions/{other}?job=p-1&format=png")
        assert gone.status_code == 404
    with serving(home) as (server, _):
        asked = connect(server).frame(frame.fkey).prediction(model="first", alpha=1, format="png")
        assert (pixels(bytes(asked)) == predicted).all()
        for index, target in enumerate(([], ["--server", server])):
            out = tmp_path / f"{index}.png"
            run = framesift(
                home, *target, "show", frame.fkey, "--model", "first", "--errors", "--out", out
            )
            assert (run.returncode, run.stdout.strip()) == (0, f"wrote {out}"), run.stderr
            assert (pixels(out.read_bytes()) == different).all()
            only = []
            for taken_for in ("car", "truck"):
                part = tmp_path / f"{index}-{taken_for}.png"
                run = framesift(
                    home, *target, "show", frame.fkey, "--model", "first", "--errors",
                    "--class", "sky", "--taken-for", taken_for, "--out", part,
                )  # fmt: skip
                assert run.returncode == 0, run.stderr
                only.append(pixels(part.read_bytes()))
            # The corner of the sky was taken for a car, which is where the two differ.
            assert (only[0] != only[1]).any()
            of_client = connect(server).prediction(
                frame.fkey, model="first", errors=True, classes=["sky"], taken_for=["car"]
            )
            assert (only[0] == pixels(bytes(of_client))).all()
            assert ((only[1] == (255, 0, 200)).all(axis=2)).sum() == 0
    lone = framesift(home, "show", frame.fkey, "--model", "first", "--taken-for", "car")
    assert (lone.returncode, "give --errors, too" in lone.stderr) == (1, True), lone.stderr
    wrong = framesift(home, "show", frame.fkey, "--model", "first", "--out", "prediction.txt")
    assert (wrong.returncode, "expected a file of .png" in wrong.stderr) == (1, True), wrong.stderr


def pixels(png: bytes) -> npt.NDArray[np.uint8]:
    """(height, width, 3) of an image."""
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))
