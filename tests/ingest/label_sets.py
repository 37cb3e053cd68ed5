"""Small data sets of other layouts than A2D2's, made for a test: two trees, labels as ids."""

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image

from tests.ingest.scene_folders import put

ROAD, PERSON, CAR, VOID = 7, 24, 26, 0
"""Ids of Cityscapes' classes."""


def png(ids: Sequence[Sequence[int]]) -> bytes:
    """A grey PNG with these samples."""
    file = BytesIO()
    Image.fromarray(np.array(ids, np.uint8)).save(file, "PNG")
    return file.getvalue()


def city_keys(number: int, scene: str = "ulm", split: str = "val") -> tuple[str, str]:
    """Keys of image and label of a frame, as Cityscapes names them."""
    stem = f"{split}/{scene}/{scene}_000001_{number:06}"
    return f"leftImg8bit/{stem}_leftImg8bit.png", f"gtFine/{stem}_gtFine_labelIds.png"


def add_city_frame(
    root: Path, number: int, ids: Sequence[int], scene: str = "ulm", split: str = "val"
) -> None:
    """An image and its label of one row of pixels."""
    image, label = city_keys(number, scene, split)
    put(root, image, png([[9] * len(ids)]))
    put(root, label, png([ids]))


def make_city(root: Path) -> Path:
    """Two scenes of two splits: frame n of each has n pixels of car, one of road, one of none."""
    for scene, split in (("ulm", "val"), ("aachen", "train")):
        for number in (1, 2, 3):
            add_city_frame(root, number, [CAR] * number + [ROAD, 200], scene, split)
    put(root, "gtFine/val/ulm/ulm_000001_000001_gtFine_polygons.json", b"{}")
    return root
