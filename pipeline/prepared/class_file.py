"""classes.json: classes, their ids and colours, for programs that know nothing of Framesift.

    {"classes": [{"id": 0, "name": "Car", "tag": "car", "colour": "#ff0000",
                  "colours": ["#ff0000", "#c80000"]}, ...],
     "unknown": 255}

`colour` is the one to draw a class with, `colours` are all those of its pixels in label images;
`unknown` is the class id of every other colour. framesift.data.Classes reads it.
"""

import json
from pathlib import Path

from catalog.storage.atomic_write import atomic_write
from ingest.labels.class_list import UNKNOWN_CLASS, ClassList

CLASSES_FILE = "classes.json"


def write_class_file(folder: Path, class_list: ClassList) -> Path:
    """Write the classes of a class list into a folder; the file."""
    path = folder / CLASSES_FILE
    atomic_write(path, class_text(class_list))
    return path


def class_text(class_list: ClassList) -> str:
    """The text of classes.json."""
    encoding = class_list.encoding
    rows = []
    for class_id, (name, tag) in enumerate(zip(class_list.classes, class_list.tags, strict=True)):
        red, green, blue = class_list.class_colours[class_id].tolist()
        row = {
            "id": class_id,
            "name": name,
            "tag": tag,
            "colour": f"#{red:02x}{green:02x}{blue:02x}",
        }
        keys = [key for key, of in class_list.class_of_key.items() if of == class_id]
        if encoding.is_colour:
            row["colours"] = [encoding.key_text(key) for key in keys]
        else:
            row["keys"] = keys
        if class_id in class_list.ignored:
            row["ignore"] = True
        rows.append(row)
    content = {"classes": rows, "unknown": UNKNOWN_CLASS}
    if not encoding.is_colour:
        content["encoding"] = encoding.text
    return json.dumps(content, ensure_ascii=False)
