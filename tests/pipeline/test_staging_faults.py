"""Sources and caches that change or fail in the middle of a staging: never a wrong byte."""

import os
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

from api.schemas.home_orders import Staging
from api.services.session import Session
from api.workspace import Workspace
from catalog.errors import StagingCancelled, StorageError
from catalog.records.datasets import recorded_dataset
from catalog.records.jobs import recorded_job
from pipeline.cache.beat import Watch
from pipeline.cache.lease import held_leases
from pipeline.jobs.follow import refresh
from pipeline.manifest import Manifest
from pipeline.staging.fetch import FailedFile
from pipeline.staging.progress import Progress
from pipeline.staging.stage import stage_dataset
from tests.api.servers import wait_until
from tests.ingest.faulty_s3 import FaultyS3
from tests.ingest.s3_server import moto
from tests.pipeline.test_datasets import make
from tests.pipeline.test_staged_sources import (
    home,
    own_images,
    proxy,
    roots,
    server,
    stage,
)
from tests.pipeline.test_staged_sources import workspace as of_every_source
from tests.pipeline.test_staging import NOBODY, copies, needs_root

__all__ = ["home", "of_every_source", "proxy", "roots", "server"]

BUCKET = "staged-sources"


@pytest.fixture
def victim(of_every_source: Workspace) -> Iterator[str]:
    """Key of an object in S3, which is put back at the end."""
    images = own_images(of_every_source)
    key = next(path for path in images if "/a2d2/" in path).removeprefix(f"s3://{BUCKET}/")
    whole = moto().client().get_object(Bucket=BUCKET, Key=key)["Body"].read()
    yield key
    moto().client().put_object(Bucket=BUCKET, Key=key, Body=whole)


