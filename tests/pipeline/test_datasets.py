"""A selection saved, versioned and never changed again."""

import hashlib
import json
import shutil
import signal
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from api.schemas.new_datasets import NewDataset
from api.services.datasets.new_dataset import make_dataset
from api.workspace import Workspace
from catalog.errors import AlreadyExists, BadFile, InvalidInput, NotFound, StorageError, UnknownName
from catalog.records.datasets import recorded_dataset, recorded_datasets
from catalog.records.sources import recorded_source, recorded_sources
from catalog.records.tables import Dataset
from ingest.scan.change_source import remove_source
from ingest.scan.scan import scan_source
from pipeline.datasets.changes import remove_dataset, rename_dataset
from pipeline.datasets.content_digest import ContentDigest
from pipeline.datasets.datasets import create_dataset
from pipeline.datasets.row_counts import RowCounts
from pipeline.datasets.stores import Stores
from pipeline.datasets.visible_datasets import visible_part
from pipeline.manifest import Manifest
from pipeline.manifest_rows import FRAMES_SCHEMA
from query.frames import frame_portions
from query.frames.file_versions import with_label_sizes_and_versions
from query.frames.select_frames import select_frames
from query.question.label_range import LabelRange
from query.question.question import Question
from tests.pipeline.homes import FRAMES, SAMPLE, add_source, make_home, open_home
from tests.pipeline.test_manifest import manifest
from tests.zygote import run_python

SPLIT = "train=0.75,validation=0.25"


def make(
    workspace: Workspace,
    name: str = "streets",
    *ranges: str,
    split: str | None = None,
    split_by: str = "scene",
    seed: int = 0,
) -> Dataset:
    """A dataset of the frames within the ranges."""
    question = Question(ranges=tuple(LabelRange.parse(text) for text in ranges))
    request = NewDataset(name=name, question=question, split=split, split_by=split_by, seed=seed)
    return make_dataset(workspace, request)


def test_a_dataset_lies_on_disk_as_its_record_says(workspace: Workspace) -> None:
    """Record and manifest agree, and the manifest's files are the source's, size for size."""
    dataset = make(workspace, split=SPLIT)
    manifest = Manifest.read(Path(dataset.manifest))
    assert (dataset.name, dataset.version, dataset.frames) == ("streets", 1, FRAMES)
    assert dataset.manifest == str(workspace.home / "datasets" / "streets" / "v1")
    assert manifest.header.id == dataset.content_id
    assert manifest.header.snapshot == dataset.snapshot == workspace.catalog.snapshot()
    assert dict(manifest.header.splits) == dataset.splits
    assert manifest.header.roots == {"a2d2": str(SAMPLE)}
    assert not manifest.header.staged
    sums = [
        sum(pixels) for pixels in zip(*manifest.frames["class_pixels"].to_pylist(), strict=True)
    ]
    assert sums == list(dataset.class_pixels.values())
    assert len(manifest.header.classes) == len(sums)
    for paths, column in (
        (manifest.image_paths(), "image_size"),
        (manifest.label_paths(), "label_size"),
    ):
        assert [Path(str(p)).stat().st_size for p in paths] == manifest.frames[column].to_pylist()


def test_scenes_stay_on_one_side(workspace: Workspace) -> None:
    """Divided by scene, no scene is in two splits; splits count what they hold."""
    manifest = Manifest.read(Path(make(workspace, split=SPLIT).manifest))
    sides: dict[str, set[str]] = {}
    rows = zip(
        manifest.frames["scene"].to_pylist(), manifest.frames["split"].to_pylist(), strict=True
    )
    for scene, split in rows:
        sides.setdefault(scene, set()).add(split)
    assert all(len(splits) == 1 for splits in sides.values())
    for name, count in manifest.header.splits.items():
        assert len(manifest.split(name)) == count > 0


