"""Cells of validations of another program's predictions: the errors lie over their pictures."""

import io
import json
import re
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient
from PIL import Image

from api.app import create_app
from api.settings import Settings
from catalog.accounts import row_collections, tokens, users
from catalog.records.tables import Job
from ingest.labels.class_list import UNKNOWN_CLASS
from ingest.labels.label_image import decode_label
from pipeline.runs.prediction_set import MATCHED_FILE
from tests.pipeline.homes import open_home
from tests.training.drawn_frames import CLASSES
from tests.training.drawn_home import ask, drawn_home

pytestmark = pytest.mark.wide

FRAMES = 3
CAR, STREET = CLASSES.classes.index("Car"), CLASSES.classes.index("RD normal street")
CELL = "frames?truth=car&predicted=rd_normal_street"
PINK = (255, 0, 200)
LACKS = "The error itself is not here"
GONE = "its prediction is not there any more: the label"

MERGED = {
    "name": "two",
    "classes": {
        "Cars": ["Car"],
        "Rest": [name for name in CLASSES.classes if name not in ("Car",)],
    },
    "ignored": [],
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with validations of predictions that take every other row of a car for street.

    They lie in a folder as class ids (`ids`), and in a tar as two classes of a map, by fkey
    (`two`).
    """
    base = tmp_path_factory.mktemp("given")
    home = drawn_home(base, FRAMES)
    fkeys = [frame["fkey"] for frame in ask(home, "select")["frames"]]
    with tarfile.open(base / "out.tar", "w") as archive:
        for name, truth in labels(base).items():
            (base / "ids" / name).parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(predicted(truth)).save(base / "ids" / name)
            content = io.BytesIO()
            Image.fromarray((predicted(truth) != CAR).astype(np.uint8)).save(content, "PNG")
            member = tarfile.TarInfo(next(fkey for fkey in fkeys if fkey.endswith(name)))
            member.size = len(content.getvalue())
            archive.addfile(member, io.BytesIO(content.getvalue()))
    (base / "map.json").write_text(json.dumps(MERGED))
    for job, place, more in (
        ("ids", "ids", ()),
        ("two", "out.tar", ("--named-by", "fkey", "--classes", str(base / "map.json"))),
    ):
        ask(
            home, "validate", "few", "--predictions", str(base / place), "--model-name", "night",
            "--name", job, *more,
        )  # fmt: skip
    return base


def labels(base: Path) -> dict[str, Any]:
    """Each frame's label as class ids, by its image's name below the source."""
    root = base / "source"
    return {
        path.relative_to(root).as_posix().replace("label", "camera"): decode_label(
            path.read_bytes(), CLASSES
        )
        for path in sorted(root.rglob("*_label_*.png"))
    }


def predicted(truth: Any) -> Any:
    """Of each car every other row is street, and three columns at the left are car."""
    ids = truth.copy()
    every_other = np.arange(len(truth))[:, None] % 2 == 0
    ids[(truth == CAR) & every_other] = STREET
    ids[:, :3] = CAR
    return ids


@contextmanager
def served(base: Path, token: str = "") -> Iterator[TestClient]:
    """A browser at the home's server; of a user with a token."""
    home = base / "home"
    app = create_app(Settings(home=home, cache=base / "cache"), authenticates=bool(token))
    with TestClient(app, headers={"Accept": "text/html"}, follow_redirects=False) as client:
        if token:
            client.cookies.set("framesift", token)
        yield client


def layers(page: str) -> list[str]:
    """The pictures that lie over those of a page."""
    return [unescape(one) for one in re.findall(r'<img class="over[^"]*" src="([^"]+)"', page)]


def name_in(base: Path, url: str) -> str:
    """The image's name below the source of a picture's frame."""
    return next(name for name in labels(base) if quote(name) in url)


def marked(client: TestClient, url: str) -> Any:
    """(H, W) bool, which pixels are marked in a picture at its full size."""
    whole = re.sub(r"width=\d+&format=jpeg&quality=\d+", "format=png", url)
    answer = client.get(whole)
    assert answer.status_code == 200, answer.text
    return (np.asarray(Image.open(io.BytesIO(answer.content))) == PINK).all(axis=2)


def test_errors_of_given_predictions_lie_over_a_cell(base: Path) -> None:
    """Pixel by pixel where the label is the one class and the file the other.

    On its frame's page, too; and nothing is offered to be predicted.
    """
    with served(base) as client:
        page = client.get(f"/jobs/ids/{CELL}").text
        assert LACKS not in page
        assert GONE not in page
        assert "Predict th" not in page
        urls = layers(page)
        assert len(urls) == FRAMES
        for url in urls:
            truth = labels(base)[name_in(base, url)]
            wrong = (truth == CAR) & (predicted(truth) == STREET)
            assert 0 < wrong.sum() < (predicted(truth) != truth).sum()
            assert (marked(client, url) == wrong).all()
        (walk, *_) = re.findall(r'<a href="(/frames/[^"]+)" class="picture"', page)
        frame = client.get(unescape(walk)).text
        shown = re.search(r'id="overlay" data-source="[^"]+" src="([^"]+)"', frame)
        assert shown
        url = unescape(shown[1])
        truth = labels(base)[name_in(base, url)]
        wrong = (truth == CAR) & (predicted(truth) == STREET)
        assert (marked(client, url.replace("width=1280&format=jpeg", "format=png")) == wrong).all()
        (over,) = re.findall(r'data-over="(prediction:[^"]+)"', frame)
        assert over == "prediction:job:ids"
        assert 'data-over="errors:job:ids" checked' in frame


def test_of_merged_classes_the_label_classes_are_shown(base: Path) -> None:
    """A cell of a map's classes, on a frame's page, too; and the prediction in their colours."""
    with served(base) as client:
        page = client.get("/jobs/two/frames?truth=rest&predicted=cars").text
        urls = layers(page)
        assert len(urls) == FRAMES
        for url in urls:
            truth = labels(base)[name_in(base, url)]
            wrong = (truth != CAR) & (truth != UNKNOWN_CLASS) & (predicted(truth) == CAR)
            assert wrong.any()
            assert (marked(client, url) == wrong).all()
            picture = re.sub(r"&(errors|classes|taken_for)=[^&]+", "", url)
            drawn = client.get(re.sub(r"width=\d+&format=jpeg&quality=\d+", "format=png", picture))
            colours = np.asarray(Image.open(io.BytesIO(drawn.content)))
            is_car = (colours == CLASSES.class_colours[CAR]).all(axis=2)
            assert (is_car == (predicted(truth) == CAR)).all()
        (walk, *_) = re.findall(r'<a href="(/frames/[^"]+)" class="picture"', page)
        frame = client.get(unescape(walk)).text
        shown = re.search(r'id="overlay" data-source="[^"]+" src="([^"]+)"', frame)
        assert shown
        url = unescape(shown[1]).replace("width=1280&format=jpeg", "format=png")
        truth = labels(base)[name_in(base, url)]
        wrong = (truth != CAR) & (truth != UNKNOWN_CLASS) & (predicted(truth) == CAR)
        assert (marked(client, url) == wrong).all()


@pytest.fixture
def copied(base: Path) -> Iterator[Path]:
    """The home; its predictions are as they were afterwards."""
    shutil.copytree(base / "ids", base / "kept")
    matched = base / "home" / "jobs" / "ids" / "predictions" / "night" / MATCHED_FILE
    listed = matched.read_bytes()
    yield base
    matched.write_bytes(listed)
    shutil.rmtree(base / "ids", ignore_errors=True)
    (base / "kept").rename(base / "ids")


def test_of_a_prediction_that_is_gone_the_label_is_shown(copied: Path) -> None:
    """And said so: of one frame below its picture, of all above them; as of one that changed."""
    files = sorted((copied / "ids").rglob("*.png"))
    with served(copied) as client:
        path = f"/jobs/ids/{CELL}"
        before = layers(client.get(path).text)
        files[0].unlink()
        files[1].write_bytes(files[1].read_bytes() + b"more")
        page = client.get(path).text
        kinds = {name_in(copied, url): url.split("/")[2] for url in layers(page)}
        names = [file.relative_to(copied / "ids").as_posix() for file in files]
        assert [kinds[name] for name in names] == ["overlays", "overlays", "predictions"]
        assert page.count(GONE) == 2
        assert LACKS not in page
        for url in before:
            answer = client.get(url)
            is_there = name_in(copied, url) == names[2]
            assert answer.status_code == (200 if is_there else 404), answer.text
            assert str(copied) not in answer.text or is_there
        shutil.rmtree(copied / "ids")
        page = client.get(path).text
        assert {url.split("/")[2] for url in layers(page)} == {"overlays"}
        assert LACKS in page
        assert client.get("/jobs/ids").status_code == 200
        assert client.get(before[0]).status_code == 404


def test_a_list_of_an_earlier_release_names_no_frame(copied: Path) -> None:
    """Its job's page and cell show labels, and say so."""
    matched = copied / "home" / "jobs" / "ids" / "predictions" / "night" / MATCHED_FILE
    pq.write_table(pq.read_table(matched).drop_columns(["fkey"]), matched)
    with served(copied) as client:
        page = client.get(f"/jobs/ids/{CELL}").text
        assert LACKS in page
        assert {url.split("/")[2] for url in layers(page)} == {"overlays"}
        assert "Over the pictures: their labels." in client.get("/jobs/ids").text


def test_a_link_that_leads_elsewhere_shows_nothing(copied: Path) -> None:
    """Another file in a prediction's place, outside of the folder, is not read."""
    files = sorted((copied / "ids").rglob("*.png"))
    secret = copied / "secret.png"
    secret.write_bytes(files[0].read_bytes())
    with served(copied) as client:
        urls = layers(client.get(f"/jobs/ids/{CELL}").text)
        files[0].unlink()
        files[0].symlink_to(secret)
        (url,) = [one for one in urls if quote(files[0].name) in one]
        assert client.get(url).status_code == 404
        assert client.get(f"/jobs/ids/{CELL}").text.count(GONE) == 1


def test_a_user_sees_errors_as_long_as_they_see_the_frames(base: Path) -> None:
    """Of a job that they began, and none of others; outside of their collection none at all."""
    workspace = open_home(base / "home")
    records = workspace.records
    row_collections.add(records, "all", "size >= 0")
    users.add(records, "cora", ["datauser"], None)
    row_collections.assign(records, "all", "cora")
    token = tokens.create(records, "cora", "t", "read", timedelta(days=1))[1]
    account = users.recorded(records, "cora").account
    with records.session() as session:
        session.query(Job).filter_by(name="ids").update({"owner": "cora", "account": account})
    with served(base, token) as client:
        urls = layers(client.get(f"/jobs/ids/{CELL}").text)
        assert len(urls) == FRAMES
        for url in urls:
            assert client.get(url).status_code == 200
            assert client.get(url.replace("job=ids", "job=two")).status_code == 404
    row_collections.add(records, "one", "filename LIKE '%000000000.png'")
    row_collections.assign(records, "one", "cora")
    row_collections.withdraw(records, "all", "cora")
    with served(base, token) as client:
        paths = [url.partition("?")[0].replace("/predictions/", "/images/") for url in urls]
        seen = [client.get(f"{path}?format=jpeg") for path in paths]
        assert sorted(answer.status_code for answer in seen) == [200, 404, 404]
        assert client.get(f"/jobs/ids/{CELL}").status_code == 404
        assert {client.get(url).status_code for url in urls} == {404}
    workspace.close()
