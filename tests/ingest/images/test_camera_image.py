"""Camera images of both kinds as arrays: the same pixels everywhere, or a refusal everywhere."""

import io
import os
import warnings
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import framesift
from catalog.errors import BadFile
from framesift.data.frame_files import read_image
from ingest.images.camera_image import decode_image, image_size, open_image, whole_image_size
from ingest.labels.label_image import UInt8
from tests.drawn_jpegs import BASELINE, GOOD, HEIGHT, PICTURE, REFUSED, WIDTH, jpeg_of
from tests.ingest.png_writer import Picture, encode


def size_of(content: bytes) -> tuple[int, int]:
    return image_size(lambda begin: content[begin:], len(content))


def decoded(content: bytes, path: Path) -> UInt8:
    """The pixels that all decoders give; the file's name says PNG, whatever it is."""
    path.write_bytes(content)
    pixels = decode_image(content)
    assert np.array_equal(read_image(str(path)), pixels)
    assert np.array_equal(np.asarray(open_image(content)), pixels)
    assert open_image(content).mode == "RGB"
    assert size_of(content) == whole_image_size(content) == pixels.shape[1::-1]
    return pixels


def refused(content: bytes, path: Path) -> str:
    """Why no decoder takes it."""
    path.write_bytes(content)
    with pytest.raises(framesift.BadFile) as of_client:
        read_image(str(path))
    assert str(of_client.value).startswith(f"{path}: ")
    reasons = []
    for decode in (decode_image, open_image):
        with pytest.raises(BadFile) as error:
            decode(content)
        reasons.append(error.value.reason)
    assert reasons[0] == reasons[1]
    assert "\n" not in reasons[0] + str(of_client.value)
    return reasons[0]


@pytest.mark.parametrize("form", GOOD)
def test_pixels_of_every_form(form: str, tmp_path: Path) -> None:
    """They are libjpeg's, as Pillow has them; those of an image that is not turned, too."""
    pixels = decoded(GOOD[form], tmp_path / "a.png")
    with warnings.catch_warnings(action="ignore"):  # of broken EXIF data
        image = Image.open(io.BytesIO(GOOD[form])).convert("RGB")
    assert np.array_equal(pixels, np.asarray(image))
    assert pixels.shape == (HEIGHT, WIDTH, 3)


@pytest.mark.parametrize("words", REFUSED)
def test_what_is_not_read(words: str, tmp_path: Path) -> None:
    """Its reason names it, before its pixels are decoded."""
    assert words in refused(REFUSED[words], tmp_path / "a.jpg")
    with pytest.raises(BadFile, match="JPEG"):
        size_of(REFUSED[words])


def test_damaged_pixels_are_no_picture(tmp_path: Path) -> None:
    """A part that is gone or other is refused, where Pillow shows the rest as a picture.

    Not every other bit can be found: JPEG has no checksums.
    """
    jpeg = jpeg_of(PICTURE.resize((320, 240), Image.Resampling.NEAREST), quality=90)
    begin = len(jpeg) // 2
    for damaged in (
        jpeg[:begin] + jpeg[begin + 500 :],
        jpeg[:begin] + bytes(500) + jpeg[begin + 500 :],
    ):
        assert Image.open(io.BytesIO(damaged)).convert("RGB").size == (320, 240)
        assert "JPEG is damaged: Corrupt JPEG data" in refused(damaged, tmp_path / "a.jpg")
    for size in (*range(0, len(BASELINE), 97), len(BASELINE) - 1, len(BASELINE) - 2):
        assert refused(BASELINE[:size], tmp_path / "a.jpg")
    for content in (b"", b"GIF89a", b"no image", b"\x89PNG\r\n\x1a\n"):
        assert refused(content, tmp_path / "a.jpg")
    assert refused(b"GIF89a", tmp_path / "a") == "is neither a PNG nor a JPEG image but a GIF image"


@pytest.mark.parametrize("colour_type", [0, 2, 4, 6])
@pytest.mark.parametrize("interlaced", [False, True])
def test_of_sixteen_bits_the_high_ones(colour_type: int, interlaced: bool, tmp_path: Path) -> None:
    """In grey and colour, with alpha and without; the low byte never rounds."""
    draw = np.random.default_rng(colour_type)
    samples = {0: 1, 2: 3, 4: 2, 6: 4}[colour_type]
    values = draw.integers(0, 65536, (5, 7, samples))
    values[0, 0], values[-1, -1] = 0x00FF, 0xFEFF
    rows = [[tuple(map(int, pixel)) for pixel in row] for row in values]
    png = encode(Picture(rows, colour_type, 16, filters=(1, 2, 4), interlaced=interlaced))
    high = (values >> 8).astype(np.uint8)
    expected = high[..., :3] if samples >= 3 else high[..., :1].repeat(3, 2)
    assert np.array_equal(decoded(png, tmp_path / "a.png"), expected)


def test_real_jpegs_are_what_pillow_gives(tmp_path: Path) -> None:
    """Proves it for each sixteenth frame of CamVid, with the sizes of its label."""
    if "CAMVID_ROOT" not in os.environ:
        pytest.skip("CAMVID_ROOT is unset: no real JPEG frames here")
    images = sorted(Path(os.environ["CAMVID_ROOT"]).glob("images/*/*.jpg"))
    assert len(images) == 468
    for path in islice(images, 0, None, 16):
        pixels = decoded(path.read_bytes(), tmp_path / "a.jpg")
        with Image.open(path) as image:
            assert np.array_equal(pixels, np.asarray(image))
        label = Image.open(str(path).replace("images", "labels").replace(".jpg", ".png"))
        assert label.size == pixels.shape[1::-1]
