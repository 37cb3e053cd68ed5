"""Annotations made into labels: each format pixel by pixel, order, holes, what is wrong, resume."""

import base64
import json
import os
import signal
import time
import tomllib
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from pycocotools import mask as coco_mask

from catalog.errors import BadFile, InvalidInput
from ingest.conversion import convert as conversion
from ingest.conversion.annotations import AnnotatedFrame, Shape
from ingest.conversion.convert import Conversion, convert
from ingest.conversion.paint import painted
from ingest.conversion.run_lengths import coco_runs, mask_of
from tests.api.servers import framesift
from tests.ingest.label_sets import make_city, png

BLANK = [[0] * 6] * 4
"""A camera image of 6 x 4 pixels."""


def put_json(path: Path, document: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))
    return path


def put_image(path: Path, rows: Sequence[Sequence[int]] = BLANK) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(png(rows))


def label(path: Path) -> list[str]:
    """A label's keys, a digit each, row by row."""
    return ["".join(map(str, row)) for row in np.asarray(Image.open(path)).tolist()]


def layout(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "layout.toml").read_text())


def keys(root: Path) -> dict[str, int]:
    return {row["name"]: row["key"] for row in layout(root)["classes"]}


def reasons(done: Conversion) -> list[tuple[str, str]]:
    assert {problem.kind for problem in done.problems} <= {"bad_file"}
    return [(problem.key.rpartition("/")[2], problem.reason) for problem in done.problems]


def box(left: int, top: int, right: int, bottom: int) -> list[int]:
    """Corners of a rectangle, as [x, y, ...]."""
    return [left, top, right, top, right, bottom, left, bottom]


def pairs(corners: Sequence[int]) -> list[list[int]]:
    return [[*each] for each in zip(corners[::2], corners[1::2], strict=True)]


COCO = {
    "categories": [{"id": 1, "name": "car"}, {"id": 2, "name": "sky", "color": [1, 2, 255]}],
    "images": [
        {"id": number, "file_name": name, "width": 6, "height": 4}
        for number, name in enumerate(
            ["order.png", "hole.png", "empty.png", "other.png", "bad.png", "small.png"]
        )
    ],
    "annotations": [
        # The small one comes first, and lies above the large one; the crowd lies below all.
        {"id": 10, "image_id": 0, "category_id": 1, "segmentation": [box(1, 1, 3, 3)]},
        {"id": 11, "image_id": 0, "category_id": 2, "segmentation": [box(0, 0, 5, 4)]},
        {
            "id": 12, "image_id": 0, "category_id": 1, "iscrowd": 1,
            "segmentation": {"size": [4, 6], "counts": [0, 24]},
        },
        {"id": 13, "image_id": 0, "category_id": 1, "segmentation": []},
        # A ring around one pixel; columns of four pixels.
        {
            "id": 14, "image_id": 1, "category_id": 2,
            "segmentation": {"size": [4, 6], "counts": [4, 3, 1, 1, 1, 1, 1, 3, 9]},
        },
        {"id": 15, "image_id": 3, "category_id": 7, "segmentation": [box(0, 0, 2, 2)]},
        {
            "id": 16, "image_id": 4, "category_id": 1,
            "segmentation": {"size": [4, 6], "counts": [3, 2]},
        },
        {"id": 17, "image_id": 99, "category_id": 1, "segmentation": [box(0, 0, 2, 2)]},
    ],
}  # fmt: skip


def test_coco(tmp_path: Path) -> None:
    """Crowds below, then by area; run lengths with a hole; what cannot be used has no label."""
    annotations = put_json(tmp_path / "a.json", COCO)
    for name in ("order", "hole", "other", "bad"):
        put_image(tmp_path / f"images/{name}.png")
    put_image(tmp_path / "images/small.png", [[0] * 6] * 3)
    done = convert("coco", [annotations], tmp_path, tmp_path / "images")
    labels = tmp_path / "labels/images"
    assert label(labels / "order.png") == ["222221", "211221", "211221", "222221"]
    assert label(labels / "hole.png") == ["022200", "020200", "022200", "000000"]
    assert label(labels / "empty.png") == ["000000"] * 4
    assert reasons(done) == [
        ("other.png", "annotation 1 of the image: category_id 7: no category has this id"),
        ("bad.png", "shape 1: run lengths add up to 5 pixels; expected 24"),
        ("small.png", "the image is 6 x 3 pixels, and 6 x 4 by the annotations"),
        ("a.json", "1 annotations of image_id 99, which no image has"),
    ]
    assert (done.written, done.unchanged, done.images_missing) == (3, 0, 1)
    assert done.left_out == {"annotations without segmentation": 1}
    assert sorted(path.name for path in labels.iterdir()) == ["empty.png", "hole.png", "order.png"]
    assert layout(tmp_path) == {
        "images": "images/**/{frame}.{jpg,jpeg,png,JPG,JPEG,PNG}",
        "labels": "labels/images/**/{frame}.png",
        "encoding": "index",
        "classes": [
            {"key": 1, "name": "car"},
            {"key": 2, "name": "sky", "colour": "#0102ff"},
            {"key": 0, "name": "unlabeled", "colour": "#000000", "ignore": True},
        ],
    }


