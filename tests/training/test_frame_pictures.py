"""The pictures of single frames in a report: small, and bounded whatever they show."""

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from framesift.forms.cards import CARD_WIDTH
from training.validation.frame_pictures import PICTURE_BYTES, SHOWN, FramePictures, pictures_of
from training.validation.report_frames import frame_sections

KINDS = ("image", "truth", "prediction", "errors")

MOST_BYTES = 800_000
"""Of a report's frames at most: two lists of SHOWN, four pictures each, in base64, and captions."""


def noise(row: int, shape: tuple[int, int]) -> FramePictures:
    """Those of a frame that nothing compresses: each pixel is another colour and class."""
    random = np.random.default_rng(row)
    image = random.integers(0, 256, (*shape, 3), np.uint8)
    truth, prediction = (random.integers(0, 40, shape, np.uint8) for _ in range(2))
    colours = random.integers(0, 256, (38, 3), np.uint8)
    return pictures_of(row, image, truth, prediction, colours)


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ((604, 960), (240, 151)),
        ((960, 604), (151, 240)),
        ((20, 30), (30, 20)),
        ((1, 900), (240, 1)),
    ],
)
def test_a_picture_is_as_wide_as_a_card_at_most(
    shape: tuple[int, int], size: tuple[int, int]
) -> None:
    """And has so many bytes at most, of noise, too; a smaller one keeps its size."""
    pictures = noise(3, shape)
    for kind in KINDS:
        data = getattr(pictures, kind)
        assert len(data) <= PICTURE_BYTES
        with Image.open(io.BytesIO(data)) as opened:
            assert (opened.format, opened.size) == ("JPEG", size)
            assert max(opened.size) <= CARD_WIDTH


def test_colours_are_those_of_classes() -> None:
    """Of areas: truth and prediction in their classes' colours, no class black, errors red."""
    truth, prediction = np.zeros((40, 60), np.uint8), np.zeros((40, 60), np.uint8)
    truth[:, 20:40], truth[:, 40:], prediction[:, 40:] = 1, 255, 1
    colours = np.array([(200, 30, 30), (30, 30, 200)], np.uint8)
    pictures = pictures_of(0, np.full((40, 60, 3), 100, np.uint8), truth, prediction, colours)
    expected = {
        "image": [(100, 100, 100)] * 3,
        "truth": [(200, 30, 30), (30, 30, 200), (0, 0, 0)],
        "prediction": [(200, 30, 30), (200, 30, 30), (30, 30, 200)],
        "errors": [(45, 45, 45), (171, 42, 42), (45, 45, 45)],
    }
    for kind, pixels in expected.items():
        with Image.open(io.BytesIO(getattr(pictures, kind))) as opened:
            drawn = np.asarray(opened.convert("RGB"), np.int64)
        for x, pixel in zip((10, 30, 50), pixels, strict=True):
            assert np.abs(drawn[20, x] - pixel).max() < 12, (kind, x)


def test_the_frames_of_a_report_are_bounded() -> None:
    """With the most frames of both lists, of noise; a frame in both has its pictures once."""
    rows = [_row(n) for n in range(2 * SHOWN)]
    pictures = {row["row"]: noise(row["row"], (302, 480)) for row in rows}
    report = {"worst_frames": rows[:SHOWN], "most_uncertain_frames": rows[SHOWN:]}
    page = frame_sections(report, pictures)
    assert page.count("data:image/jpeg") == 4 * 2 * SHOWN
    assert len(page) <= MOST_BYTES
    both = {"worst_frames": rows[:SHOWN], "most_uncertain_frames": rows[SHOWN - 1 : SHOWN + 1]}
    page = frame_sections(both, pictures)
    assert page.count("data:image/jpeg") == 4 * (SHOWN + 1)
    assert page.count(f'href="#frame-{SHOWN - 1}"') == page.count(f'id="frame-{SHOWN - 1}"') == 1
    assert "<bdi>front</bdi> · <bdi>s1</bdi>" in page
    assert "mean IoU 12.5 %, uncertainty 25.0 %" in page


def _row(number: int) -> dict[str, Any]:
    scores = {"miou": 0.125, "uncertainty": 0.25}
    return {
        "fkey": f"a2d2/<{number}>.png",
        "row": number,
        "camera": "front",
        "scene": "s1",
        **scores,
    }