def test_the_same_question_is_the_same_dataset(workspace: Workspace) -> None:
    """Asked again, the same version comes back; nothing is written and none is added."""
    first = make(workspace, split=SPLIT)
    before = (Path(first.manifest) / "manifest.json").stat().st_mtime_ns
    again = make(workspace, split=SPLIT)
    assert (again.id, again.content_id, again.version) == (first.id, first.content_id, 1)
    assert len(recorded_datasets(workspace.records)) == 1
    assert (Path(first.manifest) / "manifest.json").stat().st_mtime_ns == before


def test_another_question_is_a_new_version_and_the_old_one_stays(workspace: Workspace) -> None:
    """Version 1's files are byte for byte what they were after version 2 was made."""
    first = make(workspace)
    contents = {path.name: path.read_bytes() for path in Path(first.manifest).iterdir()}
    second = make(workspace, "streets", "car=10000:")
    assert (second.version, second.frames) != (1, FRAMES)
    assert second.version == 2
    assert second.content_id != first.content_id
    assert {path.name: path.read_bytes() for path in Path(first.manifest).iterdir()} == contents
    assert make(workspace).version == 1


@pytest.mark.parametrize(
    "change",
    [{"split": "train=0.5,validation=0.5"}, {"split_by": "frame"}, {"seed": 7}],
    ids=lambda change: next(iter(change)),
)
def test_whatever_changes_the_division_changes_the_id(
    workspace: Workspace, change: dict[str, str]
) -> None:
    """Shares, grouping and seed are part of what a dataset is."""
    first = make(workspace, split=SPLIT)
    other = make(workspace, **({"split": SPLIT} | change))  # type: ignore[arg-type]
    assert other.content_id != first.content_id
    assert other.version == 2


def test_a_new_scan_makes_a_new_version(own_source: Workspace) -> None:
    """The snapshot is part of the id: a dataset of a changed catalog is another one."""
    first = make(own_source)
    source = recorded_source(own_source.records, "a2d2")
    (Path(source.uri) / "notes.txt").write_text("new")
    scan_source(own_source.whole_catalog, own_source.records, source)
    second = make(own_source)
    assert second.snapshot > first.snapshot
    assert second.version == 2


def test_labels_without_images_are_refused(own_source: Workspace) -> None:
    """There is nothing to train on; the condition that the message offers leaves them out."""
    source = recorded_source(own_source.records, "a2d2")
    scene = next(Path(source.uri).glob("*/*/camera"))
    gone = len(list(scene.rglob("*.png")))
    shutil.rmtree(scene)
    scan_source(own_source.whole_catalog, own_source.records, source)
    with pytest.raises(InvalidInput, match=f"{gone} of the selection's .* without a camera image"):
        make(own_source, "everything", "sky=0:")
    question = Question(where="filename LIKE '%_camera_%'")
    rest = make_dataset(own_source, NewDataset(name="rest", question=question))
    assert rest.frames == FRAMES - gone


@pytest.mark.wide
def test_the_id_depends_on_neither_machine_nor_time(tmp_path: Path) -> None:
    """Two homes that catalogued the same files, at other places and times, agree on the id."""
    ids = set()
    for number in range(2):
        root = tmp_path / f"mounted-{number}"
        shutil.copytree(SAMPLE, root)
        make_home(tmp_path / f"home-{number}", root)
        ids.add(make(open_home(tmp_path / f"home-{number}"), split=SPLIT).content_id)
    assert len(ids) == 1


@pytest.mark.wide
def test_a_version_once_told_of_never_means_another_dataset(workspace: Workspace) -> None:
    """Neither removed nor renamed is its number given again; a name that begins alike is apart."""
    records = workspace.records
    for name, *ranges in (["streets"], ["streets", "car=1:"], ["streets2"]):
        make(workspace, name, *ranges)
    assert remove_dataset(records, "streets@2") == ["streets@2"]
    assert make(workspace, "streets", "car=1:").version == 3
    assert rename_dataset(records, "streets", "roads").version == 3
    assert make(workspace, "streets").version == 4
    for taken in ("streets", "roads"):
        with pytest.raises(AlreadyExists, match="has this name, or had it"):
            rename_dataset(records, "streets2", taken)
    names = {f"{one.name}@{one.version}" for one in recorded_datasets(records)}
    assert names == {"roads@1", "roads@3", "streets@4", "streets2@1"}
    assert remove_dataset(records, "roads") == ["roads@1", "roads@3"]
    names = {f"{one.name}@{one.version}" for one in recorded_datasets(records)}
    assert names == {"streets@4", "streets2@1"}