def test_ids_beyond_eight_bits(tmp_path: Path) -> None:
    """An id of 300 makes labels of 16 bits; where 0 is a class's, another key says no class."""
    document = {
        "categories": [{"id": 0, "name": "car"}, {"id": 300, "name": "sky"}],
        "frames": [
            {
                "file_name": "a.jpg", "width": 3, "height": 2,
                "segments": [
                    {"category_id": 300, "rle": {"size": [2, 3], "counts": [2, 4]}},
                    {"category_id": 0, "rle": {"size": [2, 3], "counts": "41"}},
                ],
            },
            {"file_name": "../a.jpg", "width": 3, "height": 2, "segments": []},
            {"file_name": "a.png", "width": 3, "height": 2, "segments": []},
        ],
    }  # fmt: skip
    runs = coco_mask.frPyObjects({"size": [2, 3], "counts": [4, 1, 1]}, 2, 3)
    document["frames"][0]["segments"][1]["rle"]["counts"] = runs["counts"].decode()  # type: ignore[index]
    done = convert("rle-json", [put_json(tmp_path / "a.json", document)], tmp_path)
    image = Image.open(tmp_path / "labels/a.png")
    assert image.mode == "I;16"
    assert np.asarray(image).tolist() == [[65535, 300, 0], [65535, 300, 300]]
    assert keys(tmp_path) == {"car": 0, "sky": 300, "unlabeled": 65535}
    assert reasons(done) == [
        ("a.jpg", "is no path below the images' folder, such as scene/0001.jpg"),
        ("a.png", "another frame of the annotations has the same label, labels/a.png"),
    ]


def test_coco_panoptic(tmp_path: Path) -> None:
    """Segments by their ids R + 256 G + 65536 B; one that the JSON lacks leaves the frame out."""
    segments = np.zeros((2, 3, 3), np.uint8)
    segments[0, 1:] = (5, 1, 2)
    segments[1, 2] = (7, 0, 0)
    images = [{"id": n, "file_name": f"{n}.jpg", "width": 3, "height": 2} for n in range(3)]
    rows = [{"id": 5 + 256 + 2 * 65536, "category_id": 9}, {"id": 7, "category_id": 4}]
    document = {
        "categories": [{"id": 9, "name": "car"}, {"id": 4, "name": "sky"}],
        "images": images,
        "annotations": [
            {"image_id": 0, "file_name": "0.png", "segments_info": rows},
            {"image_id": 1, "file_name": "0.png", "segments_info": rows[:1]},
        ],
    }
    annotations = put_json(tmp_path / "panoptic_val.json", document)
    (tmp_path / "panoptic_val").mkdir()
    Image.fromarray(segments).save(tmp_path / "panoptic_val/0.png")
    done = convert("coco-panoptic", [annotations], tmp_path)
    assert label(tmp_path / "labels/0.png") == ["099", "004"]
    assert done.left_out == {"images without annotation": 1}
    [(name, reason)] = reasons(done)
    assert name == "1.jpg"
    assert reason.endswith("panoptic_val/0.png: segment 7 is not in segments_info")


