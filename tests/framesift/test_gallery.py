"""Galleries of frames: bounded, text where names are markup, and nothing of another host."""

import base64
import html
import re
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any

import pytest

import framesift
from framesift.errors import FramesiftServerError, NotFound
from framesift.forms.gallery import MOST_BYTES, Gallery
from framesift.forms.picture import Picture
from tests.pipeline.homes import FRAMES

EVIL = "<script>alert(1)</script>'\"&"


class Drawn(HTMLParser):
    """The elements of a gallery."""

    def __init__(self, text: str) -> None:
        """Read it."""
        super().__init__()
        self.pictures: list[str] = []
        self.links: list[str] = []
        self.alternatives: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what it is and refers to."""
        self.tags.add(tag)
        of = dict(attrs)
        self.pictures += [of["src"] or ""] if "src" in of else []
        self.links += [of["href"] or ""] if "href" in of else []
        self.alternatives += [of["alt"] or ""] if "alt" in of else []


class Frame:
    """A frame whose pictures say what was asked for."""

    def __init__(self, fkey: str, size: int = 8, **about: object) -> None:
        """Of so many bytes."""
        self.fkey, self.document, self._size = fkey, about, size

    def image(self, **look: Any) -> Picture:
        """Its image."""
        return self._made("image", look)

    def overlay(self, **look: Any) -> Picture:
        """Its label."""
        return self._made("overlay", look)

    def prediction(self, *, model: str, errors: bool, **look: Any) -> Picture:
        """That of the model ``first``."""
        if model != "first":
            raise NotFound("no such prediction")
        return self._made("errors" if errors else "prediction", look)

    def _made(self, kind: str, look: Mapping[str, Any]) -> Picture:
        data = f"{kind} {look['width']} ".encode()
        return Picture(data + b"x" * self._size, "image/jpeg")


class Pictureless(Frame):
    """A frame whose picture the server refuses."""

    def overlay(self, **look: Any) -> Picture:
        """None."""
        raise FramesiftServerError(f"no picture {EVIL}")


def gallery(*frames: Frame, **how: Any) -> Gallery:
    """A gallery of them."""
    usual: dict[str, Any] = {"limit": 24, "over": "label", "size": "medium"}
    return Gallery("cars", len(frames), frames, **usual | how)


def kinds(drawn: Gallery) -> list[str]:
    """What each picture is, and how wide."""
    pictures = [one.partition(",")[2] for one in Drawn(drawn.html).pictures]
    return [" ".join(base64.b64decode(one).decode().split()[:2]) for one in pictures]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({}, "overlay 240"),
        ({"over": None, "size": "small"}, "image 160"),
        ({"over": "prediction:first", "size": "large"}, "prediction 480"),
        ({"over": "errors:first"}, "errors 240"),
        ({"over": "errors:second"}, "image 240"),
    ],
)
def test_what_lies_over_the_pictures(how: dict[str, Any], expected: str) -> None:
    """The label, a model's prediction or errors, or nothing; without a prediction the image."""
    assert kinds(gallery(Frame("a"), Frame("b"), **how)) == [expected, expected]


def test_the_first_frames_are_drawn_with_captions() -> None:
    """And how many there are of; values as the page has them."""
    frames = [Frame(f"f{n}", camera="front", frame_number=n, scene="صباح", car=12_000 + n)
              for n in range(5)]  # fmt: skip
    shown = gallery(*frames, limit=2, captions=("car", "weather"))
    drawn = Drawn(shown.html)
    assert drawn.alternatives == ["front 0 صباح", "front 1 صباح"]
    assert "2 of 5 frames" in shown.html
    assert "car <bdi>12,001</bdi>" in shown.html
    assert "weather <bdi>none</bdi>" in shown.html
    assert "<bdi>صباح</bdi>" in shown.html
    assert drawn.links == []
    assert repr(shown) == "<Gallery: 2 of 5 frames: cars>"
    assert repr(gallery(*frames)) == "<Gallery: 5 of 5 frames: cars>"