@pytest.mark.parametrize(
    ("settings", "frames"),
    [({}, FRAMES), ({"split": SPLIT}, FRAMES), ({"limit": 7}, 7), ({"sample": 9}, 9)],
)
def test_portions_make_the_same_dataset(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], frames: int
) -> None:
    """In portions of a few frames each row, its order, the split and the id are the same."""
    asked = {key: settings[key] for key in ("limit", "sample") if key in settings}
    request = NewDataset(name="whole", question=Question(**asked), split=settings.get("split"))
    whole = make_dataset(workspace, request)
    monkeypatch.setattr(frame_portions, "_SAMPLED", 1)
    monkeypatch.setattr(frame_portions, "PORTION_ROWS", 5)
    writes: list[int] = []
    monkeypatch.setattr(RowCounts, "add", counted(RowCounts.add, writes))
    portioned = make_dataset(workspace, request.model_copy(update={"name": "portioned"}))
    assert len(writes) > 1
    assert sum(writes) == frames
    assert portioned.content_id == whole.content_id
    assert portioned.class_pixels == whole.class_pixels
    assert portioned.class_frames == whole.class_frames
    one, other = (Manifest.read(Path(d.manifest)) for d in (whole, portioned))
    assert one.frames.equals(other.frames)
    assert one.header.splits == other.header.splits


def test_a_file_of_the_same_hash_is_not_the_frames(workspace: Workspace) -> None:
    """A name decides and no hash: with each other's hashes no frame has its label's version."""
    hashes = ["image_hash", "label_hash"]
    with frame_portions.frame_portions(workspace.catalog, Question(), None, ()) as portions:
        rows = portions._rows("true", None)
        assert with_label_sizes_and_versions(portions._cursor, rows).num_rows == FRAMES
        others = rows.slice(1).select(hashes)
        others = pa.concat_tables([others, rows.slice(0, 1).select(hashes)])
        for name in hashes:
            index = rows.column_names.index(name)
            rows = rows.set_column(index, name, others[name])
        assert with_label_sizes_and_versions(portions._cursor, rows).num_rows == 0


def counted(
    add: Callable[[RowCounts, pa.Table], None], writes: list[int]
) -> Callable[[RowCounts, pa.Table], None]:
    """A method that notes the rows of each call."""

    def noting(self: RowCounts, rows: pa.Table) -> None:
        writes.append(rows.num_rows)
        add(self, rows)

    return noting