def test_cityscapes_polygons(tmp_path: Path) -> None:
    """In the file's order; groups, deleted objects, license plates; beyond the image's edges."""

    def put(number: int, *objects: Mapping[str, Any]) -> None:
        name = f"gtFine/val/ulm/ulm_000001_{number:06}_gtFine_polygons.json"
        put_json(tmp_path / name, {"imgWidth": 6, "imgHeight": 4, "objects": objects})

    put(
        1,
        {"label": "sky", "polygon": pairs(box(-9, -9, 99, 1))},
        {"label": "bicyclegroup", "polygon": pairs(box(1, 1, 3, 2)), "deleted": 0},
        {"label": "polegroup", "polygon": pairs(box(3, 2, 5, 3))},
        {"label": "road", "polygon": pairs(box(0, 0, 5, 3)), "deleted": 1},
        {"label": "license plate", "polygon": pairs(box(0, 0, 5, 3))},
    )
    put(2, {"label": "sky", "polygon": pairs(box(0, 0, 1, 1))}, {"label": "moon", "polygon": []})
    put(3, {"label": "sky", "polygon": [[0, 0], [1, float("nan")], [2, 2]]})
    broken = tmp_path / "gtFine/val/ulm/ulm_000001_000004_gtFine_polygons.json"
    broken.write_text('{"imgWidth": 6, ')
    put_image(tmp_path / "leftImg8bit/val/ulm/ulm_000001_000001_leftImg8bit.png")
    done = convert("cityscapes-polygons", [tmp_path / "gtFine"], tmp_path)
    made = Image.open(tmp_path / "labels/val/ulm/ulm_000001_000001_labelIds.png")
    assert np.asarray(made).tolist() == [
        [23, 23, 23, 23, 23, 23],
        [23, 33, 33, 33, 23, 23],
        [0, 33, 33, 18, 18, 18],
        [0, 0, 0, 18, 18, 18],
    ]
    found = reasons(done)
    assert found[0] == (
        "ulm_000001_000002_gtFine_polygons.json", "object 2: 'moon' is no class of Cityscapes",
    )  # fmt: skip
    assert found[1][1] == "shape 1: coordinate nan: expected numbers from -100,000 to 100,000"
    assert ": is no JSON: " in found[2][1]
    assert (done.expected, done.written, len(found)) == (4, 1, 3)
    assert sum(done.left_out.values()) == 2
    assert layout(tmp_path)["positions"] == {"front_center": ["front", "center"]}


CVAT = """<annotations><version>1.1</version><meta><task><labels>
<label><name>sky</name><color>#0A0b0c</color></label><label><name>car</name></label>
</labels></task></meta>
<image id="0" name="front/a.png" width="6" height="4">
<polygon label="car" points="1.0,1.0;3.0,1.0;3.0,3.0;1.0,3.0" z_order="2"/>
<polygon label="sky" points="0,0;6,0;6,2;0,2" z_order="0"/>
<mask label="car" rle="1, 2, 1" left="4" top="2" width="2" height="2" z_order="1"/>
<polygon label="sky" points="2,0;4,0;4,2;2,2" z_order="1"/>
<polyline label="car" points="0,0;6,4" z_order="9"/><cuboid label="car" z_order="9"/>
<points label="moon" points="1,1" z_order="9"/><polyline label="sky" points="0,0;6,4"/>
</image>
<image id="1" name="front/b.png" width="6" height="4">
<polygon label="moon" points="1,1;3,1;3,3" z_order="0"/></image>
<image id="2" name="front/c" width="2" height="2"></image>
<image id="3" name="front/d.png" width="2" height="2">
<mask label="car" rle="0,4" left="1" top="0" width="2" height="2" z_order="0"/></image>
<image id="4" name="front/e.png" width="2" height="-2"></image>
</annotations>"""


def test_cvat(tmp_path: Path) -> None:
    """By z_order, then in the file's order; masks along rows; lines and cuboids are no areas."""
    annotations = tmp_path / "annotations.xml"
    annotations.write_text(CVAT)
    put_image(tmp_path / "front/a.png")
    done = convert("cvat", [annotations], tmp_path)
    assert keys(tmp_path) == {"unlabeled": 0, "sky": 1, "car": 2}
    assert label(tmp_path / "labels/front/a.png") == ["111111", "122111", "022002", "000020"]
    assert label(tmp_path / "labels/front/c.png") == ["00", "00"]
    assert reasons(done) == [
        ("b.png", "polygon 1: 'moon' is none of the file's labels"),
        ("d.png", "shape 1: mask of 2 x 2 pixels at 1, 0: expected one within the frame of 2 x 2"),
        ("e.png", "2 x -2 pixels; expected at least 1 x 1, at most 33,554,432"),
    ]
    no_areas = {"polyline": 2, "cuboid": 1, "points": 1}
    assert done.left_out == {
        f"shapes that are no areas: {kind}": count for kind, count in no_areas.items()
    }
    annotations.write_text(CVAT[:-20])
    with pytest.raises(BadFile, match="is no XML: "):
        convert("cvat", [annotations], tmp_path)


