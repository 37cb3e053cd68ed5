"""A frame's shapes on its way through a scan: names are parsed once, JSON loses nothing."""

import json
from collections import Counter
from datetime import datetime

from catalog.values import File, KnownFile, Problem
from ingest.layouts.layout import FrameId, FrameName
from ingest.layouts.read_layout import preset
from ingest.scan.frame_json import count_from_json, count_json, frame_from_json, frame_json
from ingest.scan.listing_diff import compare
from ingest.scan.pair_frames import FrameFiles
from ingest.scan.portions import Portions
from ingest.scan.read_frame import FrameCount
from ingest.scan.scan_counts import ScanCounts

WHEN = datetime(2020, 1, 1, 12, 30, 0, 250)  # noqa: DTZ001 (naive UTC)
A2D2 = preset("a2d2")
SCENE = "20180807_145028"


def key(kind: str, number: int) -> str:
    folder = f"{SCENE}/{kind}/cam_front_center"
    return f"{folder}/20180807145028_{kind}_frontcenter_{number:09d}.png"


def test_each_name_is_parsed_once() -> None:
    """By compare, for listed and gone files alike; no other module of a scan parses names."""
    parsed = Counter[str]()

    def counting(name: str) -> FrameName | None:
        parsed[name] += 1
        return A2D2.parse(name)

    keys = sorted([key(kind, n) for kind in ("camera", "label") for n in range(3)] + ["notes.txt"])
    known = [KnownFile(name, 1, WHEN, "", carries_tags="camera" in name) for name in keys]
    listed = [File(name, 1, WHEN) for name in keys if name != key("label", 1)]
    portions = Portions(ScanCounts(), A2D2, frames_each=10, files_each=10)
    (portion,) = portions.cut(compare(listed, known, counting))
    assert portion.removed == [key("label", 1)]
    assert portion.touched == {(SCENE, "front_center", 1)}
    assert parsed == Counter(keys)


def test_json_of_a_frame_and_its_counts_loses_nothing() -> None:
    """Files with every value and with none; a frame that is whole, and one to be read."""
    full = File(
        key("label", 1), 5, WHEN, WHEN, WHEN, 7, "anna", "lab", 1000, 100, "-rw-r--r--", 4096,
        "etag", "migrtd", "GLACIER",
    )  # fmt: skip
    image = File(key("camera", 1), 9, WHEN)
    lidar = File(key("lidar", 1), 3, WHEN)
    frame = FrameFiles(
        FrameId("a/" + SCENE, SCENE, "front_center", "20180807145028", 1, "", ("val",)),
        image,
        full,
        lidar,
    )
    for shape in (frame, frame.to_read(image=True), frame.to_read(image=False)):
        assert frame_from_json(json.loads(json.dumps(frame_json(shape)))) == shape
    assert frame.to_read(image=True).files == [image, full]
    assert frame.to_read(image=False).files == [full]
    problem = Problem("unknown_colours", full.key, "3 pixels")
    for count in (
        FrameCount(0, 0, (), 0, 5, (problem,)),
        FrameCount(4, 2, (5, 0), 3, 9, (problem, problem), "cafe"),
    ):
        assert count_from_json(json.loads(json.dumps(count_json(count)))) == count
