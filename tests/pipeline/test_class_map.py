"""Classes of a network as data: maps that merge and ignore label classes."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from catalog.errors import BadFile, InvalidInput, UnknownName
from ingest.labels.class_list import UNKNOWN_CLASS, ClassList, tag_name
from ingest.labels.dataset_classes import DatasetClasses
from ingest.layouts.read_layout import preset
from pipeline.prepared.label_classes import LabelClasses
from pipeline.runs.class_map import A2D2_8, MAPS, ClassMap, chosen_classes, classes_in
from sample_data.regenerate import COMMITTED_SET
from tests.training.drawn_frames import CLASS_LIST, read_class_list

TWO = {"classes": {"Ground": ["RD normal street"], "Moving thing": ["Car", "Bicycle"]}}


def test_the_eight_channels_of_a2d2() -> None:
    """Proves that they have a place for each of the 38 classes, and tags as classes have them."""
    label_classes = ClassList.from_colours(
        read_class_list(next(COMMITTED_SET.rglob("class_list.json")))
    ).classes
    map_ = chosen_classes("a2d2-8")
    assert map_ is not None
    assert (len(label_classes), len(map_.classes)) == (38, 8)
    ids = map_.ids_of(label_classes, "streets")
    assert set(ids) == {None, *range(8)}
    named = [name for labels in map_.merged.values() for name in labels] + [*map_.ignored]
    assert sorted(named) == sorted(label_classes)
    assert map_.tags == tuple(tag_name(name) for name in map_.classes)
    assert chosen_classes("all") is chosen_classes(None) is None
    with pytest.raises(InvalidInput) as refused:
        ClassMap.from_json(TWO).ids_of(label_classes, "streets")
    lacking = [name for name in label_classes if name not in ("RD normal street", "Car", "Bicycle")]
    assert ", ".join(lacking) + ", which it neither" in str(refused.value)


def test_the_nineteen_classes_of_cityscapes() -> None:
    """Proves that labelIds, trainIds, KITTI-360's ids and A2D2's classes become the same 19."""
    map_ = chosen_classes("cityscapes-19")
    assert map_ is not None
    learned: dict[str, list[int | None]] = {}
    for name in ("cityscapes", "cityscapes-trainids", "bdd100k", "kitti-360"):
        classes = preset(name).classes
        assert classes is not None
        ids = (
            LabelClasses.of(DatasetClasses.of(classes), map_, name)
            .of_label[: len(classes)]
            .tolist()
        )
        learned[name] = [class_id for class_id in ids if class_id != UNKNOWN_CLASS]
    assert learned["cityscapes"] == learned["cityscapes-trainids"] == [*range(19)]
    assert learned["bdd100k"] == [*range(19)]
    assert learned["kitti-360"] == [*range(19), 2, 4, 5]  # garage, gate, smallpole
    a2d2 = ClassList.from_colours(
        read_class_list(next(COMMITTED_SET.rglob("class_list.json")))
    ).classes
    missing = {"wall", "terrain", "rider", "bus", "train"}
    ids_of_a2d2 = {class_id for class_id in map_.ids_of(a2d2, "streets") if class_id is not None}
    assert {map_.classes[class_id] for class_id in ids_of_a2d2} == {*map_.classes} - missing


def test_labels_are_merged() -> None:
    """Proves ids, pixels and colours; unknown and ignored pixels do not count."""
    map_ = ClassMap.from_json(TWO | {"ignored": ["Sky"], "name": "two"})
    drawn = DatasetClasses.of(ClassList.from_colours(CLASS_LIST))
    classes = LabelClasses.of(drawn, map_, "drawn")
    label = np.array([[0, 1, 2, 3, UNKNOWN_CLASS]], np.uint8)  # sky, street, car, bicycle
    assert classes.merged(label).tolist() == [[UNKNOWN_CLASS, 0, 1, 1, UNKNOWN_CLASS]]
    assert (classes.tags, classes.label_tags) == (
        ("ground", "moving_thing"),
        (("rd_normal_street",), ("car", "bicycle")),
    )
    assert classes.merged_pixels(np.array([5, 7, 11, 13])).tolist() == [7, 24]
    assert classes.colours.tolist() == [[0xFF, 0, 0xFF], [0xFF, 0, 0]]
    every = LabelClasses.of(drawn, None, "drawn")
    assert every.merged(label) is label
    assert every.merged_pixels(np.array([5, 7, 11, 13])).tolist() == [5, 7, 11, 13]
    with pytest.raises(InvalidInput, match="dataset drawn has the label class Sky, which it neit"):
        LabelClasses.of(drawn, ClassMap.from_json(TWO), "drawn")
    mistaken = ClassMap.from_json({"classes": {"A": ["Car", "Bycicle"]}, "ignored": ["Sky"]})
    with pytest.raises(InvalidInput, match=r"; does Bycicle mean Bicycle\?"):
        mistaken.ids_of(["Sky", "Car", "Bicycle"], "drawn")
    blind = ClassMap.from_json({"classes": {"A": ["Tram"]}, "ignored": [*every.names]})
    with pytest.raises(InvalidInput, match="ignores every label class of dataset drawn"):
        LabelClasses.of(drawn, blind, "drawn")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "expected an object like"),
        ({"classes": {}}, "expected an object like"),
        ({**TWO, "ignore": []}, "expected an object like"),
        ({"classes": {"A": "Car"}}, "class A: expected a list of label classes"),
        ({"classes": {"A": []}}, "class A: expected a list of label classes"),
        ({"classes": {"A 1": ["Car"]}}, "'A 1' is no name of a class"),
        ({"classes": {"A": ["Car"], "a": ["Sky"]}}, "differ in upper case only"),
        ({"classes": {"Margin": ["Car"]}}, "'margin' is the name of a score"),
        ({**TWO, "ignored": ["Car"]}, "label class Car comes twice"),
        ({**TWO, "name": "a2d2-8"}, "is the name of another"),
        ({**TWO, "name": "x y"}, "is no name"),
    ],
)
def test_what_is_no_map(data: Any, message: str) -> None:
    """Proves that each is refused and named."""
    with pytest.raises(InvalidInput, match=message):
        chosen_classes(data)


def test_a_flag_gives_a_name_a_file_or_the_map_itself(tmp_path: Path) -> None:
    """Proves what a command takes, and that names alone open no file."""
    file = tmp_path / "two.json"
    file.write_text(json.dumps(TWO))
    whole = {"name": "own", **TWO, "ignored": []}
    assert classes_in(str(file)) == classes_in(json.dumps(TWO)) == whole
    assert [classes_in(name) for name in ("all", *MAPS)] == ["all", "a2d2-8", "cityscapes-19"]
    assert ClassMap.from_json(A2D2_8).as_json() == A2D2_8
    with pytest.raises(UnknownName, match="unknown class map 'a2d2-9': did you mean a2d2-8"):
        classes_in("a2d2-9")
    with pytest.raises(UnknownName):
        chosen_classes(str(file))
    file.write_text("{")
    with pytest.raises(BadFile, match="is no JSON"):
        classes_in(str(file))