CVAT_SHAPES = """<annotations>
<meta><task><labels><label><name>car</name></label></labels></task></meta>
<image id="0" name="a.png" width="6" height="4">
<box label="car" xtl="1.00" ytl="1.00" xbr="4.00" ybr="3.00" z_order="0"/></image>
<image id="1" name="b.png" width="6" height="4">
<box label="car" xtl="1" ytl="0" xbr="5" ybr="2" rotation="90.00" z_order="0"/></image>
<image id="2" name="c.png" width="6" height="4">
<ellipse label="car" cx="3" cy="2" rx="2" ry="1" z_order="0"/></image>
<image id="3" name="d.png" width="6" height="4">
<ellipse label="car" cx="3" cy="2" rx="2" ry="1" rotation="90.00" z_order="0"/></image>
<image id="4" name="e.png" width="4" height="4">
<ellipse label="car" cx="2" cy="2" rx="3" ry="0.5" rotation="45.00" z_order="0"/></image>
<image id="5" name="f.png" width="4" height="4">
<ellipse label="car" cx="-1" cy="9" rx="3" ry="3" z_order="0"/>
<ellipse label="car" cx="0" cy="0" rx="1.6" ry="1.6" z_order="0"/></image>
<image id="6" name="g.png" width="6" height="4">
<box label="car" xtl="1" ytl="nan" xbr="5" ybr="2" z_order="0"/></image>
<image id="7" name="h.png" width="6" height="4">
<ellipse label="car" cx="3" cy="2" rx="2" ry="0" z_order="0"/></image>
</annotations>"""


def test_cvat_boxes_and_ellipses(tmp_path: Path) -> None:
    """They are areas, turned clockwise, too, and cut off at the frame's edge."""
    annotations = tmp_path / "annotations.xml"
    annotations.write_text(CVAT_SHAPES)
    done = convert("cvat", [annotations], tmp_path)
    drawn = {
        "a": ["000000", "011100", "011100", "000000"],
        "b": ["001100", "001100", "001100", "000000"],
        "c": ["000000", "011110", "011110", "000000"],
        "d": ["001100", "001100", "001100", "001100"],
        "e": ["1000", "0100", "0010", "0001"],
        "f": ["1100", "1000", "0000", "0000"],
    }
    for name, rows in drawn.items():
        assert label(tmp_path / f"labels/{name}.png") == rows, name
    assert reasons(done) == [
        ("g.png", "box: ytl 'nan': expected a number"),
        ("h.png", "shape 1: ellipse of radii 2.0 and 0.0: expected radii above 0"),
    ]


CVAT_VIDEO = """<annotations><version>1.1</version><meta><task><mode>interpolation</mode>
<start_frame>0</start_frame><stop_frame>8</stop_frame><frame_filter>step=2</frame_filter>
<labels><label><name>sky</name></label><label><name>car</name></label></labels>
<original_size><width>6</width><height>4</height></original_size></task></meta>
<track id="0" label="car">
<box frame="0" keyframe="1" outside="0" xtl="0" ytl="0" xbr="2" ybr="2" z_order="1"/>
<box frame="2" keyframe="0" outside="0" xtl="1" ytl="0" xbr="3" ybr="2" z_order="1"/>
<box frame="4" keyframe="1" outside="1" xtl="2" ytl="0" xbr="4" ybr="2" z_order="1"/>
<box frame="6" keyframe="1" outside="0" xtl="3" ytl="0" xbr="5" ybr="2" z_order="1"/></track>
<track id="1" label="sky">
<polygon frame="0" keyframe="1" outside="0" points="0,0;6,0;6,1;0,1" z_order="0"/>
<polygon frame="2" keyframe="1" outside="1" points="0,0;6,0;6,1;0,1" z_order="0"/></track>
<track id="2" label="car"><points frame="0" keyframe="1" outside="0" points="1,1"/>
<points frame="2" keyframe="1" outside="1" points="1,1"/></track>
%s</annotations>"""