def test_what_is_wrong_is_said_before_frames_are_read(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A source without a record, an unknown class, column or stratum: no portion is asked for."""

    def rows(*_: object, **__: object) -> pa.Table:
        raise AssertionError("frames were read")

    monkeypatch.setattr(frame_portions.FramePortions, "_rows", rows)
    with pytest.raises(UnknownName, match="cars"):
        make(workspace, "wrong", "cars=1:")
    with pytest.raises(UnknownName, match="weather"):
        make(workspace, "wrong", split=SPLIT, split_by="weather")
    with workspace.records.session() as session:
        (source,) = recorded_sources(workspace.records)
        session.delete(session.merge(source))
    with pytest.raises(NotFound, match="no source named"):
        make(workspace, "wrong")


def content_id(question: Mapping[str, object], snapshot: int, rows: pa.Table) -> str:
    """The id of a dataset with these rows."""
    digest = ContentDigest(question, snapshot)
    digest.update(rows)
    return digest.hexdigest()


@pytest.mark.parametrize("text", ["a.png", 'a"b', "a\\b", "ä", "a\x1fb", "", None])
def test_the_id_is_of_json_lists(text: str | None) -> None:
    """A list for each frame as json.dumps writes it, whatever characters its texts have."""
    names = ("split", "fkey", "image_version", "label", "label_version")
    rows = [["all", "a", "v", "l", "w"], ["all", "b", text, text, text], ["x", "c", "v", None, ""]]
    columns = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
    expected = json.dumps([{"where": "x"}, 7], sort_keys=True) + "".join(map(json.dumps, rows))
    table = pa.table([*columns, pa.nulls(3, pa.string())], names=[*names, "label_segments"])
    ids = [content_id({"where": "x"}, 7, one) for one in (table, pa.concat_tables([table] * 2))]
    twice = expected + "".join(map(json.dumps, rows))
    assert ids == [hashlib.sha256(one.encode()).hexdigest() for one in (expected, twice)]
    later = pa.concat_tables([table, table]).slice(len(table))
    assert content_id({"where": "x"}, 7, later) == ids[0]


def test_the_id_is_of_the_segments() -> None:
    """Those of each panoptic label, in whichever portions the frames come."""
    rows = manifest(4).frames.to_pylist()
    tables = [
        pa.Table.from_pylist([rows[0], *({**row, **of} for row in rows[1:])], FRAMES_SCHEMA)
        for of in ({"label_segments": text} for text in (None, "", "1:7", "1:7 2:3"))
    ]
    ids = [content_id({}, 7, table) for table in tables]
    assert len({*ids}) == len(ids)
    for table, one in zip(tables, ids, strict=True):
        digest = ContentDigest({}, 7)
        for number in range(len(table)):
            digest.update(table.slice(number, 1))
        assert digest.hexdigest() == one


def test_the_id_is_of_the_frames_and_of_each_file_s_version() -> None:
    """Another split, frame, version of either file, order, question or snapshot is another id."""
    rows = manifest(3).frames
    whole = rows.to_pylist()
    question = {"ranges": ["car=1:"], "where": "x"}
    ids = [content_id(question, 3, rows), content_id(question, 4, rows)]
    ids.append(content_id({**question, "where": "y"}, 3, rows))
    ids.append(content_id(question, 3, rows.take([1, 0, 2])))
    for column in ("split", "fkey", "image_version", "label", "label_version"):
        changed = pa.Table.from_pylist([*whole[:2], whole[2] | {column: "x"}], rows.schema)
        ids.append(content_id(question, 3, changed))
    assert len({*ids}) == len(ids)
    assert content_id(dict(reversed([*question.items()])), 3, rows) == ids[0]
    resized = pa.Table.from_pylist([*whole[:2], whole[2] | {"image_source": "x"}], rows.schema)
    assert content_id(question, 3, resized) == ids[0]


def test_a_name_that_cannot_be_a_folder_is_refused(workspace: Workspace) -> None:
    """Names are folders on every system: nothing is written for another one."""
    for name in ("", ".", "..", "a/b", "/a", "a b", "-a", ".a", "a@1", "ä", "a\n", "x" * 128):
        with pytest.raises(InvalidInput, match="dataset name"):
            make(workspace, name)
    assert not (workspace.home / "datasets").exists()


def test_a_dataset_without_frames_is_refused(workspace: Workspace) -> None:
    """An empty answer is no dataset; the message says what to do."""
    with pytest.raises(InvalidInput, match="no frames; widen its ranges"):
        make(workspace, "streets", "car=9000000:")
    assert recorded_datasets(workspace.records) == []


def test_a_grouping_that_does_not_exist_is_refused(workspace: Workspace) -> None:
    """Scene, camera, any other tag or column, and frame are the groupings."""
    with pytest.raises(UnknownName, match="unknown column 'colour'"):
        make(workspace, split=SPLIT, split_by="colour")


@pytest.mark.wide
def test_two_sources_with_one_class_list_make_one_dataset(
    workspace: Workspace, tmp_path: Path
) -> None:
    """Each source has its own root; every frame finds its file."""
    shutil.copytree(SAMPLE, tmp_path / "second")
    add_source(workspace, "second", tmp_path / "second")
    dataset = make(workspace)
    manifest = Manifest.read(Path(dataset.manifest))
    assert dataset.frames == 2 * FRAMES
    assert set(manifest.header.roots) == {"a2d2", "second"}
    paths = [*manifest.image_paths(), *manifest.label_paths()]
    assert all(Path(str(path)).is_file() for path in paths)


def test_a_source_with_another_class_list(workspace: Workspace, tmp_path: Path) -> None:
    """It keeps its own in the manifest; a part that users see tells of no other source."""
    root = tmp_path / "second"
    shutil.copytree(SAMPLE, root)
    listed = root / "camera_lidar_semantic" / "class_list.json"
    classes = json.loads(listed.read_text())
    classes["#010203"] = "Unicorn"
    listed.write_text(json.dumps(classes))
    add_source(workspace, "second", root)
    header = Manifest.read(Path(make(workspace).manifest)).header
    assert [sources for sources, _ in header.class_lists] == [("second",)]
    assert (len(header.class_list), len(header.classes)) == (38, 39)
    assert header.dataset_classes.tags[38] == "unicorn"
    rows = Manifest.read(Path(make(workspace).manifest)).frames
    of_first = rows.filter(pc.equal(rows["image_source"], "a2d2"))
    assert 0 < len(of_first) < len(rows)
    visible = visible_part(Manifest(header, of_first), of_first).write(tmp_path / "seen")
    seen = Manifest.read(tmp_path / "seen").header
    assert seen == visible.header
    assert "second" not in (tmp_path / "seen" / "manifest.json").read_text()
    assert seen.dataset_classes.names == seen.classes == header.classes


@pytest.mark.wide
@pytest.mark.parametrize("sampled", [1, 1_024])
def test_the_sources_are_those_of_the_frames(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sampled: int
) -> None:
    """Whether all names tell of sources or next to none: those of the frames, up to the limit."""
    monkeypatch.setattr(frame_portions, "_SAMPLED", sampled)
    shutil.copytree(SAMPLE / "camera_lidar_semantic", tmp_path / "b" / "camera_lidar_semantic")
    add_source(workspace, "b", tmp_path / "b")
    for settings, expected in (
        ({}, ["a2d2", "b"]),
        ({"limit": FRAMES}, ["a2d2"]),
        ({"limit": FRAMES + 1}, ["a2d2", "b"]),
        ({"where": "datasource = 'b'"}, ["b"]),
        ({"where": "datasource = 'a2d2' and car > 0"}, ["a2d2"]),
        ({"where": "datasource = 'c'"}, []),
    ):
        question = Question.model_validate(settings)
        with frame_portions.frame_portions(workspace.catalog, question, None, ()) as portions:
            assert [datasource for _, datasource in portions.sources] == expected
            frames = [name for rows in portions for name in rows.frames["datasource"].to_pylist()]
            assert sorted(set(frames)) == expected


def test_a_removed_source_is_named(workspace: Workspace) -> None:
    """A selection made before its source was removed says so instead of crashing."""
    selection = select_frames(workspace.catalog, Question())
    remove_source(workspace.whole_catalog, workspace.records, "a2d2")
    with pytest.raises(NotFound, match=r"no source named 'a2d2'.*it has been removed"):
        create_dataset(Stores(workspace.catalog, workspace.records), "streets", selection)


def test_a_file_uri_is_a_folder_to_jobs(workspace: Workspace) -> None:
    """A source added as file:///... is a path in the manifest."""
    with workspace.records.session() as session:
        source = recorded_source(workspace.records, "a2d2")
        session.add(source)
        source.uri = SAMPLE.as_uri()
    manifest = Manifest.read(Path(make(workspace).manifest))
    assert manifest.header.roots == {"a2d2": str(SAMPLE)}
    assert Path(manifest.image_paths()[0]).is_file()


def test_name_and_version_find_a_dataset(workspace: Workspace) -> None:
    """NAME is the newest version, NAME@VERSION that one; others are not found."""
    make(workspace)
    make(workspace, "streets", "car=1:")
    find = partial(recorded_dataset, workspace.records)
    assert find("streets").version == 2
    assert find("streets@1").version == 1
    for name in ("streets@3", "streets@x", "streets@-1", "street", "@1"):
        with pytest.raises(NotFound, match=r"known: streets|no such version, there are 1, 2"):
            find(name)


def test_a_damaged_manifest_is_refused_when_used(workspace: Workspace) -> None:
    """What was changed behind Framesift's back is noticed."""
    dataset = make(workspace)
    frames = Path(dataset.manifest) / "frames.parquet"
    frames.write_bytes(frames.read_bytes()[:-1] + b"x")
    with pytest.raises(BadFile, match="does not belong to the manifest"):
        Manifest.read(Path(dataset.manifest))


def test_a_folder_that_cannot_be_written_leaves_no_record(workspace: Workspace) -> None:
    """The record is committed after the manifest is on disk, or not at all."""
    (workspace.home / "datasets").write_text("in the way")
    with pytest.raises(StorageError, match="the manifest cannot be written: Not a directory"):
        make(workspace)
    assert recorded_datasets(workspace.records) == []


_KILLED = """
import os, signal, sys
from pathlib import Path
import pipeline.datasets.datasets
from tests.pipeline.homes import open_home
from tests.pipeline.test_datasets import make

store = pipeline.datasets.datasets.store_manifest
def store_and_die(*arguments):
    store(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)

pipeline.datasets.datasets.store_manifest = store_and_die
make(open_home(Path(sys.argv[1])))
"""


@pytest.mark.wide
def test_a_creation_killed_before_its_record_leaves_nothing_in_the_way(
    workspace: Workspace,
) -> None:
    """Killed between manifest and record: no dataset is listed, and the next creation works."""
    killed = run_python("-c", _KILLED, workspace.home)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert (workspace.home / "datasets" / "streets" / "v1" / "manifest.json").is_file()
    assert recorded_datasets(workspace.records) == []
    dataset = make(workspace, "streets", "car=10000:")
    assert dataset.version == 1
    assert Manifest.read(Path(dataset.manifest)).header.id == dataset.content_id


_KILLED_WRITING = """
import os, signal, sys
from pathlib import Path
from pipeline import manifest
from tests.pipeline.homes import open_home
from tests.pipeline.test_datasets import make

def die(_):
    os.kill(os.getpid(), signal.SIGKILL)

manifest._sha256 = die  # the rows are written, the header is not
make(open_home(Path(sys.argv[1])), "killed", "car=10000:")
"""


def test_a_creation_killed_while_it_writes_leaves_no_part(workspace: Workspace) -> None:
    """What it had written is cleared by the next creation, whatever that one makes."""
    killed = run_python("-c", _KILLED_WRITING, workspace.home)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    datasets = workspace.home / "datasets"
    assert len(list(datasets.rglob("*.part"))) == 2
    make(workspace, "another")
    assert list(datasets.rglob("*.part")) == []


def test_creations_at_once_get_versions_of_their_own(workspace: Workspace) -> None:
    """Several at once on one name: as many versions as contents, each whole."""
    texts = ["car=1:", "car=10000:", "bicycle=1:", "car=1:"]
    with ThreadPoolExecutor(4) as pool:
        datasets = list(pool.map(lambda text: make(workspace, "streets", text), texts))
    assert sorted({dataset.version for dataset in datasets}) == [1, 2, 3]
    assert datasets[0].version == datasets[3].version
    for dataset in datasets:
        assert Manifest.read(Path(dataset.manifest)).header.id == dataset.content_id
