"""A dataset as files on disk."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import framesift
from catalog.errors import BadFile, InvalidInput, StorageError, UnknownName
from framesift.data import open_frames
from ingest.labels.class_list import ClassList
from pipeline.datasets.row_counts import class_matrix
from pipeline.entry_name import HEADER_FILE, versioned_key
from pipeline.manifest import (
    FRAMES_FILE,
    Manifest,
    ManifestHeader,
)
from pipeline.manifest_rows import FORMAT, FRAMES_SCHEMA
from tests.pipeline.homes import REPOSITORY


def manifest(frames: int = 10, **changes: object) -> Manifest:
    """A manifest of made-up frames, two thirds of them for training."""
    splits = ["validation" if n % 3 == 2 else "train" for n in range(frames)]
    rows = pa.table(
        {
            "fkey": [f"local:a2d2:image-{n}.png" for n in range(frames)],
            "split": splits,
            "scene": ["scene"] * frames,
            "camera": ["front_center"] * frames,
            "image_source": ["a2d2"] * frames,
            "image": [f"image-{n}.png" for n in range(frames)],
            "image_size": [100 + n for n in range(frames)],
            "image_version": [f"mtime:{n}" for n in range(frames)],
            "image_digest": pa.nulls(frames, pa.string()),
            "label_source": ["a2d2"] * frames,
            "label": [f"label-{n}.png" for n in range(frames)],
            "label_size": [10 + n for n in range(frames)],
            "label_version": [f"mtime:{n}" for n in range(frames)],
            "label_digest": pa.nulls(frames, pa.string()),
            "label_segments": pa.nulls(frames, pa.string()),
            "class_pixels": [[n, 0] for n in range(frames)],
        },
        schema=FRAMES_SCHEMA,
    )
    header = {
        "name": "made-up",
        "version": 1,
        "id": "0" * 64,
        "question": {"ranges": []},
        "snapshot": 3,
        "class_list": ClassList.from_colours({"#ff0000": "Car 1", "#b6ff00": "Bicycle 1"}),
        "classes": ("Car", "Bicycle"),
        "splits": {"train": splits.count("train"), "validation": splits.count("validation")},
        "roots": {"a2d2": "/data/a2d2"},
        "datasources": {"a2d2": "local:a2d2"},
    }
    return Manifest(ManifestHeader(**(header | changes)), rows)  # type: ignore[arg-type]


def keys(shard: Manifest) -> list[str]:
    """Its frames, in order."""
    fkeys: list[str] = shard.frames["fkey"].to_pylist()
    return fkeys


def test_what_is_written_reads_back(tmp_path: Path) -> None:
    """Header and rows survive the disk, from the folder's path and from the header file's."""
    written = manifest().write(tmp_path / "deep" / "down")
    for path in (tmp_path / "deep" / "down", tmp_path / "deep" / "down" / HEADER_FILE):
        manifest_read = Manifest.read(path)
        assert manifest_read.header == written.header
        assert manifest_read.frames.equals(written.frames)
        assert manifest_read.folder == tmp_path / "deep" / "down"


def test_nothing_but_the_two_files_is_left(tmp_path: Path) -> None:
    """Both files are written aside and renamed, and no part stays."""
    manifest().write(tmp_path)
    manifest(20).write(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [FRAMES_FILE, HEADER_FILE]
    assert len(Manifest.read(tmp_path)) == 20


@given(st.integers(0, 60), st.integers(1, 12))
def test_shards_are_disjoint_and_cover_everything(frames: int, shards: int) -> None:
    """Every frame is in exactly one shard, in order, and shards differ by one frame at most."""
    whole = manifest(frames)
    parts = [keys(whole.shard(index, shards)) for index in range(shards)]
    assert sorted(key for shard in parts for key in shard) == sorted(keys(whole))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    order = {key: position for position, key in enumerate(keys(whole))}
    assert all(shard == sorted(shard, key=order.__getitem__) for shard in parts)


@pytest.mark.parametrize(("index", "of"), [(-1, 2), (2, 2), (0, 0), (0, -1)])
def test_a_shard_that_cannot_be_is_refused(index: int, of: int) -> None:
    """Only 0 <= index < of is a shard."""
    with pytest.raises(InvalidInput, match="expected 0 <= shard < shards"):
        manifest().shard(index, of)


def with_columns(whole: Manifest, **columns: Sequence[object]) -> Manifest:
    """The manifest with other values in some columns."""
    frames = whole.frames
    for name, values in columns.items():
        column = pa.array(values, FRAMES_SCHEMA.field(name).type)
        frames = frames.set_column(frames.column_names.index(name), name, column)
    return replace(whole, frames=frames)


def test_the_bytes_of_a_frame_are_those_of_both_files() -> None:
    """The image's alone where there is no label."""
    labels: dict[str, list[object]] = {
        "label": ["x", None, "y"], "label_size": [7, None, 9],
    }  # fmt: skip
    frames = with_columns(manifest(3), image_size=[100, 200, 300], **labels)
    assert frames.frame_bytes().tolist() == [107, 200, 309]


