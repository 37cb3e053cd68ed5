"""Scans of other layouts than A2D2's: what they leave in the catalog, whatever changes between."""

from pathlib import Path
from typing import Any

import pytest

from catalog.errors import ClassListMissing, InvalidInput
from catalog.records.sources import recorded_source
from catalog.records.tables import Source
from catalog.tags.families import write
from ingest.layouts.read_layout import layout_of, preset
from ingest.scan import pair_frames, sorted_files
from ingest.sources.partial import FolderSelection
from query.statistics.class_statistics import class_report
from tests.ingest.label_sets import (
    CAR,
    PERSON,
    ROAD,
    VOID,
    add_city_frame,
    city_keys,
    make_city,
    png,
)
from tests.ingest.scene_folders import Home, add_frame, make_tree, put

FRAMES = (
    "SELECT filename, scene, camera, frame_number, given_split, car, road, unknown_pixels, front "
    "FROM metaocean_view WHERE labelled IS NOT NULL ORDER BY fkey"
)


def set_layout(home: Home, source: Source, document: Any) -> Source:
    """Give a source a layout."""
    with home.records.session() as session:
        session.get_one(Source, source.id).layout = dict(layout_of(document, "layout").document)
    return recorded_source(home.records, source.name)


def frame(number: int, scene: str, split: str, *, car: int | None = None) -> tuple[object, ...]:
    name = city_keys(number, scene, split)[0].rpartition("/")[2]
    pixels = number if car is None else car
    counts = (str(pixels), "1", "1", "1")
    return (name, scene, "front_center", str(number), split, *counts)


AACHEN = [frame(n, "aachen", "train") for n in (1, 2, 3)]
ULM = [frame(n, "ulm", "val") for n in (1, 2, 3)]


@pytest.mark.wide
@pytest.mark.parametrize("run_files", [2, 50_000])
def test_two_trees(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_files: int
) -> None:
    """Names tell the layout; counts, positions and tags are right; then nothing is left to do."""
    monkeypatch.setattr(sorted_files, "RUN_FILES", run_files)
    monkeypatch.setattr(pair_frames, "SCENE_FRAMES", 2)
    source = home.add(make_city(tmp_path / "city"))
    result = home.scan(source)
    assert (result.counts.files, result.counts.frames) == (13, 6)
    assert (result.counts.bad_files, result.counts.orphans) == (0, 0)
    assert home.rows(FRAMES) == [*AACHEN, *ULM]
    assert (recorded_source(home.records, "a2d2").scanned_layout or {})["name"] == "cityscapes"
    assert home.rows("SELECT value, count(*) FROM t_sequence GROUP BY 1") == [("000001", 6)]
    assert [kind for kind, _ in home.problems(result.scan)] == ["unknown_colours"] * 6
    again = home.scan(source)
    assert (again.counts.unchanged, again.counts.commits) == (13, 0)


@pytest.mark.wide
def test_what_changes_between_scans(home: Home, tmp_path: Path) -> None:
    """A frame that changes, a label and an image that go and return: each frame by itself."""
    root = make_city(tmp_path / "city")
    source = home.add(root)
    home.scan(source)
    add_city_frame(root, 1, [CAR, CAR, ROAD, 200])
    (root / city_keys(2)[1]).unlink()
    (root / city_keys(3)[0]).unlink()
    result = home.scan(source)
    assert (result.counts.changed, result.counts.removed, result.counts.frames) == (2, 2, 1)
    _, second, _ = ULM
    unlabelled = (*second[:5], None, None, None, "1")
    assert home.rows(FRAMES) == [*AACHEN, frame(1, "ulm", "val", car=2), unlabelled]
    assert ("orphan", city_keys(3)[1]) in home.problems(result.scan)
    add_city_frame(root, 2, [CAR, CAR, ROAD, 200])
    add_city_frame(root, 3, [CAR, CAR, CAR, ROAD, 200])
    home.scan(source)
    assert home.rows(FRAMES) == [*AACHEN, frame(1, "ulm", "val", car=2), *ULM[1:]]


