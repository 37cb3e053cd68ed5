"""Data sets of several sources: A2D2 ships labels, bus data and boxes as archives of their own."""

import json
import tarfile
from pathlib import Path

import pytest

from catalog.errors import ClassListMissing
from catalog.records.sources import add_source
from catalog.records.tables import Source
from catalog.tags.extractions import problems
from ingest.extractors.boxes import Boxes
from ingest.extractors.bus import Bus
from ingest.extractors.lidar import Lidar
from ingest.extractors.run import ExtractCounts, extraction_of, run_extractor
from ingest.sources.recorded import other_sources_of_data_set
from ingest.sources.source_options import SourceOptions
from tests.ingest.extractors.frames import box, npz, put_bus, put_camera_json, tags_of, time_us
from tests.ingest.scene_folders import Home, frame_key, make_tree, put


def _packed(folder: Path) -> Path:
    archive = folder.with_suffix(".tar")
    with tarfile.open(archive, "w") as tar:
        tar.add(folder, arcname=folder.name)
    return archive


def _add(home: Home, uri: Path, name: str, part_of: str = "") -> Source:
    options = SourceOptions(part_of=part_of).to_json()
    return add_source(home.records,
        Source(name=name, uri=str(uri), platform="NFS", cluster="h", datasource=name,
               options=options)
    )  # fmt: skip


def _read(home: Home, source: Source, extractor: Boxes | Bus | Lidar) -> ExtractCounts:
    others = other_sources_of_data_set(home.records, source)
    return run_extractor(home.store, source, extractor, other_sources=others)


def _speed(number: int) -> dict[str, object]:
    time = time_us(number)
    return {"vehicle_speed": {"unit": "Unit_KiloMeterPerHour", "values": [[time, 36.5]]}}


@pytest.fixture
def labels(home: Home, tmp_path: Path) -> Source:
    """Labels, images and camera JSON of frames 1 and 2, as source a2d2."""
    root = make_tree(tmp_path / "camera_lidar_semantic", frames=2)
    put_camera_json(root, 1)
    put_camera_json(root, 2)
    source = _add(home, root, "a2d2")
    home.scan(source)
    return source


@pytest.mark.wide
def test_partners_in_other_archives(home: Home, labels: Source, tmp_path: Path) -> None:
    """Bus, boxes and lidar of two tar archives reach the frames; each is read once."""
    bus = tmp_path / "camera_lidar_semantic_bus"
    put_bus(bus, _speed(1))
    boxes = tmp_path / "camera_lidar_semantic_bboxes"
    content = json.dumps({"box_0": box("Car", [12.0, 0.0, 0.0])})
    put(boxes, frame_key("label3D", 2, "json"), content.encode())
    put(boxes, frame_key("lidar", 2, "npz"), npz({"distance": [5.0]}))
    for folder in (bus, boxes):
        source = _add(home, _packed(folder), folder.name.rpartition("_")[2], part_of="a2d2")
        home.scan(source)  # with the class list of a2d2
    counts = _read(home, labels, Bus())
    assert (counts.frames, counts.read, counts.tagged) == (2, 2, 2)
    assert tags_of(home, "bus", "vehicle_speed_kmh") == {1: (36.5,), 2: (36.5,)}
    assert _read(home, labels, Boxes()).without_file == 1
    assert tags_of(home, "boxes", "n_car") == {2: (1,)}
    assert _read(home, labels, Lidar()).read == 1
    assert tags_of(home, "lidar", "lidar_points") == {2: (1,)}
    for extractor in (Bus(), Boxes(), Lidar()):
        assert _read(home, labels, extractor).read == 0


@pytest.mark.wide
def test_only_of_the_same_data_set(home: Home, labels: Source, tmp_path: Path) -> None:
    """A source that is no part of it gives nothing, and no class list either."""
    root = tmp_path / "other"
    put_bus(root, _speed(1))
    other = _add(home, root, "other")
    with pytest.raises(ClassListMissing):
        home.scan(other)
    put(root, "class_list.json", b'{"#ff0000": "Car 1"}')
    home.scan(other)
    assert _read(home, labels, Bus()).without_file == 2


@pytest.mark.wide
def test_a_bad_file_of_another_source_is_named_in_full(
    home: Home, labels: Source, tmp_path: Path
) -> None:
    """By its fkey; the file of the frame's own source goes before it."""
    root = tmp_path / "boxes"
    for number in (1, 2):
        put(root, frame_key("label3D", number, "json"), b"no JSON")
    home.scan(_add(home, root, "boxes", part_of="a2d2"))
    put(Path(labels.uri), frame_key("label3D", 1, "json"), b"{}")
    home.scan(labels)
    counts = _read(home, labels, Boxes())
    assert (counts.read, counts.bad_files) == (2, 1)
    (problem,) = problems(home.store, extraction_of(labels, Boxes()))
    assert problem.key == f"h:boxes:{frame_key('label3D', 2, 'json')}"