def test_a_copy_s_name_says_its_version() -> None:
    """In a cache; in the source it is the file's own, and the version beside it."""
    whole = with_columns(manifest(3), image_version=["e1", "e2", "e3"])
    staged = replace(whole, header=replace(whole.header, staged=True))
    own, copies = whole.images(), staged.images()
    assert [file.key for file in own] == [f"image-{n}.png" for n in range(3)]
    assert [file.version for file in own] == ["e1", "e2", "e3"]
    assert [file.key for file in copies] == [
        versioned_key("image-0.png", 100, "e1"),
        versioned_key("image-1.png", 101, "e2"),
        versioned_key("image-2.png", 102, "e3"),
    ]
    assert [file.version for file in copies] == [None] * 3


@pytest.mark.parametrize("column", ["image_source", "label_source", "split"])
def test_a_name_that_the_header_lacks_is_damage(tmp_path: Path, column: str) -> None:
    """One row of three that names another source or split, whose name begins like a known one."""
    known = manifest(3).frames[column].to_pylist()
    strange = with_columns(manifest(3), **{column: [*known[:2], f"{known[2]}2"]})
    strange.write(tmp_path)
    with pytest.raises(BadFile, match=f"it has no (source|split) '{known[2]}2'"):
        Manifest.read(tmp_path)


def test_splits_keep_the_order_and_divide_the_frames() -> None:
    """split() gives a split's frames in the dataset's order, and all of them for None."""
    whole = manifest()
    train, validation = whole.split("train"), whole.split("validation")
    assert len(train) == whole.header.splits["train"]
    assert [k for k in keys(whole) if k in set(keys(train))] == keys(train)
    assert not set(keys(train)) & set(keys(validation))
    assert len(train) + len(validation) == len(whole)
    assert whole.split(None) is whole


def test_an_unknown_split_names_the_known_ones() -> None:
    """A typing mistake is answered with what was meant."""
    of = manifest()
    words = (
        rf"unknown split 'vaildation': did you mean validation\? Dataset {of.header.name} has no"
    )
    with pytest.raises(UnknownName, match=words):
        of.split("vaildation")


def test_paths_lie_below_the_sources_root() -> None:
    """Image and label paths are root and key, in order."""
    shard = manifest(2)
    assert shard.image_paths() == ["/data/a2d2/image-0.png", "/data/a2d2/image-1.png"]
    assert shard.label_paths() == ["/data/a2d2/label-0.png", "/data/a2d2/label-1.png"]


def _drop_frames(folder: Path) -> None:
    (folder / FRAMES_FILE).unlink()


def _drop_header(folder: Path) -> None:
    (folder / HEADER_FILE).unlink()


def _cut_frames(folder: Path) -> None:
    path = folder / FRAMES_FILE
    path.write_bytes(path.read_bytes()[:-20])


def _cut_header(folder: Path) -> None:
    path = folder / HEADER_FILE
    path.write_text(path.read_text()[:100])


def _other_frames(folder: Path) -> None:
    manifest(3).write(folder / "other")
    (folder / "other" / FRAMES_FILE).replace(folder / FRAMES_FILE)


def _change_header(folder: Path, **changes: object) -> None:
    path = folder / HEADER_FILE
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def _binary_header(folder: Path) -> None:
    (folder / HEADER_FILE).write_bytes(b"\xff\xfe\x00")


def _list_header(folder: Path) -> None:
    (folder / HEADER_FILE).write_text("[]")


def _later_format(folder: Path) -> None:
    _change_header(folder, format=FORMAT + 1)


def _no_root(folder: Path) -> None:
    _change_header(folder, roots={})


def _no_split(folder: Path) -> None:
    _change_header(folder, splits={"train": 10})


def _odd_key(folder: Path) -> None:
    _change_header(folder, surprise=1)


