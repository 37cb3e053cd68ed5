"""The classes that a network learns, as data: label classes merged, or ignored. A leaf."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catalog.errors import BadFile, InvalidInput, UnknownName
from catalog.storage.bounded_file import parsed_json, read_bounded
from pipeline.runs.score_thresholds import WHOLE_SCORES

if TYPE_CHECKING:  # which imports NumPy
    from ingest.labels.dataset_classes import DatasetClasses

ALL = "all"
"""The name of no map: each label class is a class of the network."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*( [A-Za-z0-9]+)*")
_LONGEST_NAME = 64
_MOST_CLASSES = 255
_MOST_SHOWN = 64
_MOST_BYTES = 1 << 20

_RESERVED = {*WHOLE_SCORES, "fkey", "row", "picture", "uncertainty", "margin"}
"""Columns of scores beside those of classes."""

A2D2_8: Mapping[str, Any] = {
    "name": "a2d2-8",
    "classes": {
        "Road": [
            "RD normal street", "Drivable cobblestone", "Slow drive area", "Parking area",
            "RD restricted area", "Zebra crossing", "Solid line", "Dashed line",
            "Painted driv. instr.", "Speed bumper",
        ],
        "Roadside": ["Sidewalk", "Curbstone", "Non-drivable street"],
        "Structure": ["Buildings", "Grid structure", "Sidebars", "Road blocks"],
        "Traffic object": [
            "Traffic signal", "Traffic sign", "Irrelevant signs", "Signal corpus",
            "Electronic traffic", "Traffic guide obj.", "Poles", "Obstacles / trash",
        ],
        "Nature": ["Nature object"],
        "Sky": ["Sky"],
        "Vehicle": ["Car", "Bicycle", "Truck", "Small vehicles", "Utility vehicle", "Tractor"],
        "Person or animal": ["Pedestrian", "Animals"],
    },
    "ignored": ["Ego car", "Blurred area", "Rain dirt"],
}  # fmt: skip
"""A2D2's 38 classes as 8 channels.

The published run had 8 channels ("a2d2_8channel") and did not print which. These are the seven
categories of Cityscapes, with what the car may drive on apart from the ground beside it. Ignored is
what shows the camera and its car, and nothing of the world.

Source: Cordts et al., arXiv:1604.01685, table 1 (categories).
"""

CITYSCAPES_19: Mapping[str, Any] = {
    "name": "cityscapes-19",
    "classes": {
        "road": [
            "road", "RD normal street", "Drivable cobblestone", "Slow drive area",
            "RD restricted area", "Zebra crossing", "Solid line", "Dashed line",
            "Painted driv. instr.", "Speed bumper",
        ],
        "sidewalk": ["sidewalk", "Sidewalk", "Curbstone"],
        "building": ["building", "garage", "Buildings"],
        "wall": ["wall"],
        "fence": ["fence", "gate", "Grid structure", "Sidebars"],
        "pole": ["pole", "smallpole", "Poles"],
        "traffic light": ["traffic light", "Traffic signal", "Signal corpus"],
        "traffic sign": ["traffic sign", "Traffic sign"],
        "vegetation": ["vegetation", "Nature object"],
        "terrain": ["terrain"],
        "sky": ["sky", "Sky"],
        "person": ["person", "Pedestrian"],
        "rider": ["rider"],
        "car": ["car", "Car"],
        "truck": ["truck", "Truck", "Utility vehicle"],
        "bus": ["bus"],
        "train": ["train"],
        "motorcycle": ["motorcycle", "Small vehicles"],
        "bicycle": ["bicycle", "Bicycle"],
    },
    "ignored": [
        "Parking area", "Non-drivable street", "Irrelevant signs", "Road blocks", "Tractor",
        "Obstacles / trash", "Animals", "Electronic traffic", "Traffic guide obj.", "Ego car",
        "Blurred area", "Rain dirt",
    ],
}  # fmt: skip
"""Cityscapes' 19 classes that are scored, of Cityscapes, ACDC, KITTI, KITTI-360, BDD100K and A2D2.

What the layouts of these ignore is ignored. Which of A2D2's classes is which is our judgement: A2D2
has no rider, bus, train, wall or terrain of its own.

Source: mcordts/cityscapesScripts helpers/labels.py (trainId); autonomousvision/kitti360Scripts
helpers/labels.py for garage, gate and smallpole.
"""

