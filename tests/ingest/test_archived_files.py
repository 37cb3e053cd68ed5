"""Scans of what lies on tape or in Glacier: images unread until they are back, labels by a list."""

import os
import shutil
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import ClassVar

import pytest

from catalog.records.tables import Source
from ingest.extractors.base import CataloguedFrame, Extractor, SourceFiles
from ingest.extractors.run import run_extractor
from ingest.sources.source_options import SourceOptions
from pipeline.archive.recall import ArchiveAccess, recall_listed
from tests.ingest.png_writer import Picture, chunk, encode
from tests.ingest.s3_server import moto
from tests.ingest.scene_folders import BICYCLE, CAR, SKY, Home, frame_key, make_tree, put
from tests.pipeline import fake_eeadm
from tests.pipeline.fake_mmafmctl import evicted

EEADM = (sys.executable, "-S", fake_eeadm.__file__, "recall")
FRAMES = (1, 2, 11)
"""11 has the same picture as 2, and a name that begins like 1's."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A tree whose images and labels have blocks of their own, and one frame more without."""
    root = make_tree(tmp_path / "gpfs", frames=0)
    for number in FRAMES:
        red = min(number, 2)
        for kind in ("camera", "label"):
            picture = Picture([[CAR] * red + [BICYCLE, SKY]])
            put(root, frame_key(kind, number), encode(picture, chunk(b"tEXt", bytes(9_000))))
    for kind in ("camera", "label"):
        put(root, frame_key(kind, 7), encode(Picture([[CAR] * 7])))
    return root


def to_tape(root: Path, tape: Path, kind: str, *numbers: int) -> list[Path]:
    """Migrate files of frames: their content lies on tape, stubs stand for them."""
    paths = [root / frame_key(kind, number) for number in numbers]
    for path in paths:
        on_tape = tape / str(path).removeprefix("/")
        on_tape.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, on_tape)
        evicted(path)
    return paths


def from_tape(tape: Path, path: Path) -> None:
    """Recall a file as an administrator does."""
    shutil.copy2(tape / str(path).removeprefix("/"), path)


def counted(home: Home) -> dict[int, int]:
    """Red pixels by frame."""
    rows = home.rows("SELECT fkey, value FROM t_car")
    return {int(str(fkey)[-13:-4]): int(str(value)) for fkey, value in rows}