def test_cvat_video(tmp_path: Path) -> None:
    """Tracks show objects frame by frame, not where they are outside; each frame has a label."""
    annotations = tmp_path / "annotations.xml"
    annotations.write_text(CVAT_VIDEO % "")
    put_image(tmp_path / "frame_000002.jpg")
    done = convert("cvat", [annotations], tmp_path)
    assert (done.expected, done.written, done.problems) == (5, 5, [])
    assert done.images_missing == 4
    assert done.left_out == {"shapes that are no areas: points": 1}
    empty = ["000000"] * 4
    drawn = {
        0: ["221111", "220000", "000000", "000000"],
        2: ["022000", "022000", "000000", "000000"],
        4: empty,
        6: ["000220", "000220", "000000", "000000"],
        8: empty,
    }
    for frame, rows in drawn.items():
        assert label(tmp_path / f"labels/frame_{frame:06d}.png") == rows, frame
    tracks = """<track id="3" label="moon">
<box frame="8" keyframe="1" outside="0" xtl="3" ytl="0" xbr="5" ybr="2"/></track>
<track id="4" label="car"><box frame="0" keyframe="1" outside="0" xtl="0" ytl="0" xbr="1" ybr="1"/>
<box frame="4" keyframe="1" outside="0" xtl="0" ytl="0" xbr="1" ybr="1"/></track>"""
    annotations.write_text(CVAT_VIDEO % tracks)
    assert reasons(convert("cvat", [annotations], tmp_path)) == [
        ("frame_000002.jpg", "track 4: has no shape here between two others"),
        ("frame_000008.PNG", "track 3: 'moon' is none of the file's labels"),
    ]
    annotations.write_text(CVAT_VIDEO % '<track id="3" task_id="1" label="car"/>')
    with pytest.raises(BadFile, match="is of a project of several tasks; export each task"):
        convert("cvat", [annotations], tmp_path)
    annotations.write_text(CVAT_VIDEO.replace('frame="6"', 'frame="-6"') % "")
    with pytest.raises(BadFile, match="box: frame '-6': expected a number below 1,000,000"):
        convert("cvat", [annotations], tmp_path)
    annotations.write_text(CVAT_VIDEO.replace("8</stop", "99999999999</stop") % "")
    with pytest.raises(BadFile, match="expected at least one, none from 1,000,000 on"):
        convert("cvat", [annotations], tmp_path)


def test_labelme(tmp_path: Path) -> None:
    """Later shapes above; a hole of _background_; masks; new names get new keys, old ones stay."""

    def put(name: str, *shapes: tuple[str, str, list[list[float]]], **more: Any) -> None:
        rows = [{"label": a, "shape_type": b, "points": c, **more} for a, b, c in shapes]
        put_json(
            tmp_path / "json" / f"{name}.json",
            {
                "imagePath": f"..\\cam\\{name}.jpg",
                "imageWidth": 6,
                "imageHeight": 4,
                "shapes": rows,
            },
        )

    put(
        "a",
        ("sky", "rectangle", [[5, 3], [0, 0]]),
        ("car", "polygon", [[1, 0], [4, 0], [4, 3], [1, 3]]),
        ("_background_", "polygon", [[2, 1], [3, 1], [3, 2], [2, 2]]),
        ("sky", "linestrip", [[0, 0], [5, 3]]),
        group_id=7,
    )
    buffer = BytesIO()
    Image.fromarray(np.array([[True, False], [False, True]])).save(buffer, "PNG")
    mask = base64.b64encode(buffer.getvalue()).decode()
    put("b", ("car", "mask", [[4.0, 2.0], [5.0, 3.0]]), mask=mask)
    put("c", ("car", "circle", [[2, 2], [2, 1]]))
    (tmp_path / "json/d.json").write_bytes(b"\xff{}")
    rows = [{"label": "tram", "points": []}, {"points": []}]
    put_json(tmp_path / "json/e.json", {"imagePath": "e.jpg", "shapes": rows})
    done = convert("labelme", [tmp_path / "json"], tmp_path)
    assert keys(tmp_path) == {"unlabeled": 0, "car": 1, "sky": 2}
    assert label(tmp_path / "labels/cam/a.png") == ["211112", "210012", "210012", "211112"]
    assert label(tmp_path / "labels/cam/b.png") == ["000000", "000000", "000010", "000001"]
    assert label(tmp_path / "labels/cam/c.png") == ["000000", "001000", "011100", "001000"]
    assert done.left_out == {"shapes without area: linestrip": 1}
    assert [name for name, _ in reasons(done)] == ["d.json", "e.json"]
    assert done.problems[1].reason == "shape: label: expected a text, got nothing"
    (tmp_path / "json/e.json").unlink()
    put("d", ("bus", "rectangle", [[0, 0], [1, 1]]), ("__ignore__", "rectangle", [[2, 0], [3, 0]]))
    done = convert("labelme", [tmp_path / "json"], tmp_path)
    assert (done.written, done.unchanged) == (1, 3)
    assert keys(tmp_path) == {"unlabeled": 0, "car": 1, "sky": 2, "__ignore__": 3, "bus": 4}
    assert label(tmp_path / "labels/cam/d.png") == ["443300", "440000", "000000", "000000"]


