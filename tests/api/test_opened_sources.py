"""Object stores stay open between pictures; folders and archives are opened anew."""

import tarfile
from pathlib import Path

import pytest

from api.frame_images.source_file import _Opened
from catalog.records.tables import Source
from tests.ingest.s3_server import moto


def source(uri: str, **options: object) -> Source:
    """A source's record."""
    return Source(name="s", uri=uri, options=options)


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
    for place in (tmp_path, tmp_path / "a.tar"):
        found = source(str(place))
        assert opened.files(found, tmp_path) is not opened.files(found, tmp_path)