@pytest.fixture
def access(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ArchiveAccess:
    """An archive whose tape is the folder "tape"."""
    (tmp_path / "tape").mkdir()
    monkeypatch.setenv("FAKE_TAPE", str(tmp_path / "tape"))
    monkeypatch.setattr("pipeline.archive.recall._FIRST_PAUSE_S", 0.01)
    return ArchiveAccess(EEADM, tmp_path / "lists")


ALL = {1: 1, 2: 2, 7: 7, 11: 2}


@pytest.mark.wide
def test_images_on_tape_are_checked_when_they_are_back(
    home: Home, root: Path, tmp_path: Path
) -> None:
    """They are catalogued unread with their state; what came back damaged is a bad file then."""
    tape, source = tmp_path / "tape", home.add(root)
    right, wrong, _ = to_tape(root, tape, "camera", 1, 11, 2)
    first = home.scan(source)
    assert (first.counts.frames, first.counts.images_archived) == (4, 3)
    assert home.problems(first.scan) == []
    assert counted(home) == ALL
    states = home.rows("SELECT state, count(*) FROM metaocean GROUP BY 1 ORDER BY 1")
    assert states == [("migrtd", 3), ("resdnt", 6)]
    from_tape(tape, right)
    damaged = tape / str(wrong).removeprefix("/")
    content = damaged.read_bytes()
    with damaged.open("r+b") as file:
        file.write(b"<html>not a picture")
    from_tape(tape, wrong)
    second = home.scan(source)
    assert home.problems(second.scan) == [("bad_file", frame_key("camera", 11))]
    assert (second.counts.frames, second.counts.images_archived) == (1, 0)
    assert counted(home) == {number: red for number, red in ALL.items() if number != 11}
    damaged.write_bytes(content)
    from_tape(tape, wrong)
    home.scan(source)
    assert counted(home) == ALL
    assert home.scan(source).counts.bytes_read == 0


@pytest.mark.wide
def test_without_checks_an_image_that_is_back_is_not_read(
    home: Home, root: Path, tmp_path: Path
) -> None:
    """Only its state is written."""
    source = home.add(root)
    (image,) = to_tape(root, tmp_path / "tape", "camera", 1)
    home.scan(source, check_images=False)
    from_tape(tmp_path / "tape", image)
    again = home.scan(source, check_images=False).counts
    assert (again.unchanged, again.bytes_read, again.commits) == (9, 0, 1)


@pytest.mark.wide
def test_labels_are_recalled_by_one_list(
    home: Home, root: Path, tmp_path: Path, access: ArchiveAccess
) -> None:
    """Those to be counted and no others; one that the tape lacks is asked for by the next scan."""
    labels = to_tape(root, tmp_path / "tape", "label", *FRAMES)
    to_tape(root, tmp_path / "tape", "camera", *FRAMES)
    lost = tmp_path / "tape" / str(labels[2]).removeprefix("/")
    lost.rename(tmp_path / "lost")
    source, told = home.add(root), list[int]()
    recall = partial(recall_listed, access)
    first = home.scan(source, recall=recall, progress=lambda now: told.append(now.recalling))
    log = tmp_path / "tape" / "log"
    assert log.read_text().splitlines() == [str(path) for path in labels]
    assert (max(told), told[-1]) == (3, 0)
    assert home.problems(first.scan) == [("unreadable", frame_key("label", 11))]
    assert counted(home) == {1: 1, 2: 2, 7: 7}
    (tmp_path / "lost").rename(lost)
    log.unlink()
    home.scan(source, recall=recall)
    assert log.read_text().splitlines() == [str(labels[2])]
    assert counted(home) == ALL
    log.unlink()
    assert home.scan(source, recall=recall).counts.bytes_read == 0
    assert not log.exists()


def test_a_name_that_no_list_can_hold_keeps_no_other_from_its_recall(
    home: Home, root: Path, tmp_path: Path, access: ArchiveAccess
) -> None:
    """A line break in a folder's name: that label is named, the others are counted."""
    odd = root.parent / "gpfs" / "line\nbreak" / frame_key("label", 3)
    picture = Picture([[CAR] * 3])
    put(root, str(odd.relative_to(root)), encode(picture, chunk(b"tEXt", bytes(9_000))))
    evicted(odd)
    to_tape(root, tmp_path / "tape", "label", *FRAMES)
    first = home.scan(home.add(root), recall=partial(recall_listed, access))
    assert home.problems(first.scan) == [("unreadable", str(odd.relative_to(root)))]
    assert counted(home) == ALL


@pytest.mark.wide
def test_what_was_read_as_a_stub_is_counted_by_the_next_scan(
    home: Home, root: Path, tmp_path: Path, access: ArchiveAccess
) -> None:
    """A scan that read stubs called them bad: without --full the next one puts that right."""
    image, label = root / frame_key("camera", 1), root / frame_key("label", 2)
    bad = root / frame_key("label", 11)
    content = {path: (path.read_bytes(), path.stat()) for path in (image, label)}
    for path, (whole, status) in content.items():
        path.write_bytes(bytes(len(whole)))  # as a stub is read where nobody recalls it
        _with_time_of(path, status)
    bad.write_bytes(b"no PNG" * 2_000)
    source = home.add(root)
    assert len(home.problems(home.scan(source).scan)) == 3
    for path, (whole, status) in content.items():
        path.write_bytes(whole)
        _with_time_of(path, status)
    to_tape(root, tmp_path / "tape", "camera", 1)
    to_tape(root, tmp_path / "tape", "label", 2)
    again = home.scan(source, recall=partial(recall_listed, access))
    assert counted(home) == {1: 1, 2: 2, 7: 7}
    assert again.counts.images_archived == 1


def _with_time_of(path: Path, status: os.stat_result) -> None:
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


class Size(Extractor):
    """The bytes of the camera image, which it reads."""

    family: ClassVar[str] = "size"
    columns: ClassVar[Mapping[str, str]] = {"image_bytes": "INTEGER"}

    def extract(self, source: SourceFiles, frame: CataloguedFrame) -> Mapping[str, object]:
        """Tags of a frame."""
        return {"image_bytes": len(source.read(frame.file).strip(b"\0"))}


@pytest.mark.wide
def test_an_extractor_leaves_what_is_on_tape(home: Home, root: Path, tmp_path: Path) -> None:
    """It recalls nothing one by one, keeps what it knows, and reads what is back."""
    source, tape = home.add(root), tmp_path / "tape"
    home.scan(source)
    run_extractor(home.store, source, Size())
    tags = home.rows("SELECT * FROM t_image_bytes ORDER BY fkey")
    images = to_tape(root, tape, "camera", *FRAMES)
    counts = run_extractor(home.store, source, Size(), full=True)  # no scan saw it yet
    assert (counts.read, counts.bad_files) == (4, 3)
    assert home.rows("SELECT * FROM t_image_bytes ORDER BY fkey") == tags
    changed = type("Size2", (Size,), {"version": 2})()
    home.scan(source)
    assert run_extractor(home.store, source, changed).bad_files == 3
    for image in images:
        from_tape(tape, image)
    counts = run_extractor(home.store, source, changed)
    assert (counts.read, counts.bad_files) == (3, 0)
    assert home.rows("SELECT * FROM t_image_bytes ORDER BY fkey") == tags


@pytest.mark.wide
@pytest.mark.parametrize("kind", ["camera", "label"])
def test_objects_in_glacier(
    home: Home, root: Path, tmp_path: Path, access: ArchiveAccess, kind: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Images are catalogued unread; labels are restored, each asked for once, and counted."""
    server = moto()
    server.sign_in(monkeypatch, tmp_path)
    bucket, client = server.new_bucket("archived-scan"), server.client()
    for path in root.rglob("*.*"):
        key = path.relative_to(root).as_posix()
        stored = {"StorageClass": "GLACIER"} if f"/{kind}/" in key else {}
        client.put_object(Bucket=bucket, Key=key, Body=path.read_bytes(), **stored)
    source = home.add(Path("unused"), platform="S3")
    options = SourceOptions(endpoint_url=server.endpoint, region="us-east-1").to_json()
    with home.records.session() as session:
        record = session.get_one(Source, source.id)
        record.uri, record.options = f"s3://{bucket}", options
    result = home.scan(record, recall=partial(recall_listed, access))
    assert home.problems(result.scan) == []
    assert counted(home) == ALL
    assert result.counts.images_archived == (4 if kind == "camera" else 0)
