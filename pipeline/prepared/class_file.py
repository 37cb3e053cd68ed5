"""classes.json: classes, their ids and colours, for programs that know nothing of Framesift.

    {"classes": [{"id": 0, "name": "Car", "tag": "car", "colour": "#ff0000",
                  "colours": ["#ff0000", "#c80000"]}, ...],
     "unknown": 255}

`colour` is the one to draw a class with, `colours` are all those of its pixels in label images;
`unknown` is the class id of every other colour. Of labels that are numbers, `encoding` is theirs,
and `keys` are the numbers of each class. Where sources have different class lists, their labels
lie below different folders, and no class has colours or keys:

    {"classes": [{"id": 0, "name": "Car", "tag": "car", "colour": "#ff0000"}, ...], "unknown": 255,
     "labels": [{"below": ["/data/camvid"], "encoding": "index", "ids": {"9": 0, ...}}, ...]}

framesift.data.Classes reads it.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from catalog.storage.atomic_write import atomic_write
from ingest.labels.class_list import UNKNOWN_CLASS, ClassList
from ingest.labels.dataset_classes import DatasetClasses

CLASSES_FILE = "classes.json"


def write_class_file(
    folder: Path, classes: DatasetClasses, roots: Mapping[str, str] | None = None
) -> Path:
    """Write the classes of a dataset into a folder; the file.

    Args:
        roots: Folder of each source; None for frames that are decoded already, whose `labels` of
            several class lists are none.
    """
    path = folder / CLASSES_FILE
    atomic_write(path, class_text(classes, roots))
    return path


def class_text(classes: DatasetClasses, roots: Mapping[str, str] | None = None) -> str:
    """The text of classes.json."""
    rows: list[dict[str, Any]] = []
    for class_id, (name, tag) in enumerate(zip(classes.names, classes.tags, strict=True)):
        red, green, blue = classes.class_colours[class_id].tolist()
        colour = f"#{red:02x}{green:02x}{blue:02x}"
        rows.append({"id": class_id, "name": name, "tag": tag, "colour": colour})
    content: dict[str, Any] = {"classes": rows, "unknown": UNKNOWN_CLASS}
    if len(classes.lists) == 1:
        _add_keys(content, classes.lists[0])
    else:
        content["labels"] = (
            []
            if roots is None
            else [
                {
                    "below": [roots[source] for source in sources],
                    "encoding": class_list.encoding.text,
                    "ids": _ids(class_list, classes),
                }
                for class_list, sources in zip(classes.lists, classes.sources, strict=True)
            ]
        )
    for class_id in sorted(classes.ignored):
        rows[class_id]["ignore"] = True
    return json.dumps(content, ensure_ascii=False)


def _add_keys(content: dict[str, Any], class_list: ClassList) -> None:
    """Add the keys of the only class list, whose class ids are the dataset's."""
    encoding = class_list.encoding
    for row in content["classes"]:
        keys = [key for key, of in class_list.class_of_key.items() if of == row["id"]]
        if encoding.is_colour:
            row["colours"] = [encoding.key_text(key) for key in keys]
        else:
            row["keys"] = keys
    if not encoding.is_colour:
        content["encoding"] = encoding.text


def _ids(class_list: ClassList, classes: DatasetClasses) -> dict[str, int]:
    """The dataset's class id of each key of a class list, as text."""
    ids, encoding = classes.ids(class_list), class_list.encoding
    return {encoding.key_text(key): int(ids[of]) for key, of in class_list.class_of_key.items()}
