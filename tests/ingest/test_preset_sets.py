"""A small set of every preset, by its names and in its encoding: counts by construction."""

import json
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from catalog.records.sources import recorded_source
from catalog.records.tables import Source
from ingest.labels.class_list import ClassList
from ingest.layouts.layout import Layout
from ingest.layouts.read_layout import layout_of, preset, preset_names
from tests.ingest.scene_folders import Home, put
from tests.ingest.test_layouts import EXAMPLES

OWN = [{"key": 3, "name": "car"}, {"key": 4, "name": "road"}, {"key": 255, "name": "void"}]
CONFIG = {
    "labels": [
        {
            "name": f"object--{name}",
            "readable": name,
            "color": [n, 0, 0],
            "evaluate": name != "Void",
        }
        for n, name in enumerate(("Bird", "Car", "Void"))
    ]
}
COLOURS = {"#ff0000": "Car 1", "#c80000": "Car 2", "#00ff00": "Bicycle 1", "#87ceff": "Sky"}


def label(layout: Layout, keys: list[int]) -> bytes:
    """A label of one row of pixels with these keys, in the layout's encoding."""
    encoding, file = layout.encoding, BytesIO()
    samples = np.array([keys])
    if encoding.is_colour:
        rgb = np.stack([samples >> 16, samples >> 8 & 255, samples & 255], axis=2)
        Image.fromarray(rgb.astype(np.uint8)).save(file, "PNG")
    elif encoding.divisor > 1:
        objects = samples * encoding.divisor + (samples > 0)
        Image.fromarray(np.where(objects < 2**16, objects, samples).astype(np.uint16)).save(
            file, "PNG"
        )
    else:
        Image.fromarray(samples.astype(np.uint8)).save(file, "PNG")
    return file.getvalue()


def classes_of(layout: Layout, root: Path) -> ClassList:
    """The set's classes; where its makers ship a file of them, that file is written."""
    if layout.classes is not None:
        return layout.classes
    if layout.encoding.is_colour:
        put(root, layout.document["class_list_files"][0], json.dumps(COLOURS).encode())
        return ClassList.from_colours(COLOURS)
    put(root, layout.document["class_file"], json.dumps(CONFIG).encode())
    names = [row["readable"] for row in CONFIG["labels"]]
    return ClassList.from_json(
        {"encoding": "index", "classes": [{"key": n, "name": s} for n, s in enumerate(names)]}
    )


@pytest.mark.parametrize("name", preset_names())
def test_a_set_of_each_preset(home: Home, tmp_path: Path, name: str) -> None:
    """Frame, tags of names and pixels of each class are as they were made; nothing is wrong."""
    layout = preset(name)
    if layout.classes is None and not {"class_list_files", "class_file"} & {*layout.document}:
        layout = layout_of({**layout.document, "classes": OWN}, name)
    root = tmp_path / "set"
    classes = classes_of(layout, root)
    keys = [key.key for key in classes.keys][:200]
    row = [key for n, key in enumerate(keys) for _ in range(1 + n % 3)]
    image_key, label_key = EXAMPLES[name]
    image = BytesIO()
    Image.new("RGB", (len(row), 1)).save(image, "PNG")
    put(root, image_key, image.getvalue())
    put(root, label_key, label(layout, row))
    source = home.add(root)
    with home.records.session() as session:
        session.get_one(Source, source.id).layout = dict(layout.document)
    result = home.scan(recorded_source(home.records, source.name))
    assert home.problems(result.scan) == []
    assert result.counts.frames == 1
    expected = dict.fromkeys(classes.tags, 0)
    for key in row:
        expected[classes.tags[classes.class_of_key[key]]] += 1
    columns = ", ".join(f'"{tag}"' for tag in (*classes.tags, *layout.tags))
    ((*values, unknown),) = home.rows(
        f"SELECT {columns}, unknown_pixels FROM metaocean_view WHERE labelled = 1"
    )
    counted = dict(zip(classes.tags, values, strict=False))
    assert counted == {tag: str(pixels) for tag, pixels in expected.items()}
    assert unknown == "0"
    frame = layout.parse(image_key)
    assert frame is not None
    assert tuple(values[len(classes.tags) :]) == frame.frame.tags
