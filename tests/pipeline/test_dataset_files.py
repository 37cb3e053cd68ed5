"""Datasets compared, and written for other programs."""

import csv
import io
import json
import re
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd  # type: ignore[import-untyped,unused-ignore]
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from api.schemas.new_datasets import NewDataset, NewSplit
from api.services.datasets.new_dataset import divide_dataset, make_dataset
from api.workspace import Workspace
from catalog.errors import InvalidInput, StorageError
from catalog.records.tables import Dataset
from pipeline.datasets import diff
from pipeline.datasets.class_lists import tags_of
from pipeline.datasets.diff import (
    Changed,
    DatasetDiff,
    diff_datasets,
    diff_to_json,
    diff_to_rows,
    diff_to_text,
)
from pipeline.datasets.export import export_text, write_export
from pipeline.manifest import Manifest
from query.question.question import Question
from tests.pipeline.homes import FRAMES, SAMPLE
from tests.query.workbooks import workbook_columns


def make(workspace: Workspace, name: str, where: str | None = None, **more: object) -> Dataset:
    """A dataset of the drawn frames."""
    request = {"name": name, "question": Question(where=where)} | more
    return make_dataset(workspace, NewDataset.model_validate(request))


@pytest.mark.wide
def test_frames_and_distributions_are_compared(workspace: Workspace) -> None:
    """Added, removed, and shares as counted from the manifests."""
    front = make(workspace, "front", "front = 1")
    cars = make(workspace, "cars", "car >= 50000")
    difference = diff_datasets(workspace.records, front, cars)
    one, other = (
        set(Manifest.read(Path(dataset.manifest)).frames["fkey"].to_pylist())
        for dataset in (front, cars)
    )
    added, removed = (
        changed.rows["fkey"].to_pylist() for changed in (difference.added, difference.removed)
    )
    assert (added, removed) == (sorted(other - one), sorted(one - other))
    assert added
    assert removed
    assert difference.frames == (len(one), len(other))
    assert difference.moved.frames == 0
    shares = {change.value: change for change in difference.pixels.values}
    assert shares["Car"].before == pytest.approx(
        front.class_pixels["car"] / sum(front.class_pixels.values())
    )
    presence = {change.value: change for change in difference.presence.values}
    assert presence["Car"].after == 1.0
    assert presence["Bicycle"].before == front.class_frames["bicycle"] / front.frames
    assert difference.pixels.distance is not None
    assert 0 < difference.pixels.distance.total_variation < 1
    rows = diff_to_rows(difference).to_pylist()
    assert [row["fkey"] for row in rows] == [*added, *removed]
    assert {tuple(row.values())[1:] for row in rows} == {
        ("added", None, "all"), ("removed", "all", None)
    }  # fmt: skip
    assert diff_to_rows(diff_datasets(workspace.records, front, cars, 0)).num_rows == 0
    same = diff_datasets(workspace.records, front, front)
    assert [kind.frames for kind in (same.added, same.removed, same.moved)] == [0, 0, 0]
    assert same.scenes.distance is not None
    assert same.scenes.distance.total_variation == 0
    first = diff_to_json(diff_datasets(workspace.records, front, cars, 1))
    assert (first["removed"], first["frames_removed"]) == (removed[:1], len(removed))


@pytest.mark.parametrize("frames", [0, 1, 4, 5, 11])
def test_a_differences_text_is_that_of_its_json(
    monkeypatch: pytest.MonkeyPatch, frames: int
) -> None:
    """In pieces of two frames and with names that JSON escapes, to the character."""
    monkeypatch.setattr(diff, "_TEXT_ROWS", 2)
    names = [f'a:b:"quoted" \\ \n "moved": [ grün {number}' for number in range(frames)]

    def changed(before: str | None, after: str | None, most: int) -> Changed:
        rows = [{"fkey": name, "before": before, "after": after} for name in names[:most]]
        schema = pa.schema([(name, pa.string()) for name in ("fkey", "before", "after")])
        return Changed(len(names), pa.Table.from_pylist(rows, schema))

    empty = diff.Compared((), None)
    difference = DatasetDiff(
        'one "added": [', "other", (3, 4), changed(None, "a", 11), changed("b", None, 1),
        changed("a", 'b"', 3), empty, empty, empty, empty,
    )  # fmt: skip
    expected = json.dumps(diff_to_json(difference), indent=2, ensure_ascii=False)
    assert "".join(diff_to_text(difference)) == expected
    assert list(json.loads(expected))[7:10] == ["added", "removed", "moved"]


