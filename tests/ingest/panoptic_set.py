"""A small set of panoptic labels, and the JSON files of their segments."""

import json
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image

from ingest.labels.class_list import ClassList
from tests.ingest.scene_folders import put

CLASSES = [
    {"key": 7, "name": "road"},
    {"key": 3, "name": "car"},
    {"key": 24, "name": "person", "ignore": True},
]
LAYOUT = """
images = "images/{split}/{frame}.png"
labels = "panoptic/{split}/{frame}.png"
segments = "annotations/panoptic_{split}.json"
encoding = "panoptic"
""" + "".join(
    f"[[classes]]\nkey = {row['key']}\nname = '{row['name']}'\n"
    f"ignore = {str(row.get('ignore', False)).lower()}\n"
    for row in CLASSES
)
LISTED = ClassList.from_json({"encoding": "panoptic", "classes": CLASSES})

IDS = [[0, 1, 1, 70_000], [70_000, 70_000, 300, 9]]
"""Of frame a: void, road, car; a segment whose category is no class, and an id of no segment."""
OF_A = {1: 7, 70_000: 3, 300: 99}
TRAIN = {"a.png": OF_A, "a2.png": {5: 7}}
VAL = {"b.png": {1: 3}}


def label(ids: Sequence[Sequence[int]]) -> bytes:
    """A PNG of segment ids."""
    numbers = np.array(ids)
    samples = np.stack([numbers & 255, numbers >> 8 & 255, numbers >> 16], axis=-1)
    file = BytesIO()
    Image.fromarray(samples.astype(np.uint8)).save(file, "PNG")
    return file.getvalue()


def annotations(of_label: Mapping[str, Mapping[int, int]]) -> bytes:
    """The JSON file of these segments, with what else COCO's has."""
    rows = [
        {
            "image_id": number,
            "file_name": name,
            "segments_info": [
                {"id": each, "category_id": category, "area": 1, "bbox": [0, 0, 1, 1], "iscrowd": 0}
                for each, category in segments.items()
            ],
        }
        for number, (name, segments) in enumerate(of_label.items())
    ]
    categories = [{"id": row["key"], "name": row["name"]} for row in CLASSES]
    document = {"images": [{"id": 0}], "annotations": rows, "categories": categories}
    return json.dumps(document).encode()


def make_set(root: Path) -> Path:
    """Two frames of one split and one of another; id 1 is another category there."""
    put(root, "layout.toml", LAYOUT.encode())
    put(root, "annotations/panoptic_train.json", annotations(TRAIN))
    put(root, "annotations/panoptic_val.json", annotations(VAL))
    for frame, ids in (("train/a", IDS), ("train/a2", [[5]]), ("val/b", [[1, 1, 0]])):
        put(root, f"images/{frame}.png", label([[4] * len(ids[0])] * len(ids)))
        put(root, f"panoptic/{frame}.png", label(ids))
    return root
