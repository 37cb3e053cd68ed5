"""State and tier of files: what the source tells, and null where it tells nothing."""

import os
import tarfile
from pathlib import Path

import pytest

from ingest.sources.s3.s3_page import read_page
from ingest.sources.s3.s3_source import S3Folder
from ingest.sources.schemes import open_source
from ingest.sources.source_options import SourceOptions
from tests.ingest.png_writer import Picture, chunk, encode
from tests.ingest.s3_server import moto
from tests.ingest.scene_folders import CAR, Home, frame_key, make_tree, put

PAGE = b"""<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
 <Name>b</Name><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>
 <CommonPrefixes><Prefix>c+d%%2F</Prefix></CommonPrefixes>
 %s
</ListBucketResult>"""
CONTENTS = b"""<Contents><Key>a%%20b+c%%0A</Key>
 <LastModified>2026-11-21T14:08:18.000Z</LastModified>
 <ETag>&quot;e1&quot;</ETag><Size>12</Size>%s</Contents>"""
RESTORED = b"""<RestoreStatus><IsRestoreInProgress>false</IsRestoreInProgress>
 <RestoreExpiryDate>2026-12-21T00:00:00.000Z</RestoreExpiryDate></RestoreStatus>"""
IN_PROGRESS = b"<RestoreStatus><IsRestoreInProgress>true</IsRestoreInProgress></RestoreStatus>"


@pytest.mark.parametrize(
    ("told", "state", "tier"),
    [
        (b"", None, ""),
        (b"<StorageClass>STANDARD</StorageClass>", "resdnt", "STANDARD"),
        (b"<StorageClass>GLACIER_IR</StorageClass>", "resdnt", "GLACIER_IR"),
        (b"<StorageClass>INTELLIGENT_TIERING</StorageClass>", None, "INTELLIGENT_TIERING"),
        (b"<StorageClass>GLACIER</StorageClass>", "migrtd", "GLACIER"),
        (b"<StorageClass>GLACIER</StorageClass>" + IN_PROGRESS, "migrtd", "GLACIER"),
        (b"<StorageClass>DEEP_ARCHIVE</StorageClass>" + RESTORED, "premig", "DEEP_ARCHIVE"),
    ],
)
def test_what_a_listing_tells(told: bytes, state: str | None, tier: str) -> None:
    """Storage class and restoration of an object, as AWS documents its listing."""
    page = read_page(PAGE % (CONTENTS % told))
    (entry,) = page.objects
    assert (entry.key, entry.size, entry.etag) == ("a b c\n", 12, "e1")
    assert entry.modified.isoformat() == "2026-11-21T14:08:18"
    assert (entry.state, entry.storage_class) == (state, tier)
    assert (page.prefixes, page.more) == (["c d/"], True)


@pytest.mark.wide
def test_objects_of_a_bucket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A real server's storage classes."""
    server = moto()
    server.sign_in(monkeypatch, tmp_path)
    bucket, client = server.new_bucket("states"), server.client()
    client.put_object(Bucket=bucket, Key="cold", Body=b"x", StorageClass="GLACIER")
    client.put_object(Bucket=bucket, Key="warm", Body=b"x")
    files = S3Folder(f"s3://{bucket}", SourceOptions(endpoint_url=server.endpoint))
    assert [(file.key, file.state, file.tier) for file in files.list()] == [
        ("cold", "migrtd", "GLACIER"),
        ("warm", "resdnt", "STANDARD"),
    ]


@pytest.mark.wide
def test_stubs_of_a_migrated_file_system(home: Home, tmp_path: Path) -> None:
    """A file without blocks is migrated; that is noted without reading it, and its tags stay."""
    root = make_tree(tmp_path / "tree", frames=2)
    for number in (1, 2):
        image = encode(Picture([[CAR] * (number + 2)]), chunk(b"teXt", os.urandom(8_192)))
        put(root, frame_key("camera", number), image)
    source = home.add(root)
    home.scan(source)
    states = "SELECT fkey, state, tier, migloc FROM metaocean ORDER BY fkey"
    counted = home.rows("SELECT fkey, value FROM t_car ORDER BY fkey")
    assert {row[1:] for row in home.rows(states)} == {("resdnt", None, None)}
    stub = root / frame_key("camera", 1)
    status = stub.stat()
    os.truncate(stub, 0)
    os.truncate(stub, status.st_size)
    os.utime(stub, ns=(status.st_atime_ns, status.st_mtime_ns))
    again = home.scan(source).counts
    assert (again.changed, again.unchanged, again.bytes_read, again.bad_files) == (0, 5, 0, 0)
    migrated = [row[0] for row in home.rows(states) if row[1] == "migrtd"]
    assert migrated == [f"host1:a2d2:{frame_key('camera', 1)}"]
    assert home.rows("SELECT fkey, value FROM t_car ORDER BY fkey") == counted
    assert home.scan(source).counts.commits == 0


def test_members_of_an_archive_tell_nothing(tmp_path: Path) -> None:
    """Where the archive itself lies is no member's state."""
    put(tmp_path, "in/a.txt", b"a")
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        tar.add(tmp_path / "in" / "a.txt", "a.txt")
    (member,) = open_source(str(tmp_path / "a.tar")).list()
    assert (member.state, member.tier) == (None, None)
