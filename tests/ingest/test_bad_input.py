"""What is wrong with a user's layout, labels and images: each is said, and nothing else is lost."""

from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from catalog.errors import ClassListMissing, InvalidInput
from catalog.records.scans import recorded_problems
from ingest.layouts.read_layout import preset
from tests.drawn_jpegs import jpeg_of
from tests.ingest.label_sets import CAR, ROAD, city_keys, make_city, png
from tests.ingest.scene_folders import Home, put
from tests.ingest.test_layout_scans import set_layout

LAYOUT = {
    "images": "i/{frame}.{jpg,png}",
    "labels": "l/{frame}.png",
    "classes": [{"key": CAR, "name": "car"}, {"key": ROAD, "name": "road"}],
}
ROW = [CAR, CAR, ROAD]
FRAMES = (
    "SELECT filename, car, road, unknown_pixels FROM metaocean_view WHERE labelled = 1 ORDER BY 1"
)


def sixteen_bits(row: list[int]) -> bytes:
    file = BytesIO()
    Image.fromarray(np.array([row], np.uint16)).save(file, "PNG")
    return file.getvalue()


@pytest.mark.wide
def test_bad_files_beside_good_ones(home: Home, tmp_path: Path) -> None:
    """Each is a problem with its reason; the others are counted, and each once it is mended."""
    root, photo = tmp_path / "set", jpeg_of(Image.new("RGB", (3, 1)))
    labels = dict.fromkeys("abcdefg", png([ROW]))
    labels["d"] = png([[*ROW, ROAD]])
    labels["e"] = sixteen_bits([CAR, ROAD, CAR * 1000 + 1])
    labels["f"] = jpeg_of(Image.new("RGB", (3, 1)))
    colours = BytesIO()
    Image.new("RGB", (3, 1)).save(colours, "PNG")
    labels["h"] = colours.getvalue()
    for name, label in labels.items():
        put(root, f"l/{name}.png", label)
        put(root, f"i/{name}.jpg", photo)
    put(root, "i/c.png", png([ROW]))
    put(root, "i/g.jpg", photo[:-9])
    put(root, "l/i.png", png([ROW]))
    source = set_layout(home, home.add(root), LAYOUT)
    result = home.scan(source)
    problems = {
        (problem.kind, problem.key): problem.reason
        for problem in recorded_problems(home.records, scan_id=result.scan)
    }
    told = {
        ("bad_file", "i/c.png"): "its frame has i/c.jpg as its image already; keep one",
        ("bad_file", "l/d.png"): "label is 4x1 pixels, its camera image 3x1",
        ("unknown_colours", "l/e.png"): "1 pixels in ids that are no class: 26001 (1)",
        ("bad_file", "l/f.png"): "is not a PNG image but a JPEG image",
        ("bad_file", "i/g.jpg"): "JPEG is truncated",
        ("bad_file", "l/h.png"): "8 bits of RGB; the layout's encoding index needs grey or",
        ("orphan", "l/i.png"): "",
    }
    assert problems.keys() == told.keys()
    for problem, words in told.items():
        assert words in problems[problem], problems[problem]
    whole = ("2", "1", "0")
    good = [("a.jpg", *whole), ("b.jpg", *whole), ("c.jpg", *whole), ("e.jpg", "1", "1", "1")]
    assert home.rows(FRAMES) == good
    (root / "i/c.png").unlink()
    for name in "dfh":
        put(root, f"l/{name}.png", png([ROW]))
    for name in "gi":
        put(root, f"i/{name}.jpg", photo)
    result = home.scan(source)
    assert home.problems(result.scan) == []
    assert [row[0] for row in home.rows(FRAMES)] == [f"{name}.jpg" for name in "abcdefghi"]


@pytest.mark.wide
def test_what_a_changed_layout_counts_anew(home: Home, tmp_path: Path) -> None:
    """A title and colours to draw nothing, keys every label; patterns of no name are refused."""
    document = dict(preset("cityscapes").document)
    source = set_layout(home, home.add(make_city(tmp_path / "city")), document)
    assert home.scan(source).counts.frames == 6
    repainted = [{**row, "colour": "#010203"} for row in document["classes"]]
    source = set_layout(home, source, {**document, "title": "Mine", "classes": repainted})
    counts = home.scan(source).counts
    assert (counts.frames, counts.changed, counts.commits) == (0, 0, 0)
    more = [*document["classes"], {"key": 200, "name": "two hundred"}]
    source = set_layout(home, source, {**document, "classes": more})
    result = home.scan(source)
    assert (result.counts.frames, home.problems(result.scan)) == (6, [])
    rows = home.rows(
        "SELECT filename, car, two_hundred FROM metaocean_view WHERE labelled = 1 ORDER BY 1"
    )
    assert rows[0] == (city_keys(1, "aachen", "train")[0].rpartition("/")[2], "1", "1")
    wrong = {**document, "images": "left/{scene}/{frame}.png", "labels": "gt/{scene}/{frame}.png"}
    source = set_layout(home, source, wrong)
    with pytest.raises(
        InvalidInput, match=r"fits none of the first 13 names.*cityscapes.*fits 12\."
    ):
        home.scan(source)
    assert len(home.rows("SELECT 1 FROM metaocean_view WHERE labelled = 1")) == 6


def test_classes_that_the_data_should_bring(home: Home, tmp_path: Path) -> None:
    """A config file that is not there, and one that is none, are said with what to do."""
    root = tmp_path / "vistas"
    put(root, "training/images/x.jpg", jpeg_of(Image.new("RGB", (3, 1))))
    put(root, "training/v2.0/labels/x.png", png([[0, 0, 1]]))
    source = home.add(root)
    with pytest.raises(
        ClassListMissing, match=r"config_v2\.0\.json: is not there.*show mapillary-2"
    ):
        home.scan(source)
    put(root, "config_v2.0.json", b'{"labels": [{"name": "a"}]}')
    with pytest.raises(InvalidInput, match=r"expected labels with name, readable and color"):
        home.scan(source)


def test_names_that_several_presets_fit(home: Home, tmp_path: Path) -> None:
    """A scan says which, and does not take the files for another data set's."""
    root = tmp_path / "set"
    for name in ("images/val/0016E5_08159.png", "labels/val/0016E5_08159.png"):
        put(root, name, png([ROW]))
    source = home.add(root)
    with pytest.raises(
        InvalidInput, match=r"camvid \(2 of 2 names\), pairs.*source set a2d2 --layout"
    ):
        home.scan(source)
    home.scan(set_layout(home, source, preset("camvid").document))
    assert home.rows("SELECT count(*) FROM metaocean_view WHERE labelled = 1") == [(1,)]
