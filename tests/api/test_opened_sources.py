"""Object stores stay open between pictures; folders and archives are opened again."""

import tarfile
from pathlib import Path

import pytest

from api.frame_images.source_file import SourceFile, _Opened
from catalog.errors import UnreadableFile
from catalog.records.tables import Source
from tests.ingest.s3_server import moto


def source(uri: str, **options: object) -> Source:
    """A source's record."""
    return Source(name="s", uri=uri, options=options)


@pytest.mark.wide
def test_a_store_is_opened_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One for the same place and options, for some time; and no more of them than there may be."""
    s3 = moto()
    s3.sign_in(monkeypatch, tmp_path)
    buckets = [s3.new_bucket(f"opened-{number}") for number in range(3)]
    for bucket in buckets:
        s3.client().put_object(Bucket=bucket, Key="a/x.png", Body=b"x")
    opened, endpoint = _Opened(most=2), {"endpoint_url": s3.endpoint}
    first = opened.files(source(f"s3://{buckets[0]}/a", **endpoint), tmp_path)
    assert opened.files(source(f"s3://{buckets[0]}/a", **endpoint), tmp_path) is first
    assert first.read("x.png") == b"x"
    slower = source(f"s3://{buckets[0]}/a", **endpoint, give_up_after=30.0)
    assert opened.files(slower, tmp_path) is not first
    for bucket in buckets[1:]:
        opened.files(source(f"s3://{bucket}/a", **endpoint), tmp_path)
    assert opened.files(source(f"s3://{buckets[0]}/a", **endpoint), tmp_path) is not first
    opened = _Opened(lasts_s=0.0)
    once = opened.files(slower, tmp_path)
    assert opened.files(slower, tmp_path) is not once


def test_folders_and_archives_are_opened_anew(tmp_path: Path) -> None:
    """What lies there may have been replaced meanwhile."""
    (tmp_path / "x.png").write_bytes(b"x")
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        archive.add(tmp_path / "x.png", "x.png")
    opened = _Opened()
    for root in (tmp_path, tmp_path / "a.tar"):
        opened_source = source(str(root))
        assert opened.files(opened_source, tmp_path) is not opened.files(opened_source, tmp_path)


def test_an_object_is_asked_for_by_its_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One request for a part of it, without a listing afterwards; another version is an error."""
    s3 = moto()
    s3.sign_in(monkeypatch, tmp_path)
    bucket = s3.new_bucket("versions")
    s3.client().put_object(Bucket=bucket, Key="x.png", Body=b"0123456789")
    record = source(f"s3://{bucket}", endpoint_url=s3.endpoint)
    files = _Opened().files(record, tmp_path)
    (entry,) = files.list("x.png")
    monkeypatch.setattr(files, "list", pytest.fail)
    picture = SourceFile(record, files, entry)
    assert picture.read(3, 4) == b"3456"
    assert picture.read(0, 10) == b"0123456789"
    s3.client().put_object(Bucket=bucket, Key="x.png", Body=b"9876543210")
    with pytest.raises(UnreadableFile, match="was changed while it was read; ask again"):
        picture.read(3, 4)
    s3.client().delete_object(Bucket=bucket, Key="x.png")
    with pytest.raises(UnreadableFile, match="cannot be read from its source now"):
        picture.read(3, 4)
