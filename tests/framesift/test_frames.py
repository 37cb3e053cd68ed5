"""Frames one by one: pages, pictures, SQL and what a notebook shows."""

import html
import io
import re
import shutil
import subprocess
from html.parser import HTMLParser
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pytest
from PIL import Image

import framesift
from framesift import NotFound, SqlError, UnknownName
from framesift.forms.notebook import MOST_PICTURES, frames_html
from tests.pipeline.homes import FRAMES


def test_frames_come_page_by_page(client: framesift.Client) -> None:
    """Every frame once, in order, of one snapshot, whatever the page; few are fetched for few."""
    every = [frame.fkey for frame in client.frames(page=7)]
    assert every == sorted(every)
    assert len(every) == len(set(every)) == FRAMES
    assert [frame.fkey for frame in islice(client.frames(page=2), 3)] == every[:3]
    bikes = list(client.frames(bicycle=(1, None), columns=("scene", "bicycle"), page=2))
    assert len(bikes) == len(client.select(bicycle=(1, None)))
    assert all(set(frame) == {"fkey", "scene", "bicycle"} for frame in bikes)
    again = client.frames(question=client.select(bicycle=(1, None)).question)
    assert [frame.fkey for frame in again] == [frame.fkey for frame in bikes]
    with pytest.raises(TypeError, match="takes the place of conditions"):
        next(client.frames(question={}, car=(1, None)))
    with pytest.raises(UnknownName, match="unknown class 'cra'") as caught:
        next(client.frames(cra=(1, None)))
    assert "car" in caught.value.nearest


def test_one_frame_has_everything(client: framesift.Client) -> None:
    """Columns of its file and every tag; no frame of that name is its own exception."""
    frame = client.select(car=(1, None))[0]
    whole = client.frame(frame.fkey)
    assert whole["car"] == frame["car"]
    assert whole["cluster"] == "local"
    assert dict(frame.details()) == dict(whole)
    with pytest.raises(NotFound, match="no frame has") as caught:
        client.frame("local:a2d2:none?.png#x")
    assert (caught.value.status, caught.value.kind) == (404, "NotFound")


@pytest.mark.wide
def test_pictures_of_a_frame(client: framesift.Client, tmp_path: Path) -> None:
    """The files themselves, smaller ones, other formats; as bytes, for Pillow and on disk."""
    frame = client.select(car=(1, None))[0]
    image = frame.image()
    assert image.media_type == "image/png"
    assert image.to_pil().size == (frame["image_width"], frame["image_height"])
    small = frame.overlay(width=200, classes=["car"], format="webp")
    assert small.to_pil().size[0] == 200
    assert small.to_pil().format == "WEBP"
    assert frame.label(height=90).to_pil().size[1] == 90
    assert bytes(small) == small.save(tmp_path / "small.webp").read_bytes()
    assert small._repr_mimebundle_() == {"image/webp": small.data}
    with pytest.raises(UnknownName, match="unknown class 'cra'"):
        frame.overlay(classes="cra")


def test_sql_gives_rows_and_arrow(client: framesift.Client) -> None:
    """The same rows as dictionaries, as a table and as batches; at a snapshot."""
    result = client.sql("select scene, count(*) as frames from metaocean_view group by scene")
    rows = sorted(result, key=lambda row: str(row["scene"]))
    table = result.to_arrow().sort_by("scene")
    assert isinstance(table, pa.Table)
    assert table["frames"].to_pylist() == [row["frames"] for row in rows]
    assert len(result) == len(rows)
    with client.sql("select fkey from metaocean").reader() as reader:
        assert reader.schema.names == ["fkey"]
        assert sum(batch.num_rows for batch in reader) == 75
    assert client.sql("select fkey from metaocean", at=1).rows == []
    assert client.sql("select 1 as a from metaocean where 1 = 0").to_arrow().num_rows == 0


def test_a_refused_statement_has_its_sqlcode(client: framesift.Client) -> None:
    """However its rows are read."""
    wrong = client.sql("select nope from metaocean")
    for read in (lambda: wrong.rows, wrong.to_arrow, lambda: wrong.reader().__enter__()):
        with pytest.raises(SqlError, match="SQL0206N") as caught:
            read()
        assert (caught.value.sqlcode, caught.value.sqlstate) == (-206, "42703")


def test_statistics(client: framesift.Client) -> None:
    """Classes, histograms and groups agree with each other."""
    classes = {entry["tag"]: entry for entry in client.classes(camera="front_center")}
    counted = client.histogram("car", edges={"car": [0, 1, 10_000_000]}, camera="front_center")
    assert max(counted["counts"]) == classes["car"]["frames"]  # beside bins below and above
    both = client.histogram("camera", "car", zero="car", log=["car"], bins=3)
    assert both["frames"] == FRAMES
    groups = client.classes_by("camera")["groups"]
    assert sum(group["frames"] for group in groups) == FRAMES
    assert client.classes(car=(1, None), quantiles=True)[0]["pixel_quantiles"]["min"] >= 1


class _Shown(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.pictures: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.pictures += [value or "" for name, value in attrs if name == "src"]


@pytest.mark.wide
def test_a_notebook_shows_thumbnails(client: framesift.Client) -> None:
    """At most a dozen small pictures, in the page itself; nothing is fetched by the page."""
    chosen = client.select(car=(1, None))
    display = _Shown()
    text = chosen._repr_html_()
    display.feed(text)
    assert len(chosen) > MOST_PICTURES == len(display.pictures)
    assert all(source.startswith("data:image/jpeg;base64,") for source in display.pictures)
    assert html.escape(chosen.sentence) in text
    assert len(text) < 500_000
    frame = _Shown()
    frame.feed(chosen[0]._repr_html_())
    assert len(frame.pictures) == 1
    assert client.select(car=(9_000_000, None))._repr_html_().count("<img") == 0


def test_names_in_a_notebook_are_text(client: framesift.Client) -> None:
    """Markup in what is shown is escaped, and a frame without a picture says why."""
    evil = "<script>alert(1)</script>'\"&"
    frame = framesift.Frame({"fkey": evil, "camera": evil, "scene": evil}, client._transport)
    for text in (
        frames_html(evil, [evil], [frame], evil),
        frame._repr_html_(),
        client.sql(f"select '{evil.replace(chr(39), '')}' as a from metaocean")._repr_html_(),
    ):
        display = _Shown()
        display.feed(text)
        assert "script" not in display.tags
        assert "&lt;script&gt;" in text
    assert "no frame has" in frame._repr_html_()


@pytest.mark.wide
def test_a_browser_draws_it(client: framesift.Client, tmp_path: Path) -> None:
    """Chromium's picture of a selection holds the thumbnails' many colours."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no Chromium here")
    chosen = client.select(car=(1, None))
    page = tmp_path / "page.html"
    page.write_text(f"<meta charset=utf-8><body>{chosen._repr_html_()}", encoding="utf-8")
    subprocess.run(
        [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1100,900",
         f"--screenshot={tmp_path / 'page.png'}", page.as_uri()],
        check=True, capture_output=True, timeout=300,
    )  # fmt: skip
    drawn = Image.open(io.BytesIO((tmp_path / "page.png").read_bytes())).convert("RGB")
    assert len(drawn.getcolors(2**24) or []) > 2_000
    assert re.search(r"\d+ frames", chosen._repr_html_())