def _other_columns(folder: Path) -> None:
    path = folder / FRAMES_FILE
    pq.write_table(pa.table({"x": [1]}), path)
    _change_header(folder, frames_sha256=hashlib.sha256(path.read_bytes()).hexdigest())


@pytest.mark.parametrize(
    "damage",
    [
        _drop_frames, _drop_header, _cut_frames, _cut_header, _other_frames, _binary_header,
        _list_header, _later_format, _no_root, _no_split, _odd_key, _other_columns,
    ],
)  # fmt: skip
def test_a_damaged_manifest_is_refused_on_one_line(tmp_path: Path, damage: object) -> None:
    """Half, cut, mixed, foreign or later manifests are a BadFile, never a traceback."""
    manifest().write(tmp_path)
    assert callable(damage)
    damage(tmp_path)
    with pytest.raises(BadFile) as caught:
        Manifest.read(tmp_path)
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    """No folder, an empty one and a file in its place say what a manifest is."""
    (tmp_path / "file").touch()
    for path in (tmp_path / "nowhere", tmp_path, tmp_path / "file"):
        with pytest.raises(BadFile, match="expected a manifest folder"):
            Manifest.read(path)


def test_a_place_that_cannot_be_written_is_a_storage_error(tmp_path: Path) -> None:
    """A file where the folder should be: one line, and nothing half-written."""
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="the manifest cannot be written: "):
        manifest().write(tmp_path / "file")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_module_is_a_leaf() -> None:
    """A training node needs pyarrow and nothing else: no database, no web framework."""
    code = "import sys, pipeline.manifest; print(sorted(sys.modules))"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    for heavy in ("duckdb", "sqlalchemy", "fastapi", "pydantic", "sqlglot", "typer", "httpx"):
        assert f"'{heavy}'" not in run.stdout


@pytest.mark.parametrize("format_", [1, 3])
def test_formats_of_before_are_refused(tmp_path: Path, format_: int) -> None:
    """The message names both formats and says how to go on; the client's own reader refuses too."""
    manifest().write(tmp_path)
    _change_header(tmp_path, format=format_)
    reads = f"manifest format {format_}; this version reads {FORMAT}"
    with pytest.raises(BadFile, match=rf"{reads}; .*\(framesift dataset export\)"):
        Manifest.read(tmp_path)
    with pytest.raises(framesift.BadFile, match=reads):
        open_frames(tmp_path)


def test_manifests_without_segments(tmp_path: Path) -> None:
    """Those that were written before panoptic labels are read, by the client's own reader too."""
    whole = manifest().write(tmp_path)
    path = tmp_path / FRAMES_FILE
    pq.write_table(pq.read_table(path).drop_columns("label_segments"), path)
    _change_header(tmp_path, frames_sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    assert Manifest.read(tmp_path).frames == whole.frames
    assert open_frames(tmp_path).names == keys(whole)


def test_a_relative_root_lies_beside_the_manifest(tmp_path: Path) -> None:
    """A staged manifest finds its files wherever its cache is mounted or moved to."""
    manifest(roots={"a2d2": "../../local:a2d2"}, staged=True).write(tmp_path / "a/.manifests/d")
    (tmp_path / "a").rename(tmp_path / "b")
    manifest_read = Manifest.read(tmp_path / "b/.manifests/d")
    assert manifest_read.header.roots == {"a2d2": str(tmp_path / "b" / "local:a2d2")}
    assert all(
        path.startswith(f"{tmp_path}/b/local:a2d2/image-") for path in manifest_read.image_paths()
    )


def test_frames_without_a_label_are_counted_and_refused_by_name() -> None:
    """What needs labels says how many are missing, of what, and how to leave them out."""
    whole = manifest()
    rows = whole.frames.to_pylist()
    for row in rows[:4]:
        row.update(dict.fromkeys((*(n for n in row if n.startswith("label")), "class_pixels")))
    shard = Manifest(whole.header, pa.Table.from_pylist(rows, FRAMES_SCHEMA))
    assert shard.unlabelled() == 4
    assert shard.label_paths()[3:5] == [None, "/data/a2d2/label-4.png"]
    assert shard.labels()[0] is None
    assert len(shard.images()) == 10
    with pytest.raises(
        InvalidInput, match=r"made-up@1: 3 of the 7 frames of train have no label.*labelled = 1"
    ):
        shard.split("train").need_labels()
    assert class_matrix(shard.frames, 2)[:5].tolist() == [[0, 0]] * 4 + [[4, 0]]
    assert len(whole.need_labels()) == 10
