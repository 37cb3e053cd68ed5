"""Labels in, exact counts out: real labels, drawn labels, and every way a PNG may be written."""

import json
import os
from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.labels.class_list import UNKNOWN_CLASS, ClassList
from ingest.labels.label_image import decode_image, decode_label, open_png
from ingest.labels.pixel_count import PixelCounts, count_pixels
from tests.ingest.png_writer import FORMATS, SAMPLES, Picture, Pixel, chunk, encode

# Two colours of one class, greys that grey images can hit, and no black: it is "unknown".
LISTED = ClassList.from_colours(
    {
        "#ff0000": "Car 1",
        "#c80000": "Car 2",
        "#010203": "Sky",
        "#555555": "Grey",
        "#ffffff": "White",
        "#800000": "Car 3",
    }
)
Rgb = tuple[int, int, int]
REPOSITORY = Path(__file__).parent.parent.parent


def by_class(counts: PixelCounts, palette: ClassList) -> dict[str, int]:
    return {
        name: int(pixels)
        for name, pixels in zip(palette.classes, counts.counts, strict=True)
        if pixels
    }


def test_real_labels_count_exactly(a2d2_root: Path, palette: ClassList) -> None:
    """The four real labels give the counts that were found one class at a time, pixel by pixel."""
    expected = json.loads((a2d2_root / "counts.json").read_text())["labels"]
    labels = sorted(a2d2_root.glob("camera_lidar_semantic/*/label/*/*.png"))
    assert len(labels) == 4
    for label in labels:
        facts = expected[label.name]
        merged: Counter[str] = Counter()
        for entry, pixels in facts["by_list_entry"].items():
            merged[entry[:-2] if entry[-1].isdigit() else entry] += pixels
        counts = count_pixels(label.read_bytes(), palette)
        assert by_class(counts, palette) == dict(merged)
        assert (counts.width, counts.height) == (facts["width"], facts["height"])
        assert counts.unknown == facts["unknown_pixels"] == 0


def test_sample_labels_count_exactly(sample_root: Path, palette: ClassList) -> None:
    """Every committed label gives the counts that the drawing program noted."""
    noted = json.loads((sample_root.parent / "counts.json").read_text())["frames"]
    labels = list(sample_root.rglob("*_label_*.png"))
    assert {label.name for label in labels} == set(noted)
    for label in labels:
        counts = count_pixels(label.read_bytes(), palette)
        assert by_class(counts, palette) == noted[label.name]
        assert counts.unknown == 0


@st.composite
def pictures(draw: st.DrawFn) -> Picture:
    """Any small picture in any of PNG's formats."""
    colour_type, depth = draw(st.sampled_from(FORMATS))
    width, height = draw(st.integers(1, 18)), draw(st.integers(1, 12))
    rng = Random(draw(st.integers(0, 2**32)))
    palette: tuple[Rgb, ...] = ()
    if colour_type == 3:
        palette = tuple(_some_colour(rng) for _ in range(rng.randint(1, 1 << min(depth, 5))))
    rows = [
        [_some_pixel(rng, colour_type, depth, len(palette)) for _ in range(width)]
        for _ in range(height)
    ]
    return Picture(
        rows,
        colour_type,
        depth,
        tuple(draw(st.lists(st.integers(0, 4), min_size=1, max_size=5))),
        draw(st.booleans()),
        palette,
        draw(st.sampled_from([1, 7, 1 << 16])),
        draw(st.sampled_from([0, 1, 9])),
    )


def _some_colour(rng: Random) -> Rgb:
    if rng.random() < 0.7:
        colour = rng.choice([*LISTED.class_of_key])
        return colour >> 16, colour >> 8 & 255, colour & 255
    return rng.choice([(0, 0, 0), (1, 2, 4), (254, 0, 0), (0, 0, 255)])