@pytest.mark.parametrize(
    ("captions", "message"),
    [
        (("car", "weathr"), r"captions='weathr': did you mean weather\? The frames have camera, "),
        (("nothing like it",), "captions='nothing like it': The frames have .*, weather; "),
    ],
)
def test_a_caption_that_frames_lack_is_named(captions: tuple[str, ...], message: str) -> None:
    """At once, with what there is; a name in other case, or twice, is known."""
    known = ("camera", "car", "fkey", "weather")
    with pytest.raises(ValueError, match=message):
        gallery(Frame("a"), captions=captions, known=known)
    frame = Frame("a", car=12, weather="rain")
    text = gallery(frame, captions=("Car", " weather", "car"), known=known).html
    assert text.count("car <bdi>12</bdi>") == 1
    assert "weather <bdi>rain</bdi>" in text


def test_a_gallery_stays_below_its_limit() -> None:
    """Pictures beyond it are left out, and their number is said."""
    frames = [Frame(f"f{n}", 400_000, camera="c") for n in range(30)]
    text = gallery(*frames, limit=30).html
    assert len(text) < MOST_BYTES + 2_000
    drawn = len(Drawn(text).pictures)
    assert 8 < drawn < 30
    assert f"{drawn} of 30 frames; {30 - drawn} more would make this larger than 6 MB" in text


def test_names_are_texts_and_a_refusal_is_said_in_its_place() -> None:
    """Markup in names is escaped; a frame without a picture does not take the others' away."""
    evil = Frame(EVIL, camera=EVIL, scene=EVIL)
    text = Gallery(
        EVIL, 2, [evil, Pictureless("b", camera="c")], limit=2, over="label", size="small",
        captions=("camera",), url="http://server/",
    ).html  # fmt: skip
    drawn = Drawn(text)
    assert "script" not in drawn.tags
    assert len(drawn.pictures) == 1
    assert drawn.links == ["http://server/frames/%3Cscript%3Ealert%281%29%3C/script%3E%27%22%26"]
    assert f"no picture {html.escape(EVIL)}" in text


@pytest.mark.parametrize(
    ("how", "said"),
    [({"limit": 0}, "1 to 200"), ({"limit": 201}, "1 to 200"), ({"limit": True}, "1 to 200"),
     ({"size": "huge"}, "small, medium, large"), ({"over": "labels"}, "prediction:MODEL"),
     ({"over": "label:first"}, "prediction:MODEL"), ({"over": "errors:"}, "prediction:MODEL")],
)  # fmt: skip
def test_a_wrong_argument_is_refused(how: dict[str, Any], said: str) -> None:
    """Before anything is fetched."""
    with pytest.raises(ValueError, match=said):
        gallery(Frame("a"), **how)


@pytest.mark.wide
def test_a_server_fills_it(client: framesift.Client, server: str) -> None:
    """Of a selection, a dataset and pages of frames; the frames' own iteration stays in place."""
    chosen = client.select(car=(1, None))
    text = chosen.show(limit=3, captions=["car"])._repr_html_()
    drawn = Drawn(text)
    assert len(drawn.pictures) == 3
    assert all(one.startswith("data:image/jpeg;base64,") for one in drawn.pictures)
    assert html.escape(chosen.sentence) in text
    assert f"3 of {len(chosen)} frames" in text
    assert f"car <bdi>{chosen[0]['car']:,}</bdi>" in text
    assert drawn.links[0].startswith(f"{server}/frames/")
    every = client.frames(car=(1, None))
    first = next(every)
    pages = Drawn(every.show(2).html)
    assert len(pages.pictures) == 2
    assert pages.links[0].endswith(first.fkey)
    assert next(every).fkey == chosen[1].fkey
    made = client.datasets.create("gallery", split="train=0.5,validation=0.5", split_by="frame",
                                  allow_leakage=True)  # fmt: skip
    text = made.show(2, split="train", over=None).html
    assert re.search(rf"dataset gallery version 1, split train.*2 of {FRAMES // 2} frames", text)
    with pytest.raises(ValueError, match=r"captions='carr': did you mean car"):
        chosen.show(captions=["carr"])
    for wrong in (made.show(2, captions=["carr"]), every.show(2, captions=["carr"])):
        with pytest.raises(framesift.UnknownName, match="unknown column 'carr': did you mean car"):
            _ = wrong.html
    assert client.select(car=(9_000_000, None)).show().html.count("<img") == 0
    large = chosen.show(limit=len(chosen), size="large").html
    assert len(large) < MOST_BYTES
    assert "larger than" not in large