MAPS: Mapping[str, Mapping[str, Any]] = {"a2d2-8": A2D2_8, "cityscapes-19": CITYSCAPES_19}


@dataclass(frozen=True)
class ClassMap:
    """A map from label classes to the classes of a network."""

    name: str
    """Its name."""
    merged: Mapping[str, Sequence[str]]
    """Label classes of each class of the network, in the order of its channels."""
    ignored: Sequence[str]
    """Label classes whose pixels do not count."""

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the network's classes; a class id is a position here."""
        return tuple(self.merged)

    @property
    def tags(self) -> tuple[str, ...]:
        """For each class its tag name, such as "traffic_object"."""
        return tuple(name.lower().replace(" ", "_") for name in self.merged)

    @property
    def digest(self) -> str:
        """The digest that tells it from other maps, whatever their names."""
        return hashlib.sha256(json.dumps(self.as_json()).encode()).hexdigest()

    def ids_of(
        self, label_classes: Iterable[str], dataset: str, left_out: Iterable[str] = ()
    ) -> list[int | None]:
        """For each label class the id of its class in the network; None where it is ignored.

        Args:
            left_out: Label classes that are ignored where the map does not name them.

        Raises:
            InvalidInput: The map has no place for one of them, or ignores all.
        """
        ids: dict[str, int | None] = dict.fromkeys((*left_out, *self.ignored))
        ids |= {label: n for n, of in enumerate(self.merged.values()) for label in of}
        classes = list(label_classes)
        if lacking := [name for name in classes if name not in ids]:
            raise InvalidInput(
                f"class map {self.name}: dataset {dataset} has the label class"
                f"{'es' if len(lacking) > 1 else ''} {', '.join(lacking[:_MOST_SHOWN])}"
                f"{'...' if len(lacking) > _MOST_SHOWN else ''}, which it neither merges nor "
                'ignores: give each a class, or name it under "ignored"'
                f"{_near(lacking, ids.keys() - {*classes})}"
            )
        result = [ids[name] for name in classes]
        if all(each is None for each in result):
            raise InvalidInput(
                f"class map {self.name}: ignores every label class of dataset {dataset}: merge one "
                "at least, or nothing can be learned"
            )
        return result

    def ids_in(self, classes: "DatasetClasses", dataset: str) -> list[int | None]:
        """For each class of a dataset the id of its class in the network; None where it is ignored.

        Each class list's classes go where the map puts their names.

        Raises:
            InvalidInput: As `ids_of`, or the map parts classes of several lists that share a tag.
        """
        ids: dict[str, int | None] = {}
        names: dict[str, str] = {}
        for class_list in classes.lists:
            words = classes.words(dataset, class_list)
            of_list = self.ids_of(class_list.classes, words, class_list.left_out)
            for tag, name, class_id in zip(
                class_list.tags, class_list.classes, of_list, strict=True
            ):
                if ids.setdefault(tag, class_id) != class_id:
                    raise InvalidInput(
                        f"class map {self.name}: dataset {words} has {name}, which shares the tag "
                        f"{tag} with {names[tag]} of another source, and the map does not put both "
                        "into one class; merge or ignore both"
                    )
                names.setdefault(tag, name)
        return [ids[tag] for tag in classes.tags]

    def as_json(self) -> dict[str, Any]:
        """The map as `from_json` reads it."""
        merged = {name: list(labels) for name, labels in self.merged.items()}
        return {"name": self.name, "classes": merged, "ignored": list(self.ignored)}

    @classmethod
    def from_json(cls, data: Any) -> "ClassMap":
        """The map that a JSON object says, with ``classes``, ``ignored`` and ``name``.

        Raises:
            InvalidInput: It is no map, a name cannot be, or a label class comes twice.
        """
        form = '{"classes": {"Vehicle": ["Car", "Truck"], ...}, "ignored": ["Ego car"]}'
        if not isinstance(data, Mapping) or data.keys() - {"name", "classes", "ignored"}:
            raise InvalidInput(f"class map: expected an object like {form}")
        merged, ignored = data.get("classes"), data.get("ignored", [])
        if not isinstance(merged, Mapping) or not merged or not _are_names(ignored):
            raise InvalidInput(f"class map: expected an object like {form}")
        name = data.get("name", "own")
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
            raise InvalidInput(f"class map: {ascii(name)[:40]} is no name; expected one like own-8")
        if name in MAPS and data != MAPS[name]:
            raise InvalidInput(f"class map: '{name}' is the name of another; give yours a new one")
        if len(merged) > _MOST_CLASSES:
            raise InvalidInput(f"class map {name}: {len(merged)} classes; expected at most 255")
        for each, labels in merged.items():
            _check_class(name, each, labels)
        result = cls(name, {n: tuple(labels) for n, labels in merged.items()}, tuple(ignored))
        every = [label for labels in result.merged.values() for label in labels] + [*ignored]
        if twice := sorted({label for label in every if every.count(label) > 1}):
            raise InvalidInput(f"class map {name}: label class {twice[0]} comes twice")
        if reserved := _RESERVED & {*result.tags}:
            raise InvalidInput(f"class map {name}: '{min(reserved)}' is the name of a score")
        if len(set(result.tags)) < len(result.tags):
            raise InvalidInput(f"class map {name}: two classes differ in upper case only")
        return result


