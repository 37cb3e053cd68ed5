"""S3 that answers wrong once, with a success: nothing of it becomes a file's fault for ever."""

import hashlib
import io
import json
import os
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote

import pytest

from catalog.errors import StorageError
from catalog.records.scans import recorded_problems
from catalog.records.tables import Source
from ingest.extractors.base import CataloguedFrame, Extractor, SourceFiles
from ingest.extractors.run import run_extractor
from ingest.scan.scan_counts import ScanCounts
from ingest.sources.source_options import SourceOptions
from tests.ingest.faulty_s3 import FaultyS3, faulty_s3
from tests.ingest.png_writer import Picture, chunk, encode
from tests.ingest.s3_server import moto
from tests.ingest.scene_folders import (
    BICYCLE,
    CAR,
    CLASS_LIST,
    SKY,
    Home,
    frame_key,
    make_tree,
    put,
)

BUCKET = "wrong-answers"
FAULTS = ("empty", "half", "bytes")
WRONG = {
    **{
        frame_key("label", number): fault
        for number, fault in zip((1, 11, 101), FAULTS, strict=True)
    },
    **{
        frame_key("camera", number): fault
        for number, fault in zip((7, 12, 13), FAULTS, strict=True)
    },
}
"""Files that come wrong, and how."""

BROKEN = 4
"""A frame whose label is no PNG at all."""

FRAMES = {1: 1, 2: 2, 7: 1, 11: 2, 12: 3, 13: 4, 101: 11}
"""Red pixels of the other frames; 7 is 1 once more, byte by byte."""

ALL = sorted(FRAMES.items())
BAD = ("bad_file", frame_key("label", BROKEN))


def pictures(red: int) -> tuple[bytes, bytes]:
    """Camera image and label of a frame with so many red pixels."""
    row = [CAR] * red + [BICYCLE, SKY]
    text = chunk(b"tEXt", bytes(10_000))  # so that a part of it is not all
    return encode(Picture([row]), text), encode(Picture([row]))


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FaultyS3]:
    """A server with the frames, and a proxy before it."""
    monkeypatch.setattr("ingest.sources.listed_read._PAUSES_S", (0.0, 0.0))
    server = moto()
    server.sign_in(monkeypatch, tmp_path)
    server.new_bucket(BUCKET)
    root = tmp_path / "frames"
    put(root, "class_list.json", json.dumps(CLASS_LIST).encode())
    for number, red in (*ALL, (BROKEN, 4)):
        image, label = pictures(red)
        put(root, frame_key("camera", number), image)
        put(root, frame_key("label", number), b"no PNG" if number == BROKEN else label)
    server.put_folder(BUCKET, root)
    with faulty_s3(server.endpoint) as opened:
        yield opened


@pytest.fixture
def source(home: Home, proxy: FaultyS3) -> Source:
    """The bucket behind the proxy, not scanned yet."""
    added = home.add(Path("unused"), platform="S3")
    with home.records.session() as session:
        record = session.get_one(Source, added.id)
        record.uri = f"s3://{BUCKET}"
        record.options = SourceOptions(endpoint_url=proxy.endpoint, region="us-east-1").to_json()
        return record


def wrong(faults: Mapping[str, str], times: int = 10**6) -> Callable[[str], str]:
    """The faults of the first reads of some keys; each other one comes right."""
    left = Counter(dict.fromkeys(faults, times))

    def of(path: str) -> str:
        key = unquote(path).removeprefix(f"/{BUCKET}/")
        left[key] -= 1
        return faults[key] if left[key] >= 0 else ""

    return of


def counted(home: Home) -> list[tuple[int, int]]:
    """Number and red pixels of each frame."""
    rows = home.rows("SELECT fkey, value FROM t_car ORDER BY fkey")
    return [(int(str(fkey)[-13:-4]), int(str(value))) for fkey, value in rows]


@pytest.mark.wide
def test_what_comes_wrong_once_is_asked_for_again(
    home: Home, source: Source, proxy: FaultyS3
) -> None:
    """The first two answers for labels and images are wrong: the same scan counts them."""
    proxy.fault = wrong(WRONG, 2)
    result = home.scan(source)
    assert counted(home) == ALL
    assert home.problems(result.scan) == [BAD]


@pytest.mark.wide
def test_what_comes_wrong_all_the_time_is_unreadable_until_a_later_scan(
    home: Home, source: Source, proxy: FaultyS3
) -> None:
    """Its frame is left out and named; the next scan reads it, and nothing else."""
    proxy.fault = wrong(WRONG)
    unreadable = {("unreadable", key) for key in WRONG}
    assert set(home.problems(home.scan(source).scan)) == unreadable | {BAD}
    assert counted(home) == [(2, 2)]
    proxy.fault = lambda _: ""
    proxy.reads.clear()
    result = home.scan(source)
    assert counted(home) == ALL
    assert home.problems(result.scan) == []
    assert not any(key in unquote(path) for path in proxy.reads for key in (BAD[1], "00002.png"))
    assert home.scan(source).counts.bytes_read == 0