def _some_pixel(rng: Random, colour_type: int, depth: int, colours: int) -> Pixel:
    if colour_type == 3:
        return (rng.randrange(colours),)
    most = (1 << depth) - 1
    alpha = (rng.choice([0, 1, most // 2, most]),) if colour_type in (4, 6) else ()
    if SAMPLES[colour_type] < 3:
        return (rng.choice([0, 1, most // 3, most]), *alpha)
    colour: Pixel = _some_colour(rng)
    if depth == 16:
        colour = tuple(sample << 8 | rng.choice([0, 17, 255]) for sample in colour)
    return (*colour, *alpha)


def slow_colours(picture: Picture) -> list[Rgb]:
    """The colours of all pixels, by the specification, one pixel at a time."""
    colours = []
    for row in picture.rows:
        for pixel in row:
            if picture.colour_type == 3:
                colours.append(picture.palette[pixel[0]])
                continue
            rgb = pixel[:3] if SAMPLES[picture.colour_type] >= 3 else pixel[:1] * 3
            if picture.depth == 16:
                rgb = tuple(sample >> 8 for sample in rgb)
            else:
                rgb = tuple(sample * 255 // ((1 << picture.depth) - 1) for sample in rgb)
            colours.append((rgb[0], rgb[1], rgb[2]))
    return colours


def digest_of(colours: list[Rgb], width: int) -> str:
    """The digest of these pixels in rows of differences, which are counted by runs."""
    rows = [colours[start : start + width] for start in range(0, len(colours), width)]
    return count_pixels(encode(Picture(rows, filters=(0, 1))), LISTED).digest


@given(pictures())
@settings(max_examples=250, deadline=None, database=None)
def test_every_kind_of_png_counts_as_slow_counting_does(picture: Picture) -> None:
    """Any colour type, depth, filter and interlacing: counts, unknowns and class image agree."""
    colours = slow_colours(picture)
    listed: Counter[int] = Counter()
    unknown: Counter[str] = Counter()
    for red, green, blue in colours:
        class_id = LISTED.class_of_key.get(red << 16 | green << 8 | blue)
        if class_id is None:
            unknown[f"#{red:02x}{green:02x}{blue:02x}"] += 1
        else:
            listed[class_id] += 1

    png = encode(picture)
    counts = count_pixels(png, LISTED)

    assert decode_image(png).reshape(-1, 3).tolist() == [list(colour) for colour in colours]
    assert counts.counts.tolist() == [listed[c] for c in range(len(LISTED))]
    assert counts.unknown == unknown.total()
    assert counts.unknown_keys == unknown
    assert (counts.width, counts.height) == picture.size
    assert counts.counts.sum() + counts.unknown == counts.width * counts.height
    assert counts.digest == digest_of(colours, counts.width)
    red, green, blue = colours[-1]
    assert counts.digest != digest_of([*colours[:-1], (red, green, blue ^ 1)], counts.width)
    ids = decode_label(png, LISTED)
    assert ids.shape == (counts.height, counts.width)
    assert ids.ravel().tolist() == [
        LISTED.class_of_key.get(red << 16 | green << 8 | blue, UNKNOWN_CLASS)
        for red, green, blue in colours
    ]
    assert np.bincount(ids.ravel(), minlength=256)[: len(LISTED)].tolist() == counts.counts.tolist()


def test_gamma_transparency_and_other_chunks_change_no_colour() -> None:
    """A label with gAMA, sRGB, tRNS, a broken colour profile or text counts as without them."""
    picture = Picture([[(255, 0, 0), (1, 2, 3)]])
    plain = count_pixels(encode(picture), LISTED)
    for extra in (
        chunk(b"gAMA", (100000).to_bytes(4, "big")) + chunk(b"sRGB", b"\0"),
        chunk(b"tRNS", b"\0\xff\0\0\0\0"),
        chunk(b"iCCP", b"broken"),
        chunk(b"acTL", bytes(8)),
        chunk(b"tEXt", b"Comment\0drawn"),
        chunk(b"PLTE", bytes(30)),
    ):
        with_extra = count_pixels(encode(picture, extra), LISTED)
        assert with_extra.counts.tolist() == plain.counts.tolist()


def test_unknown_colours_are_reported_largest_first_and_at_most_16() -> None:
    """All unknown pixels are counted; the report names the 16 most frequent colours."""
    row = [(0, 1, number) for number in range(20) for _ in range(number + 1)]
    counts = count_pixels(encode(Picture([row])), LISTED)
    assert counts.unknown == sum(range(1, 21))
    assert list(counts.unknown_keys.items())[:2] == [("#000113", 20), ("#000112", 19)]
    assert len(counts.unknown_keys) == 16


def test_near_colours_are_never_matched() -> None:
    """#800000 and #810000 differ: a colour that is off by one is no class."""
    counts = count_pixels(encode(Picture([[(0x80, 0, 0), (0x81, 0, 0)]])), LISTED)
    assert (by_class(counts, LISTED), counts.unknown_keys) == ({"Car": 1}, {"#810000": 1})


def test_whole_frames_are_decoded_as_pillow_does(palette: ClassList) -> None:
    """Proves no pixel of whole images and labels differs, real ones included where they are."""
    root = Path(os.environ.get("A2D2_ROOT") or REPOSITORY / "sample_data/a2d2")
    for kind in ("camera", "label"):
        for path in sorted(root.rglob(f"*_{kind}_*.png"))[:2]:
            png = path.read_bytes()
            pixels = np.asarray(open_png(png))
            assert (decode_image(png) == pixels).all()
            packed = pixels.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], np.uint32)
            assert (decode_label(png, palette) == palette.lookup_table[packed]).all()