@pytest.mark.wide
def test_a_part_of_two_trees(home: Home, tmp_path: Path) -> None:
    """A folder of labels brings the folder of their images along, and nothing else."""
    root = make_city(tmp_path / "city")
    source = set_layout(home, home.add(root), preset("cityscapes").document)
    for folders in (["gtFine/val/ulm"], ["leftImg8bit/val"]):
        home.scan(source, selection=FolderSelection.of(folders))
        assert home.rows(FRAMES) == ULM
    home.scan(source, selection=FolderSelection.of([], ["leftImg8bit/train/aachen/"]))
    assert home.rows(FRAMES) == [*AACHEN, *ULM]


@pytest.mark.wide
def test_a_layout_at_the_root(home: Home, tmp_path: Path) -> None:
    """It says camera, ignored classes and tags; when it changes, all is paired and counted anew."""
    root = make_city(tmp_path / "city")
    document = (
        'images = "leftImg8bit/{split}/{town}/{frame}_leftImg8bit.png"\n'
        'labels = "gtFine/{split}/{town}/{frame}_gtFine_labelIds.png"\n'
        "[[classes]]\nkey = 26\nname = 'Car'\ntag = 'auto'\n"
        "[[classes]]\nkey = [0, 200]\nname = 'none'\nignore = true\n"
        "[[classes]]\nkey = 7\nname = 'road'\n"
    )
    put(root, "layout.toml", document.encode())
    source = home.add(root)
    home.scan(source)
    columns = "scene, camera, frame_number, given_split, town, auto, none, unknown_pixels, front"
    statement = f"SELECT {columns} FROM metaocean_view WHERE labelled = 1 ORDER BY fkey"
    aachen = "leftImg8bit/train/aachen", "main", None, "train", "aachen"
    assert home.rows(statement)[:3] == [(*aachen, str(n), "1", "0", "0") for n in (1, 2, 3)]
    document = 'camera = "left"\n' + document.replace("{town}", "{scene}")
    put(root, "layout.toml", document.encode())
    result = home.scan(source)
    assert (result.counts.changed, result.counts.frames) == (14, 6)
    assert home.rows(statement)[0] == ("aachen", "left", None, "train", None, "1", "1", "0", "0")
    put(root, "layout.toml", b"images = 7")
    with pytest.raises(InvalidInput, match=r"layout\.toml: pattern 7: expected a path"):
        home.scan(source)
    assert len(home.rows(statement)) == 6


@pytest.mark.wide
def test_a_layout_that_is_given_goes_before_names(home: Home, tmp_path: Path) -> None:
    """With other classes all labels are counted anew, whatever folders a scan is given.

    Without any, the error says how.
    """
    source = home.add(make_city(tmp_path / "city"))
    home.scan(source)
    document = dict(preset("cityscapes").document)
    classes = [{"key": CAR, "name": "car"}, {"key": 200, "name": "road"}]
    source = set_layout(home, source, document | {"classes": classes})
    result = home.scan(source, selection=FolderSelection.of(["gtFine/val"]))
    assert result.counts.frames == 6
    assert home.rows(FRAMES) == [*AACHEN, *ULM]  # one pixel of the id that is road now
    del document["classes"]
    source = set_layout(home, source, document)
    with pytest.raises(ClassListMissing, match="has no classes: write them into a layout file"):
        home.scan(source)


