"""Keys of a source reach workers sealed: Dask's, and the elements of a job array."""

import os
import stat
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from distributed import Client, LocalCluster

from catalog.errors import InvalidInput
from catalog.records.scans import last_scan
from catalog.records.sources import add_source
from catalog.records.tables import Source
from ingest.engines.dask import DaskEngine
from ingest.scan.array_scan import collect_units, write_units
from ingest.scan.scan import ScanOptions
from ingest.sources import sealed_keys
from ingest.sources.sealed_keys import AccessKeys, SecretKey, seal
from ingest.sources.source_options import SourceOptions
from tests.ingest.s3_server import moto
from tests.ingest.scene_folders import Home, make_tree
from tests.zygote import run_python

pytestmark = pytest.mark.wide

REPOSITORY = Path(__file__).parent.parent.parent
VARIABLE = "FRAMESIFT_SECRET_KEY"
FRAMES = 6
KEYS = AccessKeys("AKIAHIDDEN", "hidden/secret+key")


class Bucket:
    """A source in a bucket whose keys are sealed by a home's key."""

    def __init__(self, home: Home, source: Source, key: SecretKey) -> None:
        self.home, self.source, self.key = home, source, key

    @property
    def secrets(self) -> list[bytes]:
        """What is to be written nowhere."""
        key = self.key.text.encode() or self.key.path.read_bytes().strip()
        return [KEYS.access_key.encode(), KEYS.secret_key.encode(), key]


@pytest.fixture(params=["in a file", "in the environment"])
def bucket(
    request: pytest.FixtureRequest, home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Bucket]:
    """Frames in S3, and no other credentials anywhere."""
    server = moto()
    server.sign_in(monkeypatch, tmp_path)
    name = server.new_bucket("sealed-units")
    server.put_folder(name, make_tree(tmp_path / "tree", FRAMES))
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    environment_key = (
        Fernet.generate_key().decode() if request.param == "in the environment" else ""
    )
    key = SecretKey(tmp_path / "home" / "secret.key", environment_key)
    if environment_key:
        monkeypatch.setenv(VARIABLE, environment_key)
    before = sealed_keys._key
    sealed_keys.use(key)
    options = SourceOptions(
        endpoint_url=server.endpoint, region="us-east-1", sealed_keys=seal(KEYS)
    )
    source = add_source(home.records,
        Source(
            name="cos", uri=f"s3://{name}", platform="IBM COS", cluster="cos", datasource=name,
            options=options.to_json(),
        )
    )  # fmt: skip
    yield Bucket(home, source, key)
    sealed_keys._key = before


def element(folder: Path, number: int, **more: str) -> "subprocess.CompletedProcess[str]":
    """An element of a job array, a process that knows nothing but its unit."""
    return run_python("-m", "ingest.scan.unit_files", folder, str(number), env=os.environ | more)


def test_a_job_array(bucket: Bucket, tmp_path: Path) -> None:
    """Units hold the keys sealed and name the key's file; each element opens them itself."""
    folder = tmp_path / "units"
    units = write_units(
        bucket.home.store, bucket.home.records, bucket.source, ScanOptions(), folder, unit_frames=3
    )
    assert units >= 2
    for path in folder.iterdir():
        content = path.read_bytes()
        text = content if path.suffix == ".json" else zlib.decompress(content)
        for secret in bucket.secrets:
            assert secret not in content
            assert secret not in text
    for number in range(1, units + 1):
        done = element(folder, number)
        assert done.returncode == 0, done.stderr
        for secret in bucket.secrets:
            assert secret.decode() not in done.stdout + done.stderr
    counts = collect_units(
        bucket.home.store, bucket.home.records, bucket.source, ScanOptions(), folder
    ).counts
    assert counts.frames == FRAMES


def test_dask_workers(bucket: Bucket) -> None:
    """Counted by a process that was given no key; nothing of it in any log."""
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50
        ) as cluster,
        Client(cluster) as client,
    ):
        scan = bucket.home.scan(bucket.source, engine=DaskEngine(client, frames_each=2))
        assert scan.counts.frames == FRAMES
        told = str(client.get_worker_logs()) + str(client.get_scheduler_logs())
        told += str(client.get_task_stream()) + str(client.run_on_scheduler(_tasks))
        for secret in bucket.secrets:
            assert secret.decode() not in told


def _tasks(dask_scheduler: object) -> str:
    return str(vars(dask_scheduler))


def test_a_worker_without_the_key(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It says what it lacks, by Dask and in an array alike, and the scan has failed."""
    folder = tmp_path / "units"
    write_units(
        bucket.home.store, bucket.home.records, bucket.source, ScanOptions(), folder, unit_frames=3
    )
    monkeypatch.delenv(VARIABLE, raising=False)
    if not bucket.key.text:
        moved = bucket.key.path.rename(tmp_path / "elsewhere")
    refused = element(folder, 1)
    words = "has no key to them: set FRAMESIFT_SECRET_KEY" if bucket.key.text else "is missing"
    assert (refused.returncode, words in refused.stderr) == (1, True), refused.stderr
    wrong = element(folder, 1, **{VARIABLE: Fernet.generate_key().decode()})
    assert "encrypted by another key" in wrong.stderr
    if not bucket.key.text:
        moved.rename(bucket.key.path)
        # Beside a key that is another home's, the file that the unit names is tried.
        assert element(folder, 1, **{VARIABLE: Fernet.generate_key().decode()}).returncode == 0
        bucket.key.path.chmod(0o644)
        open_to_all = element(folder, 1)
        assert "chmod 600" in open_to_all.stderr
        bucket.key.path.chmod(0o600)
        assert stat.S_IMODE(bucket.key.path.stat().st_mode) == 0o600
        return
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50
        ) as cluster,
        Client(cluster) as client,
        pytest.raises(InvalidInput, match="has no key to them"),
    ):
        bucket.home.scan(bucket.source, engine=DaskEngine(client, frames_each=2))
    last = last_scan(bucket.home.records, bucket.source.id)
    assert last is not None
    assert last.state == "failed"
