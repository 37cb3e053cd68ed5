"""Small copies of predictions: what they show, their size, and where the merge finds them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from api.frame_images.drawing import decoded_png, decoded_prediction
from pipeline.runs.small_predictions import (
    INDEX_FILE,
    LONGEST_SIDE_PX,
    MOST_BYTES,
    small_predictions,
    small_sizes,
)
from tests.training.test_merge_scores import FRAMES, write_shards
from training.merge_scores import merge
from training.validation.shard_file import read_shard, shard_path
from training.validation.small_copies import SmallCopies, small_copy

COLOURS = np.arange(3 * 38, dtype=np.uint8).reshape(38, 3)


def decoded(png: bytes) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    """The class ids of a copy, and its colours, as a server reads them."""
    return decoded_prediction(png, "copy"), np.asarray(decoded_png(png, "copy"))


@pytest.mark.parametrize("classes", [1, 2, 9, 38, 255])
@pytest.mark.parametrize("size", [(1208, 1920), (900, 300), (64, 96), (1, 1), (481, 3)])
def test_a_copy_has_the_nearest_pixels(size: tuple[int, int], classes: int) -> None:
    """At the longest side or smaller, each the one in the middle of its place; ids and colours."""
    height, width = size
    ids = (np.add.outer(np.arange(height) // 50, np.arange(width) // 40) % classes).astype(np.uint8)
    colours = np.random.default_rng(1).integers(0, 256, (classes, 3), np.uint8)
    small, rgb = decoded(small_copy(ids, colours))
    assert max(small.shape) == min(LONGEST_SIDE_PX, max(size))
    rows = [int((y + 0.5) * height / small.shape[0]) for y in range(small.shape[0])]
    columns = [int((x + 0.5) * width / small.shape[1]) for x in range(small.shape[1])]
    assert (small == ids[np.ix_(rows, columns)]).all()
    assert (rgb == colours[small]).all()


def test_noise_has_a_smaller_copy() -> None:
    """Of few bytes, at half the side and so on: an untrained network fills no disk."""
    noise = np.random.default_rng(0).integers(0, 38, (1208, 1920), np.uint8)
    copy = small_copy(noise, COLOURS)
    assert len(copy) <= MOST_BYTES
    small, _ = decoded(copy)
    sizes = [(one.height_px, one.width_px) for one in small_sizes(*noise.shape)]
    assert small.shape in sizes[1:]


def test_the_merge_says_where_the_copies_lie(tmp_path: Path) -> None:
    """Of shards that keep them, in an index; another release's shard has none, nor has a merge."""
    write_shards(tmp_path, 3)
    for shard in range(2):
        result = read_shard(shard_path(tmp_path, shard, 3))
        small = SmallCopies.of([f"copy of {frame.fkey}".encode() for frame in result.frames])
        replace(result, small=small).write(tmp_path)
    out, fkeys = tmp_path / "out", [f"f{row}" for row in range(FRAMES)]
    report = merge(tmp_path, 3, out)
    places = small_predictions(out, [*fkeys, "another"])
    assert sorted(places) == [fkey for fkey in fkeys if int(fkey[1:]) % 3 < 2]
    for fkey, place in places.items():
        content = (tmp_path / place.file).read_bytes()
        assert content[place.offset : place.offset + place.size] == f"copy of {fkey}".encode()
    write_shards(tmp_path, 3)
    assert merge(tmp_path, 3, out) == report
    assert not (out / INDEX_FILE).exists()
    assert small_predictions(out, fkeys) == {}
