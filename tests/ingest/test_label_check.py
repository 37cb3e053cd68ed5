"""What a check of labels says: unknown keys, blended edges, trainIds taken for labelIds."""

import json
from pathlib import Path

import numpy as np
import pytest

from ingest.labels.class_list import ClassList
from ingest.labels.label_check import LabelCheck
from ingest.layouts.read_layout import preset
from tests.api.servers import framesift, serving
from tests.ingest.label_sets import CAR, ROAD, city_keys, make_city, png
from tests.ingest.scene_folders import put


def classes(name: str) -> ClassList:
    class_list = preset(name).classes
    assert class_list is not None
    return class_list


def checked(class_list: ClassList, *labels: list[list[int]]) -> LabelCheck:
    check = LabelCheck(class_list)
    for number, keys in enumerate(labels):
        check.add(f"{number}.png", np.array(keys, np.int64))
    return check


def test_keys_of_no_class() -> None:
    """Pixels, labels and examples of each, most pixels first; classes that no label has."""
    own = ClassList.from_json(
        {"encoding": "index", "classes": [{"key": 1, "name": "car"}, {"key": [2, 3], "name": "sky"},
                                          {"key": 9, "name": "void", "ignore": True}]}
    )  # fmt: skip
    found = checked(own, [[1, 7, 7]], [[1, 7, 8]], [[9, 9, 7]]).to_json()
    assert found["unknown_keys"] == [
        {"key": "7", "pixels": 4, "labels": 3, "examples": ["0.png", "1.png", "2.png"]},
        {"key": "8", "pixels": 1, "labels": 1, "examples": ["1.png"]},
    ]
    assert found["classes_never_seen"] == ["sky"]
    assert found["labels_all_ignored"] == ["2.png"]
    assert (found["labels"], found["pixels"], found["suspicions"]) == (3, 9, [])


def test_blended_edges() -> None:
    """Several unknown keys, each beside others, are an edge that was blended; an area is none."""
    edge = [[1] * 6 + [40, 90, 140, 190] + [240] * 6] * 3
    area = [[1] * 6 + [40] * 40 + [90] * 40 + [140] * 40 + [190] * 40] * 3
    own = ClassList.from_json(
        {"encoding": "index", "classes": [{"key": 1, "name": "car"}, {"key": 240, "name": "sky"}]}
    )
    assert checked(own, edge).blended == ["0.png"]
    assert checked(own, area).blended == []
    assert "such as 0.png: they look resized" in checked(own, edge).suspicions[0]


@pytest.mark.parametrize(
    ("name", "keys", "words"),
    [
        ("cityscapes", [0, 13, 18, 255], "as Cityscapes' trainIds are"),
        ("cityscapes", [7, 26, 33, 0], ""),
        ("cityscapes-trainids", [7, 26, 33, 0], "as its labelIds have"),
        ("cityscapes-trainids", [0, 13, 18, 255], ""),
    ],
)
def test_ids_taken_for_others(name: str, keys: list[int], words: str) -> None:
    """Said only where the other kind of ids explains what is unknown."""
    suspicions = checked(classes(name), [keys]).suspicions
    assert [words in sentence for sentence in suspicions] == ([True] if words else [])


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ([7, 26_001, 24_000], 'encoding = "index//1000"'),
        ([26 << 8 | 1, 7 << 8, 23 << 8], 'encoding = "index//256"'),
        ([7, 26_001, 50_001], ""),
        ([7, 26, 200], ""),
    ],
)
def test_ids_of_objects(keys: list[int], words: str) -> None:
    """16-bit ids are told where every large key has a class once it is divided."""
    suspicions = checked(classes("cityscapes"), [keys]).suspicions
    assert [words in sentence for sentence in suspicions] == ([True] if words else [])


@pytest.mark.wide
def test_the_command(tmp_path: Path) -> None:
    """The labels of a scanned source, those that are gone by now, and the problems of its scan."""
    root = make_city(tmp_path / "city")
    (root / city_keys(2)[0]).unlink()
    put(root, city_keys(3)[0], png([[1]]))
    home = tmp_path / "home"
    refused = framesift(home, "labels", "check", "city")
    assert refused.returncode == 1
    assert "make one there: framesift source add" in refused.stderr
    assert "looks like cityscapes" in framesift(home, "source", "add", "city", str(root)).stdout
    assert "was never scanned" in framesift(home, "labels", "check", "city").stderr
    assert "counted 4 frames" in framesift(home, "ingest", "city").stdout
    found = json.loads(framesift(home, "labels", "check", "city", "--json").stdout)
    assert found["labels"] == 4
    assert [(row["key"], row["pixels"]) for row in found["unknown_keys"]] == [("200", 4)]
    assert {row["kind"] for row in found["problems"]} == {"orphan", "bad_file"}
    seen = {CAR, ROAD}
    named = [key.name for key in classes("cityscapes").keys if key.key not in seen]
    assert found["classes_never_seen"] == list(dict.fromkeys(named))
    with serving(home) as (url, _):
        at_server = framesift(home, "--server", url, "labels", "check", "city", "--json")
    assert json.loads(at_server.stdout) == found
    (root / city_keys(1)[1]).unlink()
    printed = framesift(home, "labels", "check", "city", "--labels", "10").stdout
    assert "3 labels read, 12 pixels" in printed
    assert "1 labels that could not be read, such as gtFine/val/ulm/" in printed
    assert "200: 3 pixels in 3 labels" in printed