def test_frames_that_change_sides_are_named(workspace: Workspace) -> None:
    """Divided again: nothing added or removed, every move told."""
    first = make(workspace, "all", split="train=0.75,validation=0.25")
    second = divide_dataset(workspace, "all", NewSplit(split="train=0.25,validation=0.75"))
    difference = diff_datasets(workspace.records, first, second)
    assert (difference.added.frames, difference.removed.frames) == (0, 0)
    sides = [
        dict(zip(rows["fkey"].to_pylist(), rows["split"].to_pylist(), strict=True))
        for rows in (Manifest.read(Path(dataset.manifest)).frames for dataset in (first, second))
    ]
    moved = {fkey for fkey, split in sides[0].items() if sides[1][fkey] != split}
    assert difference.moved.rows.to_pylist() == [
        {"fkey": fkey, "before": sides[0][fkey], "after": sides[1][fkey]} for fkey in sorted(moved)
    ]
    assert {tuple(row.values()) for row in diff_to_rows(difference).to_pylist()} == {
        (fkey, "moved", sides[0][fkey], sides[1][fkey]) for fkey in moved
    }
    assert moved


@pytest.fixture
def exported(workspace: Workspace) -> tuple[Manifest, list[str]]:
    """A manifest, and its class tags."""
    dataset = make(workspace, "all", split="train=0.75,validation=0.25")
    manifest = Manifest.read(Path(dataset.manifest))
    return manifest, list(tags_of(manifest))


def test_tables_hold_the_manifests_rows(
    exported: tuple[Manifest, list[str]], tmp_path: Path
) -> None:
    """CSV, Parquet and JSON lines say the same, and it is what the label images hold."""
    manifest, tags = exported
    text = "".join(export_text(manifest, tags, "csv"))
    rows = list(csv.DictReader(io.StringIO(text)))
    write_export(manifest, tags, "parquet", tmp_path / "frames.parquet")
    table = pq.read_table(tmp_path / "frames.parquet")
    lines = [
        json.loads(line) for line in "".join(export_text(manifest, tags, "jsonl")).splitlines()
    ]
    assert table.to_pylist() == lines
    assert [{key: str(value) for key, value in row.items()} for row in lines] == rows
    assert len(rows) == FRAMES
    for row, pixels in zip(lines, manifest.frames["class_pixels"].to_pylist(), strict=True):
        assert [row[tag] for tag in tags] == pixels
        assert Path(row["image"]).stat().st_size == row["image_size"]
    sky = {f"#{key.key:06x}" for key in manifest.header.class_list.keys if key.name == "Sky"}
    counted = 0
    label = np.asarray(Image.open(lines[0]["label"]).convert("RGB"))
    for colour in sky:
        expected = [int(colour[offset : offset + 2], 16) for offset in (1, 3, 5)]
        counted += int((label == expected).all(axis=2).sum())
    assert counted == lines[0]["sky"]


