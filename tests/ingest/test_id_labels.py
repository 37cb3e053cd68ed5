"""Labels whose samples are ids: counted and decoded as slow counting does, in each form."""

import zlib
from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from catalog.errors import BadFile
from framesift.data.classes import Classes
from ingest.labels.class_list import UNKNOWN_CLASS, ClassList
from ingest.labels.encoding import Encoding
from ingest.labels.label_image import decode_label
from ingest.labels.pixel_count import count_pixels
from ingest.labels.png_chunks import take_apart
from tests.ingest.png_writer import Picture, encode

CLASSES = [
    {"key": 7, "name": "road", "colour": "#804080"},
    {"key": [0, 1], "name": "void", "ignore": True},
    {"key": 3, "name": "person", "tag": "pedestrian", "colour": "#804080"},
]


def listed(encoding: str) -> ClassList:
    return ClassList.from_json({"encoding": encoding, "classes": CLASSES})


def _key(encoding: Encoding, pixel: tuple[int, ...]) -> int:
    if encoding.channel is not None:
        return pixel[encoding.channel]
    value = pixel[0]
    if encoding.divisor == 1000:
        return value if value < 1000 else value // 1000
    return value // encoding.divisor


FORMS = [
    *(("index", 0, depth) for depth in (1, 2, 4, 8, 16)),
    *(("index", 3, depth) for depth in (1, 2, 4, 8)),
    ("index", 4, 8), ("index//1000", 0, 16), ("index//256", 0, 16), ("channel:0", 2, 8),
    ("channel:2", 6, 8), ("channel:3", 6, 8),
]  # fmt: skip


@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize(("text", "colour_type", "depth"), FORMS)
def test_every_form_counts_as_slow_counting_does(
    text: str, colour_type: int, depth: int, interlaced: bool, tmp_path: Any
) -> None:
    """Counts, unknown keys, class images and the client agree; palettes repeat colours."""
    rng, encoding = Random(f"{text}{colour_type}{depth}"), Encoding(text)
    most = (1 << depth) - 1
    values = (
        [0, 1, 3, 7, 9, most, 7001, 3 << 8, 1000, 999] if depth == 16 else [0, 1, 3, 7, 9, most]
    )
    samples = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour_type]
    rows = [[tuple(min(most, rng.choice(values)) for _ in range(samples)) for _ in range(9)]
            for _ in range(7)]  # fmt: skip
    palette = ((5, 5, 5),) * (most + 1) if colour_type == 3 else ()
    picture = Picture(rows, colour_type, depth, (0, 1, 2, 3, 4), interlaced, palette)
    png, class_list = encode(picture), listed(text)
    keys = Counter(_key(encoding, pixel) for row in rows for pixel in row)
    counts = count_pixels(png, class_list)
    assert counts.counts.tolist() == [keys[7], keys[0] + keys[1], keys[3]]
    known = {0, 1, 3, 7}
    assert counts.unknown_keys == {str(key): n for key, n in keys.items() if key not in known}
    assert counts.unknown == sum(counts.unknown_keys.values())
    ids = decode_label(png, class_list)
    expected = [[class_list.class_of_key.get(_key(encoding, pixel), UNKNOWN_CLASS) for pixel in row]
                for row in rows]  # fmt: skip
    assert ids.tolist() == expected
    (tmp_path / "label.png").write_bytes(png)
    header = {"classes": class_list.classes, "class_list": class_list.to_json()}
    assert (
        Classes.of_manifest(header, {}).read_label(str(tmp_path / "label.png")).tolist() == expected
    )


def _areas(rng: Random, width: int, height: int, most: int) -> list[list[tuple[int, ...]]]:
    """Rows of areas, many of which go on from the row above; now and then a ramp or noise."""
    rows: list[list[tuple[int, ...]]] = []
    for _ in range(height):
        if rows and rng.random() < 0.5:
            row = list(rows[-1])
            moved, size = rng.randrange(width), rng.choice([1, 3, 70])
            row[moved : moved + size] = [(rng.randrange(most + 1),)] * size
            rows.append(row[:width])
            continue
        row = []
        while len(row) < width:
            size = rng.choice([1, 1, 2, 5, 63, 64, 65, 300])
            step = rng.choice([0, 0, 0, 0, 1, 7])
            first = rng.choice([0, 1, 3, 7, most, rng.randrange(most + 1)])
            row += [((first + step * x) % (most + 1),) for x in range(size)]
        rows.append(row[:width])
    return rows


