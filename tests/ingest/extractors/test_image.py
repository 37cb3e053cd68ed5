"""Camera image statistics against their definitions, and the time of day."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image as Pictures

from ingest.extractors.image import (
    Image,
    hour_of,
    reduced_grey,
    sharpness,
    time_of_day,
)
from ingest.extractors.run import run_extractor
from tests.ingest.extractors.frames import tags_of
from tests.ingest.png_writer import Picture, encode
from tests.ingest.scene_folders import SCENE, Home, make_tree


def _png(rows: list[list[int]]) -> bytes:
    return encode(Picture([[(grey, grey, grey) for grey in row] for row in rows]))


def _slow_sharpness(grey: npt.NDArray[np.float32]) -> float:
    laplacians = []
    for y in range(1, grey.shape[0] - 1):
        for x in range(1, grey.shape[1] - 1):
            around = [grey[y - 1, x], grey[y + 1, x], grey[y, x - 1], grey[y, x + 1]]
            laplacians.append(sum(map(float, around)) - 4 * float(grey[y, x]))
    mean = sum(laplacians) / len(laplacians)
    return sum((value - mean) ** 2 for value in laplacians) / len(laplacians)


def test_small_pictures_by_hand() -> None:
    """Black is 0, white 255, and a picture below 640 pixels is not reduced."""
    rows = [[0, 255, 0, 255], [255, 0, 255, 0], [0, 255, 0, 255]]
    assert reduced_grey(_png(rows)).tolist() == rows
    assert sharpness(reduced_grey(_png([[7, 7, 7]] * 3))) == 0.0
    assert sharpness(reduced_grey(_png([[7, 9]]))) is None


def test_sharpness_is_the_laplacians_variance() -> None:
    """On a random picture the fast way gives what its definition gives."""
    grey = np.random.default_rng(3).integers(0, 256, (9, 12)).astype(np.float32)
    assert sharpness(grey) == pytest.approx(_slow_sharpness(grey))


@pytest.mark.wide
def test_sample_frames(home: Home, sample_root: Path) -> None:
    """Every committed frame's tags are those of averaging its picture with NumPy; hours fit."""
    source = home.add(sample_root)
    home.scan(source)
    counts = run_extractor(home.store, source, Image())
    assert (counts.tagged, counts.bad_files, counts.without_file) == (24, 0, 0)
    tags = ", ".join(Image.columns)
    rows = home.rows(
        f"SELECT f.path || f.filename, scene, {tags} FROM lake.main.tags_image "
        "JOIN metaocean AS f USING (fkey) JOIN lake.main.tags_frame USING (fkey) LIMIT 3"
    )
    for path, scene, *values in rows:
        with Pictures.open(str(path)) as picture:
            grey = np.asarray(picture.convert("L"), dtype=np.float64)
            factor = -(-max(picture.size) // 640)
        parts = [grey[y : y + factor, x : x + factor].mean()
                 for y in range(0, grey.shape[0], factor)
                 for x in range(0, grey.shape[1], factor)]  # fmt: skip
        slow = np.array(parts) / 255
        assert values[:2] == [
            pytest.approx(slow.mean(), abs=0.003),
            pytest.approx(slow.std(), abs=0.003),
        ]
        assert float(str(values[2])) > 0
        assert values[3:] == [int(str(scene)[9:11]), time_of_day(int(str(scene)[9:11]))]


def test_blur_lowers_sharpness_and_darkness_brightness() -> None:
    """The tags point the way their names say."""
    rng = np.random.default_rng(5)
    grey = rng.integers(100, 156, (40, 60)).astype(np.float32)
    blurred = (grey[:-1, :-1] + grey[1:, :-1] + grey[:-1, 1:] + grey[1:, 1:]) / 4
    assert (sharpness(blurred) or 0) < (sharpness(grey) or 0) / 4


def test_time_of_day() -> None:
    """Hours fall into the parts that the documentation names; a name that is no time has none."""
    parts = [time_of_day(hour) for hour in range(24)]
    assert (
        parts
        == ["night"] * 6 + ["morning"] * 6 + ["afternoon"] * 6 + ["evening"] * 3 + ["night"] * 3
    )
    assert hour_of(SCENE) == 14
    assert hour_of("20180807_995028") is None


@pytest.mark.wide
def test_a_bad_image_is_recorded(home: Home, tmp_path: Path) -> None:
    """An image damaged inside, which a scan does not see, loses its frame's tags alone."""
    root = make_tree(tmp_path / "tree", frames=2)
    image = next(root.rglob("*_camera_*_000000001.png"))
    content = bytearray(image.read_bytes())
    content[content.index(b"IDAT") + 6] ^= 0xFF
    image.write_bytes(bytes(content))
    source = home.add(root)
    home.scan(source)
    counts = run_extractor(home.store, source, Image())
    assert (counts.tagged, counts.bad_files) == (1, 1)
    assert list(tags_of(home, "image", "image_brightness")) == [2]