def chosen_classes(chosen: str | Mapping[str, Any] | None) -> ClassMap | None:
    """The map of that name, or that an object says; None for all label classes.

    Raises:
        UnknownName: It is no map's name.
        InvalidInput: The object is no map.
    """
    if chosen is None or chosen == ALL:
        return None
    if isinstance(chosen, str):
        if chosen not in MAPS:
            raise UnknownName("class map", chosen, (ALL, *MAPS))
        chosen = MAPS[chosen]
    return ClassMap.from_json(chosen)


def classes_in(text: str) -> str | Mapping[str, Any]:
    """The argument of `chosen_classes`, of a flag's text: a name, a map's JSON, or its file.

    Raises:
        UnknownName: It is no map's name, and no file's.
        BadFile: The file cannot be read, or is no JSON.
        InvalidInput: The value is no class map.
    """
    if text == ALL or text in MAPS:
        return text
    path = Path("--classes" if text.lstrip().startswith("{") else text)
    try:
        inline = text.lstrip().startswith("{")
        data = parsed_json(text.encode() if inline else read_bounded(path, _MOST_BYTES))
        return ClassMap.from_json(data).as_json()
    except FileNotFoundError as error:
        raise UnknownName("class map", text, (ALL, *MAPS), "Or name a JSON file.") from error
    except OSError as error:
        raise BadFile(error.strerror or "cannot be read", text) from error
    except ValueError as error:
        raise BadFile(f"is no JSON: {error}", str(path)) from error


def _near(lacking: Sequence[str], unknown: Iterable[str]) -> str:
    """The question whether names of the map that the dataset has not mean those that it lacks."""
    names = sorted(unknown)
    pairs = [(each, get_close_matches(each, names, 1)) for each in lacking]
    meant = [f"{near[0]} mean {each}" for each, near in pairs if near]
    return f"; does {' and '.join(meant[:3])}?" if meant else ""


def _check_class(name: str, each: Any, labels: Any) -> None:
    fits = isinstance(each, str) and len(each) <= _LONGEST_NAME and _NAME.fullmatch(each)
    # Label lists number instances with one digit behind a blank (ingest.labels.class_list).
    if not fits or re.search(r" \d$", each):
        raise InvalidInput(
            f"class map {name}: {ascii(each)[:40]} is no name of a class; expected letters, digits "
            "and single blanks, not ending in a blank and one digit"
        )
    if not _are_names(labels) or not labels:
        raise InvalidInput(f"class map {name}: class {each}: expected a list of label classes")


def _are_names(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(name, str) and 0 < len(name) <= 128 and name.isprintable() for name in value
    )
