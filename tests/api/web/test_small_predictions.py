"""Cells of validations show the error at once, from the small copies that these keep."""

import io
import json
import re
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from catalog.accounts import row_collections, tokens, users
from catalog.records.tables import Job
from pipeline.prepared.decoded_frames import nearest
from pipeline.runs.size import Size
from pipeline.runs.small_predictions import INDEX_FILE, LONGEST_SIDE_PX, small_predictions
from tests.api.servers import framesift
from tests.api.web.test_given_cells import labels, layers, marked, name_in, served
from tests.pipeline.homes import open_home
from tests.training.drawn_frames import CLASSES, HEIGHT_PX, WIDTH_PX
from tests.training.drawn_home import ask, drawn_home
from tests.training.onnx_files import colour_network, colour_weights

pytestmark = pytest.mark.wide

FRAMES = 3
TIMES = 10
"""960 x 640 pixels, of which a copy has every second one."""
SMALL = Size(LONGEST_SIDE_PX * HEIGHT_PX // WIDTH_PX, LONGEST_SIDE_PX)
MERGED = {
    "name": "two",
    "classes": {"Cars": ["Car"], "Rest": ["RD normal street", "Bicycle"]},
    "ignored": ["Sky"],
}
TURNED = np.array([(-1, 1, 0), (-0.3, -0.3, 0)], np.float32) / 64
"""Takes red for the rest, and all else for cars."""
CAR, SKY = CLASSES.classes.index("Car"), CLASSES.classes.index("Sky")
COARSE = "drawn coarsely from small copies"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with validations of a network in a file, over two workers and by one."""
    base = tmp_path_factory.mktemp("small")
    home = drawn_home(base, FRAMES, times=TIMES)
    # Its output is finer than a copy: what is kept is of the label's size.
    size = (HEIGHT_PX * TIMES, WIDTH_PX * TIMES)
    colour_network(base / "net.onnx", len(CLASSES), size=size)
    for job, workers in (("two", "2"), ("one", "1")):
        ask(
            home, "validate", str(base / "net.onnx"), "few", "--name", job, "--workers", workers,
        )  # fmt: skip
    (base / "map.json").write_text(json.dumps(MERGED))
    colour_network(base / "merged.onnx", 2, size=size, weights=TURNED)
    ask(
        home, "validate", str(base / "merged.onnx"), "few", "--classes", str(base / "map.json"),
        "--name", "merged",
    )  # fmt: skip
    return base


def predicted(base: Path, name: str) -> Any:
    """The classes that the network gives a frame, by NumPy."""
    image = np.asarray(Image.open(base / "source" / name)).astype(np.float32)
    return (image @ colour_weights(len(CLASSES)).T).argmax(-1).astype(np.uint8)


def cell_of(base: Path) -> tuple[int, int]:
    """The two classes that are confused most."""
    matrix = np.zeros((len(CLASSES),) * 2, int)
    for name, truth in labels(base).items():
        np.add.at(matrix, (truth, predicted(base, name)), 1)
    np.fill_diagonal(matrix, 0)
    truth, taken_for = divmod(int(matrix.argmax()), len(CLASSES))
    return truth, taken_for


def path_of(base: Path, job: str) -> str:
    """The page of that cell."""
    truth, taken_for = (CLASSES.tags[one] for one in cell_of(base))
    return f"/jobs/{job}/frames?truth={truth}&predicted={taken_for}"


def wrong_at(base: Path, name: str, size: Size) -> Any:
    """(h, w) bool, the errors of the cell in every pixel that a copy of this size has."""
    truth, taken_for = cell_of(base)
    is_wrong = (labels(base)[name] == truth) & (predicted(base, name) == taken_for)
    return nearest(is_wrong.astype(np.uint8), size).astype(bool)


def enlarged(mask: Any) -> Any:
    """A copy's pixels at the frame's size."""
    times = HEIGHT_PX * TIMES // mask.shape[0]
    return np.kron(mask, np.ones((times, times), bool))


@pytest.mark.parametrize("job", ["two", "one"])
def test_a_cell_shows_its_error_after_the_validation_alone(base: Path, job: str) -> None:
    """Pixel by pixel, where a copy has a pixel; on the frame's page and the job's, too."""
    with served(base) as client:
        page = client.get(path_of(base, job)).text
        assert COARSE in page
        urls = layers(page)
        assert len(urls) == FRAMES
        for url in urls:
            assert f"job={job}&" in url
            wrong = wrong_at(base, name_in(base, url), SMALL)
            assert 0 < wrong.sum() < wrong.size
            assert (marked(client, url) == enlarged(wrong)).all()
        (walk, *_) = re.findall(r'<a href="(/frames/[^"]+)" class="picture"', page)
        frame = client.get(unescape(walk)).text
        assert f'data-over="errors:job:{job}" checked' in frame
        assert f"coarse: a small copy that {job} keeps" in frame
        shown = re.search(r'id="overlay" data-source="[^"]+" src="([^"]+)"', frame)
        assert shown
        url = unescape(shown[1]).replace("width=1280&format=jpeg", "format=png")
        wrong = wrong_at(base, name_in(base, url), SMALL)
        assert (marked(client, url) == enlarged(wrong)).all()
        whole = client.get(f"/jobs/{job}").text
        assert "Over the pictures, in pink: the errors" in whole
        assert {re.search("job=([^&]+)", url)[1] for url in layers(whole)} == {job}  # type: ignore[index]


@pytest.mark.parametrize(("truth", "taken_for"), [("cars", "rest"), ("rest", "cars")])
def test_merged_and_ignored_classes_are_those_of_the_validation(
    base: Path, truth: str, taken_for: str
) -> None:
    """In a cell of a map's classes, and over whole frames, where what is ignored is no error."""
    path = f"/jobs/merged/frames?truth={truth}&predicted={taken_for}"
    with served(base) as client:
        urls = layers(client.get(path).text)
        assert len(urls) == FRAMES
        for url in urls:
            label = nearest(labels(base)[name_in(base, url)], SMALL)
            is_truth = label == CAR if truth == "cars" else (label != CAR) & (label != SKY)
            assert is_truth.any()
            assert (marked(client, url) == enlarged(is_truth)).all()  # all of it is wrong
        for url in layers(client.get("/jobs/merged").text):
            label = nearest(labels(base)[name_in(base, url)], SMALL)
            assert (marked(client, url) == enlarged(label != SKY)).all()


def test_a_copy_is_drawn_in_the_colours_of_classes(base: Path) -> None:
    """The prediction itself, of each pixel that the copy has."""
    with served(base) as client:
        (url, *_) = layers(client.get(path_of(base, "two")).text)
        picture = re.sub(r"&(errors|classes|taken_for)=[^&]+", "", url)
        drawn = client.get(re.sub(r"width=\d+&format=jpeg&quality=\d+", "format=png", picture))
        colours = np.asarray(Image.open(io.BytesIO(drawn.content)))
        ids = nearest(predicted(base, name_in(base, url)), SMALL)
        assert (colours[1::2, 1::2] == CLASSES.class_colours[ids]).all()


def test_copies_do_not_depend_on_the_number_of_workers(base: Path) -> None:
    """The same bytes of every frame."""
    jobs = base / "home" / "jobs"
    fkeys = pq.read_table(jobs / "two" / "report" / INDEX_FILE)["fkey"].to_pylist()
    assert len(fkeys) == FRAMES
    copies = []
    for job in ("two", "one"):
        places = small_predictions(jobs / job / "report", fkeys)
        copies.append({fkey: bytes_of(jobs / job, places[fkey]) for fkey in fkeys})
    assert copies[0] == copies[1]
    for copy in copies[0].values():
        assert Image.open(io.BytesIO(copy)).size == (SMALL.width_px, SMALL.height_px)


def bytes_of(job: Path, place: Any) -> bytes:
    """A copy, where the index says that it lies."""
    content: bytes = (job / "results" / place.file).read_bytes()
    return content[place.offset : place.offset + place.size]


def test_a_full_prediction_is_preferred_frame_by_frame(base: Path) -> None:
    """Every pixel of the error where a job predicted the frame, and the copy where none did."""
    home = base / "home"
    with served(base) as client:
        before = layers(client.get(path_of(base, "two")).text)
        where = f"filename like '%{name_in(base, before[0]).rpartition('/')[2]}'"
        ask(
            home, "predict", str(base / "net.onnx"), "--where", where, "--name", "seen",
            "--save-as", "one-frame",
        )  # fmt: skip
        page = client.get(path_of(base, "two")).text
        urls = layers(page)
        assert [url for url in urls if "model=net" in url] == [urls[0]]
        assert urls[1:] == before[1:]
        assert COARSE in page
        whole = wrong_at(base, name_in(base, urls[0]), Size(HEIGHT_PX * TIMES, WIDTH_PX * TIMES))
        assert (marked(client, urls[0]) == whole).all()
        assert (enlarged(wrong_at(base, name_in(base, urls[0]), SMALL)) != whole).any()
        walks = re.findall(r'<a href="(/frames/[^"]+)" class="picture"', page)
        frames = [client.get(unescape(walk)).text for walk in walks]
        assert 'data-over="errors:net" checked' in frames[0]
        assert "errors:job:" not in frames[0]
        assert 'data-over="errors:job:two" checked' in frames[1]
        by_model = unescape(walks[1]).replace("errors%3Ajob%3Atwo", "errors%3Anet")
        assert 'data-over="errors:job:two" checked' in client.get(by_model).text


def test_validations_without_copies_show_labels(base: Path, tmp_path: Path) -> None:
    """Those of earlier releases, and those whose results are gone; nothing fails."""
    job = base / "home" / "jobs" / "one"
    with served(base) as client:
        page = client.get(path_of(base, "one")).text
        url = layers(page)[-1]
        (job / "results").rename(tmp_path / "results")
        assert client.get(url).status_code == 404
        (tmp_path / "results").rename(job / "results")
        assert client.get(url).status_code == 200
        index = (job / "report" / INDEX_FILE).read_bytes()
        (job / "report" / INDEX_FILE).unlink()
        try:
            page = client.get(path_of(base, "one")).text
            assert client.get(url).status_code == 404
            assert client.get("/jobs/one").status_code == 200
        finally:
            (job / "report" / INDEX_FILE).write_bytes(index)
        assert layers(page)[-1].startswith("/pictures/overlays/")
        assert COARSE not in page


def test_a_user_sees_copies_of_the_frames_that_they_may_see(base: Path) -> None:
    """And none of a job of others."""
    workspace = open_home(base / "home")
    records = workspace.records
    row_collections.add(records, "all", "size >= 0")
    users.add(records, "cora", ["datauser"], None)
    row_collections.assign(records, "all", "cora")
    token = tokens.create(records, "cora", "t", "read", timedelta(days=1))[1]
    account = users.recorded(records, "cora").account
    with records.session() as session:
        session.query(Job).filter_by(name="two").update({"owner": "cora", "account": account})
    path = path_of(base, "two")
    with served(base, token) as client:
        urls = [url for url in layers(client.get(path).text) if "job=two" in url]
        assert urls
        for url in urls:
            assert client.get(url).status_code == 200
            assert client.get(url.replace("job=two", "job=one")).status_code == 404
    row_collections.add(records, "none", "size < 0")
    row_collections.assign(records, "none", "cora")
    row_collections.withdraw(records, "all", "cora")
    with served(base, token) as client:
        assert {client.get(url).status_code for url in urls} == {404}
    workspace.close()


def test_everything_of_a_cell_is_marked_and_restored(base: Path) -> None:
    """By the question that the form holds, not by ticks."""
    here = {"Sec-Fetch-Site": "same-origin", "HX-Request": "true"}
    with served(base) as client:
        page = client.get(path_of(base, "two")).text
        (asked,) = re.findall(r'name="asked" form="marks" value="([^"]+)"', page)
        form = {"tag": "quality", "value": "bad", "everything": "1", "asked": unescape(asked)}
        told = client.post("/marks", data=form, headers=here).text
        assert f"on {FRAMES} frames" in told
        assert ask(base / "home", "select", "--where", "quality = 'bad'")["count"] == FRAMES
        undo: dict[str, list[str]] = {}
        for name, value in re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', told):
            undo.setdefault(name, []).append(unescape(value))
        assert f"quality of {FRAMES} frames is as before" in client.post(
            "/marks/undo", data=undo, headers=here
        ).text  # fmt: skip


def test_a_removed_job_shows_nothing(base: Path) -> None:
    """Its cell and copies are gone."""
    with served(base) as client:
        url = layers(client.get(path_of(base, "one")).text)[-1]
        removed = framesift(base / "home", "jobs", "remove", "one")
        assert removed.returncode == 0, removed.stderr
        assert client.get(path_of(base, "one")).status_code == 404
        assert client.get(url).status_code == 404