def test_scalabel(tmp_path: Path) -> None:
    """In the file's order, by score where all have one; curves, run lengths, and open paths."""

    def path(vertices: list[list[int]], types: str, *, closed: bool = True) -> dict[str, Any]:
        return {"vertices": vertices, "types": types, "closed": closed}

    straight = path(pairs(box(0, 0, 6, 2)), "LLLL")
    line = path([[0, 0], [5, 3]], "LL", closed=False)
    curve = path([[0, 4], [0, -1], [6, -1], [6, 4]], "LCCC")
    ring = coco_mask.encode(np.asfortranarray(np.eye(4, 6, dtype=np.uint8)))["counts"].decode()
    document = {
        "config": {"imageSize": {"width": 6, "height": 4}, "categories": [
            {"name": "all", "subcategories": [{"name": "sky"}, {"name": "car"}]},
        ]},
        "frames": [
            {"name": "a.jpg", "videoName": "v1", "labels": [
                {"category": "sky", "poly2d": [straight, line]},
                {"category": "car", "rle": {"size": [4, 6], "counts": ring}},
                {"category": "car", "box2d": {"x1": 0}},
            ]},
            {"name": "b.jpg", "labels": [
                {"category": "car", "score": 0.9, "poly2d": [curve]},
                {"category": "sky", "score": 0.1, "poly2d": [path(pairs(box(0, 2, 6, 4)), "LLLL")]},
            ]},
            {"name": "c.jpg", "labels": [{"category": "moon", "poly2d": [straight]}]},
            {"name": "d.jpg", "labels": [{"category": "car", "poly2d": [path(pairs(box(0, 0, 1, 1)),
                                                                        "LCLL")]}]},
            {"name": "e.jpg", "labels": None},
        ],
    }  # fmt: skip
    done = convert("scalabel", [put_json(tmp_path / "s.json", document)], tmp_path)
    assert keys(tmp_path) == {"unlabeled": 0, "sky": 1, "car": 2}
    assert label(tmp_path / "labels/v1/a.png") == ["211111", "121111", "002000", "000200"]
    assert label(tmp_path / "labels/b.png") == ["002200", "022220", "222222", "222222"]
    assert [name for name, _ in reasons(done)] == ["c.jpg", "d.jpg"]
    assert done.left_out == {
        "open paths, which have no area": 1, "labels without poly2d or rle": 1,
        "frames without labels": 1,
    }  # fmt: skip


def test_run_lengths_are_pycocotools(tmp_path: Path) -> None:
    """Of masks of all kinds, as texts and lists; polygons beyond the image, too."""
    random = np.random.default_rng(1)
    for density in (0.0, 0.02, 0.5, 1.0):
        for _ in range(10):
            height, width = (int(n) for n in random.integers(1, 90, 2))
            mask = (random.random((height, width)) < density).astype(np.uint8)
            text = coco_mask.encode(np.asfortranarray(mask))["counts"].decode()
            flat = mask.T.ravel().astype(int)
            edges = np.flatnonzero(np.diff(flat)) + 1
            ends = [0, *([0] if flat[0] else []), *edges.tolist(), flat.size]
            for counts in (text, np.diff(ends).tolist()):
                runs = coco_runs({"size": [height, width], "counts": counts}, (width, height))
                assert np.array_equal(mask_of(runs).reshape(width, height).T, mask)
            polygons = [(random.random(8) * 160 - 40).tolist() for _ in range(2)]
            peer = coco_mask.decode(coco_mask.merge(coco_mask.frPyObjects(polygons, height, width)))
            frame = AnnotatedFrame("a", None, [Shape(1, "coco", polygons)])
            canvas = painted(frame, (width, height), 0, wide=False)
            assert np.array_equal(np.asarray(canvas), peer)


