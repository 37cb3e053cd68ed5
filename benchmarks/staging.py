"""What staging costs: planning, hits, and fetching beside bare readers of the same store.

    python -m benchmarks.staging [--plan 1000000] [--hits 100000] [--objects 200] [--mb 3]

Planning and hits are of made-up manifests, two files a frame; hits look at sparse files that are
there. Fetching is from Ceph's gateway (its Debian packages are needed), side by side in one run: a
bare reader that keeps nothing, the same that writes and syncs each file, Framesift's staging, and
`aws s3 sync` where that command is there. Each takes its turn three times; the best is shown.
"""

import argparse
import os
import resource
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import obstore
import pyarrow as pa

from ingest.sources.s3_source import S3Folder
from ingest.sources.source_options import SourceOptions
from pipeline.cache.checksums import recording
from pipeline.cache.stager import stager
from pipeline.manifest import Manifest, ManifestHeader
from pipeline.manifest_rows import FRAMES_SCHEMA
from pipeline.staging.fetch import fetch_files
from pipeline.staging.plan import StagingPlan, plan_staging
from tests.ingest.s3_server import ceph

_TURNS = 3
_SIZE = 3_000_000
_IN_FOLDER = 2_000


def main() -> None:
    """Print what each step takes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plan", type=int, default=1_000_000, help="files planned")
    parser.add_argument("--hits", type=int, default=100_000, help="files that are there")
    parser.add_argument("--objects", type=int, default=200)
    parser.add_argument("--mb", type=float, default=3.0)
    parser.add_argument("--workers", type=int, default=16)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        _plan("planned", given.plan, Path(folder) / "empty")
        _hits(given.hits, Path(folder) / "hits")
        _fetch(given.objects, int(given.mb * 1e6), given.workers, Path(folder))


def _manifest(files: int, root: str = "s3://bucket", size: int = _SIZE) -> Manifest:
    rows: dict[str, list[object]] = {name: [] for name in FRAMES_SCHEMA.names}
    for number in range(files // 2):
        scene = f"2018{number // _IN_FOLDER:04d}_145028"
        label, image = (
            f"{scene}/{kind}/cam_front_center/{scene}_{kind}_frontcenter_{number:09d}.png"
            for kind in ("label", "camera")
        )
        row = {
            "fkey": f"c:d:{image}", "split": "train", "scene": scene, "camera": "front_center",
            "image_source": "s", "image": image, "label_source": "s", "label": label,
            "image_size": size, "label_size": size, "image_version": f"etag:{number:032x}",
            "label_version": f"etag:{number:032x}",
        }  # fmt: skip
        for name, column in rows.items():
            column.append(row.get(name))
    header = ManifestHeader(
        name="b", version=1, id="0", question={}, snapshot=1, class_list={}, classes=(),
        splits={"train": files // 2}, roots={"s": root}, datasources={"s": "c:d"},
    )  # fmt: skip
    return Manifest(header, pa.table(rows, schema=FRAMES_SCHEMA))


def _plan(title: str, files: int, cache: Path) -> StagingPlan:
    manifest = Manifest.read(_written(files, cache))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    plan = plan_staging(manifest, cache)
    took = time.process_time() - began
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3
    print(f"{title} {files:,} files: {took:.2f} s of CPU, {took / files * 1e6:.1f} us each, "
          f"{more:,.0f} MB more, {len(plan.missing):,} missing")  # fmt: skip
    return plan


def _written(files: int, cache: Path) -> Path:
    """A manifest on the disk, made by another process: its memory is not counted."""
    folder = cache.with_name(f"manifest-{files}")
    child = os.fork()
    if child == 0:
        _manifest(files).write(folder)
        os._exit(0)
    os.waitpid(child, 0)
    return folder


def _hits(files: int, cache: Path) -> None:
    plan = plan_staging(Manifest.read(_written(files, cache)), cache)
    for item in plan.missing:
        target = plan.target(item)
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            file.truncate(item.size)
    _plan("hits of", files, cache)


def _fetch(objects: int, size: int, workers: int, folder: Path) -> None:
    store = _Store(objects, size, workers, folder / "out")
    ways: dict[str, Callable[[], None]] = {
        "bare reader": lambda: store.bare(write=False),
        "bare reader that writes and syncs": lambda: store.bare(write=True),
        "framesift stage": store.stage,
    }
    if _works(["aws", "--version"]):
        ways["aws s3 sync"] = store.sync
    best: dict[str, tuple[float, float]] = {}
    for _ in range(_TURNS):
        for name, way in ways.items():
            shutil.rmtree(store.out, ignore_errors=True)
            store.out.mkdir()
            began, spent = time.perf_counter(), _cpu()
            way()
            took, cpu = time.perf_counter() - began, _cpu() - spent
            best[name] = min(best.get(name, (took, cpu)), (took, cpu))
    total = objects * size
    print(f"{objects:,} objects of {size / 1e6:.1f} MB, {workers} threads")
    for name, (took, cpu) in best.items():
        print(f"{name:34} {total / 1e6 / took:7.0f} MB/s, {cpu / total * 1e9:5.2f} s of CPU a GB, "
              f"{best['bare reader'][0] / took:.2f} of the bare reader")  # fmt: skip


class _Store:
    """Objects in Ceph's gateway, and the ways to read them all into a folder."""

    def __init__(self, objects: int, size: int, workers: int, out: Path) -> None:
        self._server, self._workers, self.out = ceph(), workers, out
        os.environ["AWS_ACCESS_KEY_ID"] = self._server.access_key
        os.environ["AWS_SECRET_ACCESS_KEY"] = self._server.secret_key
        self._bucket = self._server.new_bucket("staging")
        client = self._server.client()
        for number in range(objects):
            key = f"scene/camera/{number:09d}.bin"
            client.put_object(Bucket=self._bucket, Key=key, Body=secrets.token_bytes(size))
        options = SourceOptions(endpoint_url=self._server.endpoint)
        self._files = S3Folder(f"s3://{self._bucket}", options)
        entries = list(self._files.list())
        self._keys = [entry.key for entry in entries]
        empty = _manifest(2 * objects, self._files.root, size)
        rows = empty.frames.to_pydict()
        rows |= {"image": self._keys, "image_version": [f"etag:{one.etag}" for one in entries]}
        for name in ("label", "label_source", "label_size", "label_version"):
            rows[name] = [None] * objects
        self._manifest = Manifest(empty.header, pa.table(rows, schema=FRAMES_SCHEMA))

    def bare(self, *, write: bool) -> None:
        """Obstore alone."""
        with ThreadPoolExecutor(self._workers) as pool:
            for _ in pool.map(self._read_and_write if write else self._read, self._keys):
                pass

    def _read(self, key: str) -> bytes:
        return bytes(obstore.get(self._files.bucket.store, key).bytes())

    def _read_and_write(self, key: str) -> None:
        with (self.out / key.replace("/", "_")).open("wb") as file:
            file.write(self._read(key))
            file.flush()
            os.fsync(file.fileno())

    def stage(self) -> None:
        """What `framesift stage` does."""
        plan = plan_staging(self._manifest, self.out)
        with stager(self.out) as own, recording(self.out, own.name) as checksums:
            fetched = fetch_files(
                plan, own, checksums, lambda _: self._files, workers=self._workers
            )
        assert (fetched.files, fetched.failed) == (len(self._keys), [])

    def sync(self) -> None:
        """The command of AWS."""
        command = [
            "aws", "s3", "sync", f"s3://{self._bucket}", str(self.out), "--endpoint-url",
            self._server.endpoint, "--only-show-errors",
        ]  # fmt: skip
        subprocess.run(command, check=True, env={**os.environ, "AWS_REGION": "us-east-1"})


def _works(command: list[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def _cpu() -> float:
    """CPU of this process and of those that have ended [s]."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


if __name__ == "__main__":
    main()