@pytest.mark.parametrize("seed", range(24))
def test_rows_of_any_width_and_filter(seed: int) -> None:
    """As bincount counts them; the digest is that of the same label interlaced, which is slow."""
    rng = Random(seed)
    colour_type, depth = [(0, 8), (3, 8), (0, 16), (0, 4), (3, 1), (0, 2)][seed % 6]
    width = rng.choice([1, 2, 63, 64, 65, 66, 129, 400])
    rows = _areas(rng, width, rng.choice([1, 2, 12]), (1 << depth) - 1)
    filters = rng.choice([(0,), (1,), (2,), (3,), (4,), (2, 4), (0, 1, 2, 3, 4)])
    palette = ((9, 9, 9),) * (1 << depth) if colour_type == 3 else ()
    encoding = rng.choice(["index", "index//1000", "index//256"])
    class_list = listed(encoding)
    values = np.array(rows)[..., 0]
    keys = Encoding(encoding).keys(values)
    pixels = np.bincount(keys.ravel(), minlength=8)
    counts = count_pixels(
        encode(Picture(rows, colour_type, depth, filters, False, palette)), class_list
    )
    assert counts.counts.tolist() == [pixels[7], pixels[0] + pixels[1], pixels[3]]
    assert counts.unknown == values.size - counts.counts.sum()
    slow = count_pixels(encode(Picture(rows, colour_type, depth, (0,), True, palette)), class_list)
    assert (slow.digest, slow.unknown_keys) == (counts.digest, counts.unknown_keys)


def test_damaged_labels_of_16_bits_and_of_channels() -> None:
    """Refused with the words of the decoder, as they are where a frame is opened."""
    for encoding, picture in (
        ("index//1000", Picture([[(7000,)] * 90] * 9, 0, 16)),
        ("channel:1", Picture([[(7, 7, 7)] * 90] * 9)),
    ):
        parts = take_apart(encode(picture))
        raw = zlib.decompress(parts.pixels)
        wrong_filter = b"\x09" + raw[1:]
        for pixels in (
            zlib.compress(raw[:-200]), zlib.compress(wrong_filter), parts.pixels[:-9],
            parts.pixels[:20] + b"\xff" + parts.pixels[21:],
        ):  # fmt: skip
            png = replace(parts, pixels=pixels).bare()
            messages = []
            for work in (count_pixels, decode_label):
                with pytest.raises(BadFile) as error:
                    work(png, listed(encoding))
                messages.append(str(error.value))
            assert messages[0] == messages[1]


def test_the_digest_is_of_the_values() -> None:
    """The same of grey and palette images, interlaced or not, of 8 bits and of 16; else another."""
    rows = [[(7,), (3,), (3,)], [(0,), (9,), (7,)]]
    palette = tuple((n, n, 1) for n in range(10))
    pictures = [
        Picture(rows),
        Picture(rows, 3, 8, (0,), False, palette),
        Picture(rows, 3, 4, (0,), True, palette),
    ]
    grey = [
        Picture(rows, 0, 8),
        Picture(rows, 0, 8, (4,), True),
        Picture(rows, 0, 16),
        *pictures[1:],
    ]
    digests = {count_pixels(encode(each), listed("index")).digest for each in grey}
    assert len(digests) == 1
    other = [[(7,), (3,), (3,)], [(0,), (9,), (3,)]]
    assert count_pixels(encode(Picture(other, 0, 8)), listed("index")).digest not in digests


@pytest.mark.parametrize(
    ("text", "picture", "words"),
    [
        (
            "index",
            Picture([[(1, 2, 3)]]),
            "8 bits of RGB; the layout's encoding index needs grey or",
        ),
        ("channel:3", Picture([[(1, 2, 3)]]), "encoding channel:3 needs 8 bits of RGBA"),
        (
            "channel:0",
            Picture([[(1, 2, 3)]], 2, 16),
            "16 bits of RGB; the layout's encoding channel:0",
        ),
        ("channel:0", Picture([[(1,)]], 0, 8), "8 bits of grey; the layout's encoding channel:0"),
        (
            "index",
            Picture([[(3,)]], 3, 8, palette=((0, 0, 0),) * 3),
            "uses colour 3 of a palette of 3",
        ),
    ],
)
def test_another_kind_of_image_is_bad(text: str, picture: Picture, words: str) -> None:
    """Counting and decoding refuse it with what it is and what was expected."""
    for work in (count_pixels, decode_label):
        with pytest.raises(BadFile) as error:
            work(encode(picture), listed(text))
        assert words in str(error.value)


def test_a_class_list_comes_back_from_json() -> None:
    """Keys, drawn colours, ignored classes and tags; classes that share a colour stay apart."""
    for class_list in (
        listed("index"),
        ClassList.from_colours({"#ff0000": "Car 1", "#0000ff": "Sky"}),
    ):
        again = ClassList.from_json(class_list.to_json())
        assert again == class_list
    ids = listed("index")
    assert (ids.classes, ids.tags) == (("road", "void", "person"), ("road", "void", "pedestrian"))
    assert ids.ignored == {1}
    assert ids.class_colours[[0, 2]].tolist() == [[128, 64, 128]] * 2
    assert np.flatnonzero(ids.lookup_table != UNKNOWN_CLASS).tolist() == [0, 1, 3, 7]
