"""S3 servers of before 2025: a team's catalog and manifests are written, deleted and read there."""

from dataclasses import replace
from pathlib import Path

import pytest

from catalog.frames.frames import register
from catalog.maintenance.check import check
from catalog.maintenance.compaction import compact
from catalog.storage.location import CatalogLocation
from catalog.storage.s3_prefix import S3Access
from ingest.sources.s3.s3_bucket import S3Bucket
from ingest.sources.source_options import SourceOptions
from tests.catalog.backends import new_prefix, open_at
from tests.catalog.histories import AT_ONCE, held
from tests.catalog.some_rows import file, source_names
from tests.ingest.s3_of_2024 import old_server
from tests.ingest.s3_server import moto

pytestmark = pytest.mark.wide


def test_nothing_newer_is_asked_of_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Files are put, fetched, compacted away and deleted; those of the next prefix stay."""
    moto().sign_in(monkeypatch, tmp_path)
    with old_server(moto().endpoint) as old:
        own = replace(new_prefix(moto()), access=S3Access(old.endpoint))
        beside = replace(own, prefix=own.prefix.removesuffix("/") + "1/")
        store = open_at(CatalogLocation(tmp_path / "catalog" / "catalog.sqlite", own))
        for key in "aab":
            with store.writing("written") as connection:
                register(connection, source_names(), [file(key)], [], 1)
        before = held(store)
        small = tmp_path / "small"
        small.write_bytes(b"PAR1")
        for prefix in (own, beside):
            prefix.put("main/files/orphan.parquet", small)
            prefix.put("a +%41 é.parquet", small)
        done = compact(store, tuple, keep=AT_ONCE, in_use=AT_ONCE)
        assert (done.orphans, done.deleted > 0) == (2, True)
        assert (held(store), check(store, {})) == (before, [])
        store.close()
        bucket = S3Bucket(own.bucket, SourceOptions(endpoint_url=old.endpoint))
        request = bucket.client.get_object(
            Bucket=own.bucket, Key=f"{beside.prefix}a +%41 é.parquet"
        )
        assert request["Body"].read() == b"PAR1"
        own.delete_all()
        own.delete(["gone"])
        assert list(own.objects()) == []
        assert beside.fetch("a +%41 é.parquet", tmp_path / "again").read_bytes() == b"PAR1"
        assert len(list(beside.objects())) == 2
        beside.delete_all()
    assert old.refused == []
    assert {"GET", "PUT", "DELETE", "POST"} <= {method for method, _ in old.requests}