@pytest.fixture(params=["in memory", "resumed"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How files come: small ones in memory, large ones in a part that can go on."""
    if request.param == "resumed":
        monkeypatch.setattr("pipeline.staging.arrival.LARGEST_BYTES", 1_000)
        monkeypatch.setattr("pipeline.staging.fetch._RESUMED_BYTES", 1_000)
        monkeypatch.setattr("ingest.sources.s3.s3_plain_get._PIECE_BYTES", 1_000)
    return str(request.param)


def breaks_off(server: FaultyS3, key: str, then: Callable[[], object]) -> None:
    """Have the first read of an object break off in the middle, and something happen before."""
    met: list[str] = []

    def fault(path: str) -> str:
        if not unquote(path).endswith(key) or met:
            return ""
        met.append(path)
        then()
        return "short"

    server.fault = fault


def overwrite(key: str) -> None:
    """Put an object of as many other bytes in its place."""
    client = moto().client()
    old = client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
    client.put_object(Bucket=BUCKET, Key=key, Body=bytes(byte ^ 1 for byte in old))


@pytest.mark.parametrize(
    ("happens", "reason"),
    [
        (overwrite, "has changed since the dataset was made"),
        (lambda key: moto().client().delete_object(Bucket=BUCKET, Key=key), "is not in|is gone"),
    ],
    ids=["overwritten", "removed"],
)
def test_an_object_that_changes_while_it_comes_is_refused(
    of_every_source: Workspace,
    server: FaultyS3,
    victim: str,
    way: str,
    tmp_path: Path,
    happens: Callable[[str], object],
    reason: str,
) -> None:
    """Its transfer breaks off, and another version, or none, is there then: it is named."""
    failed: list[FailedFile] = []
    breaks_off(server, victim, lambda: happens(victim))
    with pytest.raises(StorageError, match="1 of 16 files could not be staged"):
        stage(of_every_source, tmp_path / "cache", failed)
    (one,) = failed
    assert one.origin == f"s3://{BUCKET}/{victim}"
    assert re.search(reason, one.reason), one
    assert len(copies(tmp_path / "cache")) == 15
    assert not list(tmp_path.rglob("*.part"))


def test_a_large_object_goes_on_where_it_broke_off(
    of_every_source: Workspace, server: FaultyS3, victim: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The second read asks for the rest alone, and the file is what an unbroken transfer gives."""
    monkeypatch.setattr("pipeline.staging.arrival.LARGEST_BYTES", 1_000)
    monkeypatch.setattr("pipeline.staging.fetch._RESUMED_BYTES", 1_000)
    monkeypatch.setattr("ingest.sources.s3.s3_plain_get._PIECE_BYTES", 1_000)
    breaks_off(server, victim, lambda: None)
    server.ranges.clear()
    staged = stage(of_every_source, tmp_path / "cache")
    ranges = [asked for path, asked in server.ranges if unquote(path).endswith(victim)]
    whole = moto().client().get_object(Bucket=BUCKET, Key=victim)["Body"].read()
    assert ranges[0] == ""
    begins = [int(asked.removeprefix("bytes=").split("-")[0] or 0) for asked in ranges[1:]]
    assert begins, ranges
    assert all(1_000 <= begin <= len(whole) // 2 for begin in begins), ranges
    assert whole in [Path(str(image.path)).read_bytes() for image in staged.images()]


def test_a_source_that_takes_its_permission_back_is_named(
    of_every_source: Workspace, server: FaultyS3, tmp_path: Path
) -> None:
    """Its later files are refused each by its name; what came stays, and the rest comes then."""
    failed: list[FailedFile] = []
    server.fault = lambda _: "403" if len(server.reads) > 2 else ""
    with pytest.raises(StorageError, match="access denied"):
        stage(of_every_source, tmp_path / "cache", failed)
    assert all("access denied" in one.reason for one in failed)
    came = copies(tmp_path / "cache")
    assert 0 < len(came) < 16
    server.fault = lambda _: ""
    server.reads.clear()
    stage(of_every_source, tmp_path / "cache")
    assert len(copies(tmp_path / "cache")) == 16


def test_a_cancel_does_not_wait_for_a_transfer_that_hangs(
    of_every_source: Workspace,
    server: FaultyS3,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The staging ends while its source says nothing; what it left behind shows no file later."""
    monkeypatch.setattr("pipeline.staging.fetch._ENDS_WITHIN_S", 0.1)
    monkeypatch.setattr("pipeline.staging.fetch.REPORT_EVERY_S", 0.1)
    ended, hung = threading.Event(), threading.Event()

    def hangs(path: str) -> str:
        if ".tar" in path:  # whose index is read before anything is fetched
            return ""
        hung.set()
        ended.wait(300)
        return ""

    def cancelled(_progress: Progress) -> None:
        if hung.is_set():
            raise StagingCancelled("cancelled")

    server.fault = hangs
    cache = tmp_path / "cache"
    with pytest.raises(StagingCancelled):
        stage_dataset(
            of_every_source.records,
            recorded_dataset(of_every_source.records, "streets"),
            cache,
            progress=cancelled,
        )
    assert not ended.is_set()
    assert list((cache / ".claims").iterdir()) == []
    came = copies(cache)
    ended.set()
    wait_until(lambda: not [one for one in threading.enumerate() if one.name.startswith("stage_")])
    assert copies(cache) == came
    assert list((cache / ".parts").iterdir()) == []


@needs_root
def test_a_cache_that_takes_its_permission_back_is_one_line(
    own_source: Workspace, tmp_path: Path
) -> None:
    """As another user from the third file on: the cache is named; the next one does the rest."""
    made, cache = make(own_source), tmp_path / "cache"

    def lose(progress: Progress) -> None:
        if progress.files >= 3:
            os.seteuid(NOBODY)

    try:
        with pytest.raises(StorageError, match=f"{cache}.*Permission denied") as refused:
            stage_dataset(own_source.records, made, cache, workers=1, progress=lose)
    finally:
        os.seteuid(0)
    assert "\n" not in str(refused.value)
    sizes = {path: path.stat().st_size for path in copies(cache)}
    assert len(sizes) >= 3
    # Its process would have ended: it is not waited for.
    for beat in (*cache.glob(".parts/*/beat"), *cache.glob(".leases/*/beat")):
        beat.unlink()
    for claim in cache.glob(".claims/*"):
        claim.unlink()
    staging = stage_dataset(own_source.records, made, cache)
    assert staging.files_copied == staging.files - len(sizes)
    staged, source = (Manifest.read(Path(place)) for place in (staging.manifest, made.manifest))
    for here, there in zip(staged.image_paths(), source.image_paths(), strict=True):
        assert Path(here).read_bytes() == Path(there).read_bytes()


@pytest.mark.wide
def test_a_cancelled_job_leaves_nothing_of_its_staging(
    of_every_source: Workspace, server: FaultyS3
) -> None:
    """Its transfers end, and with them parts, claims and leases; what had come stays."""
    server.fault = lambda _: "stall"
    stagings = Session(of_every_source).stagings
    name = stagings.begin(Staging(dataset="streets")).name
    wait_until(lambda: stagings.get_running(name).progress is not None)
    stagings.cancel(name)
    records = of_every_source.records
    wait_until(lambda: refresh(records, recorded_job(records, name)).state == "cancelled")
    for folder in (".parts", ".claims"):
        assert list((of_every_source.cache / folder).iterdir()) == []
    assert held_leases(of_every_source.cache, Watch()) == []