@pytest.mark.wide
def test_an_object_sent_in_parts_has_no_md5_and_is_read_twice(
    home: Home, source: Source, proxy: FaultyS3
) -> None:
    """Its ETag proves nothing: bytes that are no PNG are bad only when they come twice."""
    key, client = frame_key("label", 1), moto().client()
    upload = client.create_multipart_upload(Bucket=BUCKET, Key=key)["UploadId"]
    where = {"Bucket": BUCKET, "Key": key, "UploadId": upload}
    part = client.upload_part(**where, PartNumber=1, Body=pictures(1)[1])
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    client.complete_multipart_upload(**where, MultipartUpload=parts)
    assert "-1" in client.head_object(Bucket=BUCKET, Key=key)["ETag"]
    proxy.fault = wrong({key: "bytes"}, 1)
    assert home.problems(home.scan(source).scan) == [BAD]
    assert counted(home) == ALL


@pytest.mark.wide
def test_a_class_list_that_comes_wrong_ends_the_scan_and_nothing_else(
    home: Home, source: Source, proxy: FaultyS3
) -> None:
    """Asked for again; wrong all the time, the scan says so, and no other list is taken."""
    proxy.fault = wrong({"class_list.json": "half"}, 2)
    home.scan(source)
    assert counted(home) == ALL
    for fault in FAULTS:
        proxy.fault = wrong({"class_list.json": fault})
        with pytest.raises(StorageError, match=r"class_list\.json: cannot be read: what came"):
            home.scan(source)
    proxy.fault = lambda _: ""
    assert home.scan(source).counts.bytes_read == 0


def test_a_class_list_that_may_not_be_read_is_not_called_missing(
    home: Home, source: Source, proxy: FaultyS3
) -> None:
    """The listing shows it, and the server refuses it (403)."""
    proxy.fault = lambda path: "403" if path.endswith("class_list.json") else ""
    with pytest.raises(StorageError, match=r"class_list\.json: cannot be read: access denied"):
        home.scan(source)


@pytest.mark.wide
def test_members_of_an_archive_are_asked_for_again(
    home: Home, source: Source, proxy: FaultyS3, tmp_path: Path
) -> None:
    """A tar in S3 has no checksum of its members: the same frames are counted all the same."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.add(tmp_path / "frames", ".")
    moto().client().put_object(Bucket=BUCKET, Key="all.tar", Body=archive.getvalue())
    source.uri += "/all.tar"
    home.scan(source, index_folder=tmp_path / "index")
    met: list[str] = []

    def of(path: str) -> str:
        met.append(path)
        return FAULTS[len(met) // 3 % 3] if len(met) % 3 == 2 else ""

    proxy.fault = of
    result = home.scan(source, full=True, index_folder=tmp_path / "index")
    assert len(met) > 3 * len(ALL)
    assert {key for _, key in home.problems(result.scan)} <= {BAD[1]}
    proxy.fault = lambda _: ""
    home.scan(source, index_folder=tmp_path / "index")
    assert counted(home) == ALL
    assert [problem.kind for problem in recorded_problems(home.records)] == ["bad_file"]


def test_a_file_of_a_folder_that_is_cut_off_while_it_is_scanned(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Listed whole and read in part, as of a copy with its times: the next scan reads it."""
    monkeypatch.setattr("ingest.sources.listed_read._PAUSES_S", (0.0, 0.0))
    root = make_tree(tmp_path / "tree")
    label = root / frame_key("label", 1)
    content, status = label.read_bytes(), label.stat()
    source = home.add(root)

    def cut(now: ScanCounts) -> None:
        if now.files == 7:  # all of them are listed, and none is read
            label.write_bytes(content[:-20])

    first = home.scan(source, progress=cut)
    assert home.problems(first.scan) == [("unreadable", frame_key("label", 1))]
    label.write_bytes(content)
    os.utime(label, ns=(status.st_atime_ns, status.st_mtime_ns))
    home.scan(source)
    assert counted(home) == [(1, 1), (2, 2), (3, 3)]


class Digest(Extractor):
    """The MD5 of the label's bytes; a label that is no PNG is bad."""

    family: ClassVar[str] = "digest"
    columns: ClassVar[Mapping[str, str]] = {"label_md5": "VARCHAR"}
    reads: ClassVar[str] = "label"

    def extract(self, source: SourceFiles, frame: CataloguedFrame) -> Mapping[str, object]:
        """Tags of a frame."""
        content = source.read(frame.file)
        return {"label_md5": hashlib.md5(content, usedforsecurity=False).hexdigest()}


@pytest.mark.wide
def test_an_extractor_gets_the_file_that_is_catalogued(
    home: Home, source: Source, proxy: FaultyS3
) -> None:
    """Wrong once, it is asked for again; wrong all the time, by the next run."""
    home.scan(source)
    labels = {key: fault for key, fault in WRONG.items() if "/label/" in key}
    expected = {
        hashlib.md5(pictures(red)[1], usedforsecurity=False).hexdigest() for red in FRAMES.values()
    }
    values = "SELECT DISTINCT value FROM t_label_md5"
    proxy.fault = wrong(labels)
    counts = run_extractor(home.store, source, Digest())
    assert (counts.read, counts.bad_files) == (len(FRAMES), len(labels))
    assert len(home.rows(values)) == len(expected) - 1  # 101's alone: 7 has 1's, and 2 has 11's
    proxy.fault = wrong(labels, 1)
    counts = run_extractor(home.store, source, Digest())
    assert (counts.read, counts.bad_files) == (len(labels), 0)
    assert {value for (value,) in home.rows(values)} == expected
    assert run_extractor(home.store, source, Digest()).read == 0
    proxy.fault = wrong(labels)
    assert run_extractor(home.store, source, Digest(), full=True).bad_files == len(labels)
    assert {value for (value,) in home.rows(values)} == expected  # of these very files