@pytest.mark.wide
def test_two_data_sets_in_one_catalog(home: Home, tmp_path: Path) -> None:
    """What one has no class of is null there, and not zero; A2D2's rows have no tags of names."""
    home.scan(home.add(make_tree(tmp_path / "tree", frames=1)))
    home.scan(home.add(make_city(tmp_path / "city"), name="city"))
    rows = home.rows(
        "SELECT datasource, sum(car::INT), sum(bicycle::INT), sum(road::INT), count(given_split) "
        "FROM metaocean_view WHERE labelled = 1 GROUP BY 1 ORDER BY 1"
    )
    assert rows == [("a2d2", 1, 1, None, 0), ("city", 12, 0, 6, 6)]
    for by in (None, "scene"):
        report = class_report(home.store, by=by)
        of = {one.tag: (one.frames, one.share, one.presence) for one in report.classes}
        assert (report.frames, report.pixels) == (7, 27)
        assert of["car"] == (7, 13 / 27, 1.0)
        assert of["road"] == (6, 6 / 24, 1.0)  # of the six frames of the set that has such a class
        assert of["sky"] == (1, 1 / 27, 1 / 7)
        assert of["sidewalk"] == (0, 0.0, 0.0)
    groups = {group.value: {c.tag: c.share for c in group.classes} for group in report.groups or ()}
    assert groups["20180807_145028"]["car"] == 1 / 3
    assert groups["20180807_145028"]["road"] == 0.0
    assert groups["ulm"]["road"] == 3 / 12


@pytest.mark.wide
def test_a_tag_of_names_that_people_have(home: Home, tmp_path: Path) -> None:
    """A field whose tag is another family's is refused, before anything is catalogued."""
    home.scan(home.add(make_tree(tmp_path / "tree", frames=1)))
    write(home.store, "trips", {"sequence": "VARCHAR"})
    with pytest.raises(InvalidInput, match="tag 'sequence' belongs to family trips already"):
        home.scan(home.add(make_city(tmp_path / "city"), name="city"))
    assert home.rows("SELECT count(*) FROM metaocean WHERE datasource = 'city'") == [(0,)]
    with pytest.raises(InvalidInput, match="tag family 'layout' is the catalog's own"):
        write(home.store, "layout", {"weather": "VARCHAR"})


@pytest.mark.wide
def test_two_images_of_one_frame(home: Home, tmp_path: Path) -> None:
    """The second is a listed problem; once it is gone, the scan has nothing against the frame."""
    root = tmp_path / "own"
    document = {
        "images": "i/{frame}.{png,jpg}", "labels": "l/{frame}.png",
        "classes": [{"key": CAR, "name": "car"}, {"key": [VOID, PERSON], "name": "other"}],
    }  # fmt: skip
    for key in ("i/a.jpg", "i/a.png", "i/b.png", "l/a.png", "l/b.png"):
        put(root, key, png([[CAR, PERSON, VOID]]))
    source = set_layout(home, home.add(root), document)
    result = home.scan(source)
    assert home.problems(result.scan) == [("bad_file", "i/a.png")]
    statement = "SELECT filename, scene, other FROM metaocean_view WHERE labelled = 1 ORDER BY fkey"
    assert home.rows(statement) == [("a.jpg", "i", "2"), ("b.png", "i", "2")]
    (root / "i/a.jpg").unlink()
    result = home.scan(source)
    assert home.problems(result.scan) == []
    assert home.rows(statement) == [("a.png", "i", "2"), ("b.png", "i", "2")]


@pytest.mark.wide
def test_a2d2_keeps_its_own_rules(home: Home, tmp_path: Path) -> None:
    """Frames of two folders above one scene are one frame by its preset, and by no other's."""
    root = make_tree(tmp_path / "tree", frames=2)
    add_frame(root / "bboxes", 1, [(255, 0, 0)])
    source = home.add(root)
    home.scan(source)
    statement = "SELECT frame_number FROM metaocean_view WHERE labelled = 1 ORDER BY 1"
    assert home.rows(statement) == [("1",), ("2",)]
    source = set_layout(home, source, dict(preset("a2d2").document) | {"merge_trees": False})
    home.scan(source)
    assert home.rows(statement) == [("1",), ("1",), ("2",)]
