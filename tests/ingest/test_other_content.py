"""What lies where something else was expected: messages say what it is, and what to do."""

import json
from pathlib import Path

import pytest

from catalog.errors import BadFile, ClassListMissing, InvalidInput, StorageError
from catalog.records.scans import recorded_problems
from ingest.extractors.boxes import read_boxes
from ingest.extractors.bus import read_recording
from ingest.extractors.lidar import read_points
from ingest.labels.class_list import ClassList
from ingest.labels.other_content import kind_of_content
from tests.ingest.scene_folders import CLASS_LIST, Home, frame_key, make_tree, put

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
DENIED = b'<?xml version="1.0"?>\n<Error><Code>AccessDenied</Code><Message>no</Message></Error>'
CONTENTS = (
    (b"", "empty"),
    (POINTER, "git lfs pull"),
    (b"\xff\xd8\xff\xe0" + bytes(40), "a JPEG image"),
    (b"RIFF\0\0\0\0WEBPVP8 " + bytes(9), "a WebP image"),
    (b"BM\x36\0\0\0\0\0\0\0\x36\0", "a BMP image"),
    (b"BMW, Audi\n", "text"),
    (b"RIFF\0\0\0\0WAVEfmt " + bytes(9), "begins with 52 49 46 46"),
    (b"\x1f\x8b\x08\0" + bytes(40), "gzip data: decompress it"),
    (b"PK\x03\x04" + bytes(40), "a zip archive"),
    (DENIED, "an object store's error AccessDenied"),
    (b"<?xml version='1.0'?><svg/>", "an XML document"),
    (b"\xef\xbb\xbf\n<!DOCTYPE html><title>Log in</title>", "a web page"),
    (b"<?xml version='1.0'?><html xmlns='x'>", "a web page"),
    (b'{"a": 1}', "JSON"),
    (bytes(5_000), "zero bytes alone"),
    ("größer\n".encode(), "text"),
    (b"\x01\x02secret", "begins with 01 02 73"),
)


@pytest.mark.parametrize(("content", "words"), CONTENTS)
def test_a_kind_is_named(content: bytes, words: str) -> None:
    """By what the file begins with; no text of it is shown, which might be a secret."""
    kind = kind_of_content(content)
    assert words in kind
    assert "\n" not in kind
    assert "secret" not in kind
    assert "Log in" not in kind


def test_labels_and_images_that_are_something_else(home: Home, tmp_path: Path) -> None:
    """A scan says of each what it is; none of it is a fault of names."""
    root = make_tree(tmp_path / "tree", frames=4)
    put(root, frame_key("label", 1), POINTER)
    put(root, frame_key("camera", 2), DENIED * 99)
    put(root, frame_key("camera", 3), b"")
    source = home.add(root)
    assert home.scan(source).counts.frames == 1
    reasons = {p.key: p.reason for p in recorded_problems(home.records, source_id=source.id)}
    assert "but a Git LFS pointer" in reasons[frame_key("label", 1)]
    assert "error AccessDenied" in reasons[frame_key("camera", 2)]
    assert "empty" in reasons[frame_key("camera", 3)]


def test_other_readers_say_it_too() -> None:
    """Extractors' JSON and arrays."""
    with pytest.raises(BadFile, match=r"no npz file.* but a Git LFS pointer"):
        read_points(POINTER)
    for read in (read_boxes, read_recording):
        with pytest.raises(BadFile, match="not JSON but a web page"):
            read(b"<html>")
        with pytest.raises(BadFile, match="not JSON: Expecting"):
            read(b'{"box_0": ')


def test_a_class_list_that_is_there_and_cannot_be_read(home: Home, tmp_path: Path) -> None:
    """It is not called missing, and no other source's list is taken for it."""
    root = make_tree(tmp_path / "tree")
    home.scan(home.add(root, name="other"))
    outside = put(tmp_path, "outside.json", json.dumps(CLASS_LIST).encode())
    (root / "class_list.json").unlink()
    (root / "class_list.json").symlink_to(outside)
    source = home.add(root, name="linked")
    source.options = {**source.options, "part_of": "other"}
    with pytest.raises(
        StorageError, match=r"class_list\.json: cannot be read: is a link.* out"
    ) as no:
        home.scan(source)
    assert "give --class-list FILE" in str(no.value)
    (root / "class_list.json").unlink()
    put(root, "class_list.json", POINTER)
    with pytest.raises(InvalidInput, match="not JSON but a Git LFS pointer"):
        home.scan(source)
    (root / "class_list.json").unlink()
    with pytest.raises(ClassListMissing):
        home.scan(home.add(root, name="alone"))


def test_a_class_list_that_is_left_out_is_read_all_the_same(home: Home, tmp_path: Path) -> None:
    """`--exclude` is about files that are catalogued."""
    source = home.add(make_tree(tmp_path / "tree"))
    with home.records.session() as session:
        record = session.merge(source)
        record.options = {**record.options, "exclude": ["*.json"]}
    assert home.scan(record).counts.frames == 3


@pytest.mark.parametrize("names", [["汽车"], ["汽车", "Car", "道路"]])
def test_a_class_whose_name_makes_no_tag_is_named(names: list[str]) -> None:
    """One class in Chinese shares its tag with none: the message says what a tag needs."""
    with pytest.raises(InvalidInput) as refused:
        ClassList.from_colours({f"#{n:06x}": name for n, name in enumerate(names)})
    assert all(f"'{name}'" in str(refused.value) for name in names if name != "Car")
    assert "'Car'," not in str(refused.value).partition(":")[2].partition(";")[0]
    assert "--class-list" in str(refused.value)
    assert "share" not in str(refused.value)