def test_tables_in_their_readers(exported: tuple[Manifest, list[str]], tmp_path: Path) -> None:
    """CSV, Parquet, JSON lines and a workbook are read alike: rows, columns, sums, splits."""
    manifest, tags = exported
    for suffix in ("csv", "parquet", "jsonl", "xlsx"):
        write_export(manifest, tags, suffix, tmp_path / f"frames.{suffix}")
    whole = pq.read_table(tmp_path / "frames.parquet").to_pandas()
    read = {
        "csv": pd.read_csv(tmp_path / "frames.csv"),
        "jsonl": pd.read_json(tmp_path / "frames.jsonl", lines=True),
        "xlsx": pd.DataFrame(workbook_columns((tmp_path / "frames.xlsx").read_bytes())),
    }
    for table in read.values():
        assert list(table.columns) == list(whole.columns)
        same = [[*frame[name]] for frame in (table, whole) for name in ("fkey", "split", *tags)]
        assert same[: len(same) // 2] == same[len(same) // 2 :]
    for suffix, reader in (("csv", "read_csv"), ("parquet", "read_parquet"),
                           ("jsonl", "read_json")):  # fmt: skip
        rows = duckdb.execute(
            f"SELECT count(*), sum(sky), count(*) FILTER (split = 'train') "
            f"FROM {reader}('{tmp_path}/frames.{suffix}')"
        ).fetchone()
        train = int((whole["split"] == "train").sum())
        assert rows == (FRAMES, int(whole["sky"].sum()), train)
        assert 0 < train < FRAMES


def test_lists_of_files(exported: tuple[Manifest, list[str]], tmp_path: Path) -> None:
    """A path per line; images alone, or with their labels; of one split."""
    manifest, tags = exported
    write_export(manifest.split("train"), tags, "files", tmp_path / "list.txt")
    listed = (tmp_path / "list.txt").read_text().splitlines()
    assert len(listed) == manifest.header.splits["train"]
    assert all(Path(path).is_file() for path in listed)
    pairs = "".join(export_text(manifest, tags, "files", with_labels=True)).splitlines()
    assert [tuple(pair.split("\t")) for pair in pairs] == list(
        zip(manifest.image_paths(), manifest.label_paths(), strict=True)
    )


@pytest.mark.attacks
def test_names_that_are_no_line(exported: tuple[Manifest, list[str]]) -> None:
    """A name with a line feed would make a path of its maker's choice: refused before any line."""
    manifest, tags = exported
    names = manifest.frames["image"].to_pylist()
    for odd, with_labels in (("a\n/etc/passwd", False), ("a\rb", False), ("a\tb", True)):
        column = pa.array([*names[:-1], odd])
        position = manifest.frames.column_names.index("image")
        forged = Manifest(manifest.header, manifest.frames.set_column(position, "image", column))
        with pytest.raises(InvalidInput, match=r"is no line; csv and jsonl take every name"):
            export_text(forged, tags, "files", with_labels=with_labels)
        assert next(iter(export_text(forged, tags, "csv")))


def test_a_fiftyone_dataset(exported: tuple[Manifest, list[str]], tmp_path: Path) -> None:
    """Images, labels as segmentations, colours of classes: what FiftyOne 1.22's importer reads."""
    manifest, tags = exported
    out = tmp_path / "export"
    for _ in range(2):  # a second time in its place
        write_export(manifest, tags, "fiftyone", out)
    assert sorted(path.name for path in out.iterdir()) == ["metadata.json", "samples.json"]
    metadata = json.loads((out / "metadata.json").read_text())
    assert "version" not in metadata
    # A colour's class as a plain text: FiftyOne 1.22.1 refuses anything else.
    targets = metadata["info"]["mask_targets"]
    names = {f"#{key.key:06x}": key.listed_name for key in manifest.header.class_list.keys}
    assert targets == {"ground_truth": names}
    assert all(re.fullmatch("#[0-9a-f]{6}", colour) for colour in targets["ground_truth"])
    assert metadata["info"]["classes"] == {"ground_truth": list(dict.fromkeys(names.values()))}
    samples = json.loads((out / "samples.json").read_text())["samples"]
    assert len(samples) == FRAMES
    for sample, split in zip(samples, manifest.frames["split"].to_pylist(), strict=True):
        assert sample["tags"] == [split]
        assert Path(sample["filepath"]).is_file()
        assert sample["ground_truth"]["_cls"] == "Segmentation"
        assert Path(sample["ground_truth"]["mask_path"]).is_file()


def test_nothing_of_others_is_overwritten(
    exported: tuple[Manifest, list[str]], tmp_path: Path
) -> None:
    """A folder with other files is refused and stays; so is a place that cannot be written."""
    manifest, tags = exported
    (tmp_path / "samples.json").write_text("mine")
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InvalidInput, match="holds something else"):
        write_export(manifest, tags, "fiftyone", tmp_path)
    with pytest.raises(InvalidInput, match="holds something else"):
        write_export(manifest, tags, "csv", tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix) == [
        "notes.txt", "samples.json",
    ]  # fmt: skip
    with pytest.raises(StorageError, match="cannot be written"):
        write_export(manifest, tags, "csv", tmp_path / "nowhere" / "x.csv")


def test_sources_are_where_they_were(workspace: Workspace) -> None:
    """Paths begin with the source's root."""
    manifest = Manifest.read(Path(make(workspace, "all").manifest))
    first = next(iter(export_text(manifest, [], "files"))).splitlines()[0]
    assert first.startswith(f"{SAMPLE}/")
