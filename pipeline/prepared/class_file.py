"""classes.json: classes, their ids and colours, for programs that know nothing of Framesift.

    {"classes": [{"id": 0, "name": "Car", "tag": "car", "colour": "#ff0000",
                  "colours": ["#ff0000", "#c80000"]}, ...],
     "unknown": 255}

`colour` is the one to draw a class with, `colours` are all those of its pixels in label images;
`unknown` is the class id of every other colour. framesift.data.Classes reads it.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from catalog.storage.atomic_write import atomic_write
from ingest.labels.palette import UNKNOWN_CLASS, Palette

CLASSES_FILE = "classes.json"


def write_class_file(folder: Path, class_list: Mapping[str, str]) -> Path:
    """Write the classes of a class list into a folder; the file."""
    path = folder / CLASSES_FILE
    atomic_write(path, class_text(class_list))
    return path


def class_text(class_list: Mapping[str, str]) -> str:
    """The text of classes.json."""
    palette = Palette.from_class_list(class_list)
    rows = []
    for class_id, (name, tag) in enumerate(zip(palette.classes, palette.tags, strict=True)):
        colours = [
            f"#{colour:06x}" for colour, of in palette.class_of_colour.items() if of == class_id
        ]
        rows.append(
            {"id": class_id, "name": name, "tag": tag, "colour": colours[0], "colours": colours}
        )
    return json.dumps({"classes": rows, "unknown": UNKNOWN_CLASS}, ensure_ascii=False)