@pytest.mark.parametrize(
    ("counts", "reason"),
    [
        ("1", "add up to 1 pixels; expected 24"),
        ("P", "the text is cut short"),
        ("~", "'~' at 0: no text of COCO's"),
        ("o" * 20 + "1", "no text of COCO's"),
        ([30, -6], "expected whole numbers from 0 on"),
        ([24.0], "expected whole numbers from 0 on"),
        (None, "expected whole numbers from 0 on"),
    ],
)
def test_bad_run_lengths(counts: object, reason: str) -> None:
    """Refused with what was expected; nothing is painted."""
    with pytest.raises(BadFile, match=reason):
        coco_runs({"size": [4, 6], "counts": counts}, (6, 4))


def rle_frames(names: Sequence[str], key: int = 1) -> dict[str, Any]:
    """Annotations of frames of 2 x 2 pixels, one of which is a car's, or the sky's with key 2."""
    return {
        "categories": [{"id": 1, "name": "car"}, {"id": 2, "name": "sky"}],
        "frames": [
            {"file_name": name, "width": 2, "height": 2,
             "segments": [{"category_id": key, "rle": {"size": [2, 2], "counts": [1, 1, 2]}}]}
            for name in names
        ],
    }  # fmt: skip


def test_killed_and_begun_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a killed convert has written stays as it is; the rest follows, and what has changed."""
    monkeypatch.setattr(conversion, "_AT_ONCE", 2)
    names = [f"s/{number}.jpg" for number in range(7)]
    annotations = put_json(tmp_path / "a.json", rle_frames(names))
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:

        def wait_for_death(done: Conversion) -> None:
            if done.written == 4:
                os.write(writable, b".")
                time.sleep(600)

        convert("rle-json", [annotations], tmp_path, progress=wait_for_death)
        os._exit(0)
    assert os.read(readable, 1) == b"."
    os.kill(child, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    labels = tmp_path / "labels/s"
    before = {path.name: path.stat().st_mtime_ns for path in labels.iterdir()}
    assert sorted(before) == ["0.png", "1.png", "2.png", "3.png"]
    (labels / f"4.png.{'0' * 32}.part").write_bytes(b"\x89PNG")
    done = convert("rle-json", [annotations], tmp_path)
    assert (done.written, done.unchanged, done.problems) == (3, 4, [])
    after = {path.name: path.stat().st_mtime_ns for path in labels.iterdir()}
    assert sorted(after) == [f"{number}.png" for number in range(7)]
    assert {name: after[name] for name in before} == before
    changed = rle_frames(names)
    changed["frames"][5] = rle_frames(["s/5.jpg"], key=2)["frames"][0]
    put_json(annotations, changed)
    (labels / "6.png").write_bytes(b"")
    done = convert("rle-json", [annotations], tmp_path)
    assert (done.written, done.unchanged) == (2, 5)
    assert [label(labels / f"{number}.png") for number in (5, 6)] == [["00", "20"], ["00", "10"]]


def test_a_layout_that_is_there(tmp_path: Path) -> None:
    """It keeps what a user wrote; two folders of images get one above both; keys stay unique."""
    one = put_json(tmp_path / "one.json", rle_frames(["a.png"]))
    convert("rle-json", [one], tmp_path, tmp_path / "train")
    text = (tmp_path / "layout.toml").read_text()
    (tmp_path / "layout.toml").write_text(
        'camera = "front_left"\n' + text.replace('"car" }', '"car", tag = "vehicle" }')
    )
    document = rle_frames(["b.png"])
    document["categories"].append({"id": 3, "name": 'the "bus"'})
    two = put_json(tmp_path / "two.json", document)
    convert("rle-json", [two], tmp_path, tmp_path / "val")
    assert layout(tmp_path) == {
        "camera": "front_left",
        "images": "**/{frame}.{jpg,jpeg,png,JPG,JPEG,PNG}",
        "labels": "labels/**/{frame}.png",
        "encoding": "index",
        "classes": [
            {"key": 1, "name": "car", "tag": "vehicle"},
            {"key": 2, "name": "sky"},
            {"key": 0, "name": "unlabeled", "colour": "#000000", "ignore": True},
            {"key": 3, "name": 'the "bus"'},
        ],
    }
    assert label(tmp_path / "labels/train/a.png") == label(tmp_path / "labels/val/b.png")
    document["categories"][0]["name"] = "truck"
    with pytest.raises(InvalidInput, match="key 1 is 'car' already, and 'truck' in the annota"):
        convert("rle-json", [put_json(two, document)], tmp_path, tmp_path / "val")
    with pytest.raises(InvalidInput, match=r"expected a folder below .* and not of its labels"):
        convert("rle-json", [one], tmp_path, tmp_path / "labels/train")
    (tmp_path / "layout.toml").write_text('images = "i/{frame}.png"\nlabels = "l/{frame}.png"')
    with pytest.raises(InvalidInput, match="pairs images and labels in another way"):
        convert("rle-json", [one], tmp_path, tmp_path / "train")


@pytest.mark.wide
def test_the_next_command_scans_it(tmp_path: Path) -> None:
    """From annotations to counts by four commands: those of the shapes, frame by frame."""
    root, home = tmp_path / "set", tmp_path / "home"
    for name in ("order", "hole", "other"):
        put_image(root / f"{name}.png")
    annotations = put_json(root / "a.json", COCO)
    command = ("labels", "convert", "coco", str(annotations), "--to", str(root))
    run = framesift(home, *command)
    assert run.returncode == 0, run.stderr
    assert "7 frames" not in run.stdout
    assert "6 frames: 4 labels written, 0 were there already" in run.stdout
    assert "3 frames without label, for what is wrong with them:" in run.stdout
    assert "  bad_file: bad.png: shape 1: run lengths add up to 5" in run.stdout
    again = framesift(home, *command, "--strict", "--json")
    assert again.returncode == 5
    found = json.loads(again.stdout)
    assert (found["frames"], found["written"], found["unchanged"]) == (6, 0, 4)
    assert [row["file"] for row in found["problems"]][:2] == ["other.png", "bad.png"]
    assert not home.exists()
    added = framesift(home, "source", "add", "mine", str(root))
    assert "has its own layout: layout.toml" in added.stdout + added.stderr
    assert "counted 2 frames" in framesift(home, "ingest", "mine").stdout
    asked = framesift(home, "select", "--columns", "filename,car,sky,unlabeled", "--json")
    frames = json.loads(asked.stdout)["frames"]
    counts = {row["filename"]: (row["car"], row["sky"], row["unlabeled"]) for row in frames}
    assert counts["order.png"] == (8, 16, 0)
    assert counts["hole.png"] == (0, 8, 16)
    checked = framesift(home, "layout", "check", str(root)).stdout
    assert (
        "2 frames with image and label, 1 images without label, 2 labels without image" in checked
    )
    assert framesift(home, "labels", "convert", "yolo", "x", "--to", str(root)).returncode == 1


@pytest.mark.wide
def test_a_layout_file_goes_before_what_names_tell(tmp_path: Path) -> None:
    """Beside the makers' own labels, by whose names a preset fits, the converted ones are read."""
    root, home = make_city(tmp_path / "city"), tmp_path / "home"
    polygons = {"imgWidth": 3, "imgHeight": 1, "objects": [
        {"label": "sky", "polygon": [[0, 0], [1, 0], [1, 1], [0, 1]]},
    ]}  # fmt: skip
    put_json(root / "gtFine/val/ulm/ulm_000001_000001_gtFine_polygons.json", polygons)
    done = convert("cityscapes-polygons", [root / "gtFine"], root)
    assert (done.written, done.images_missing, done.problems) == (1, 0, [])
    added = framesift(home, "source", "add", "city", str(root), "--json")
    assert "has its own layout: layout.toml" in json.loads(added.stdout)["notes"][0]
    assert "counted 1 frames" in framesift(home, "ingest", "city").stdout
    asked = framesift(home, "select", "--columns", "sky,car,unlabeled", "--json")
    frames = json.loads(asked.stdout)["frames"]
    assert [(row["sky"], row["car"], row["unlabeled"]) for row in frames] == [(2, 0, 1)]
    recorded = json.loads(framesift(home, "source", "show", "city", "--json").stdout)
    assert recorded["layout"] == "layout.toml"
