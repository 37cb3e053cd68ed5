"""What staging costs: planning, hits, and fetching beside other ways to do it.

    python -m benchmarks.staging [--plan 1000000] [--hits 100000] [--objects 1000] [--mb 3]
        [--workers 16] [--turns 5] [--store /dev/shm] [--s3fs PYTHON]

Planning and hits are of made-up manifests, two files a frame; hits look at sparse files that are
there. Fetching is side by side in one run, each way in turn: from Ceph's gateway (its Debian
packages are needed) a bare reader that keeps nothing, the same that writes and syncs each file,
staging's own way in and onto the disk without a checksum, a claim or a name, Framesift's staging,
`aws s3 sync` where that command is there, and fsspec's cache of whole files over s3fs by a Python
that has it. A store in memory (--store) does not share a disk with the cache, as no store that a
team has does; from a folder that is in the page cache `cp`, the same way and staging. What a way
left for the disk to write is written before the next one begins, after a pause. Shown are the best
of the turns, and the median of the ratios to the first way of the same turn, with the least and the
greatest.
"""

import argparse
import os
import resource
import secrets
import statistics
import subprocess
import tempfile
import time
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import cast

import obstore
import pyarrow as pa

from catalog.storage.file_version import listed_version
from catalog.values import File
from ingest.labels.class_list import ClassList
from ingest.sources.local_folder import LocalFolder
from ingest.sources.opened_file import open_file
from ingest.sources.s3.s3_source import S3Folder
from ingest.sources.source_files import SourceFiles
from ingest.sources.source_options import SourceOptions
from pipeline.cache.aligned_buffer import ALIGNED_BYTES, Buffers
from pipeline.cache.checksums import recording
from pipeline.cache.png_check import SIGNATURE
from pipeline.cache.stager import stager
from pipeline.manifest import Manifest, ManifestHeader
from pipeline.manifest_rows import FRAMES_SCHEMA
from pipeline.staging.fetch import fetch_files
from pipeline.staging.plan import StagingPlan, plan_staging
from tests.ingest.s3_server import ceph

_FILE_CACHE = """
import sys, time
from concurrent.futures import ThreadPoolExecutor
import fsspec, s3fs
endpoint, out, workers, *keys = sys.argv[1:]
began, cpu = time.perf_counter(), time.process_time()
files = fsspec.filesystem(
    "simplecache", target_protocol="s3", cache_storage=out,
    target_options={"client_kwargs": {"endpoint_url": endpoint}},
)

def read(key):
    with files.open(key) as file:
        file.read(1)

with ThreadPoolExecutor(int(workers)) as pool:
    for _ in pool.map(read, keys):
        pass
print(time.perf_counter() - began, time.process_time() - cpu)
"""

_SIZE = 3_000_000
_IN_FOLDER = 2_000

_REST_S = 3.0
"""Pause before each way, so that each begins alike [s]. Without one, a `cp -r` took 1.35 s of CPU
a GB, and the next one 0.29: probably as it wrote into memory that the first had just freed, and
that a virtual machine gives back to its host after 2 s."""


def main() -> None:
    """Print what each step takes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plan", type=int, default=1_000_000, help="files planned")
    parser.add_argument("--hits", type=int, default=100_000, help="files that are there")
    parser.add_argument("--objects", type=int, default=1000)
    parser.add_argument("--mb", type=float, default=3.0)
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--store", help="Ceph's folder; where temporary files are by default")
    parser.add_argument("--s3fs", default="", help="a Python that has s3fs")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        _plan("planned", given.plan, Path(folder) / "empty")
        _hits(given.hits, Path(folder) / "hits")
        _copy(given.objects, int(given.mb * 1e6), given, Path(folder))
        _fetch(given.objects, int(given.mb * 1e6), given, Path(folder))


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
        name="b", version=1, id="0", question={}, snapshot=1,
        class_list=ClassList.from_colours({"#ff0000": "Car"}), classes=("Car",),
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


def _fetch(objects: int, size: int, given: argparse.Namespace, folder: Path) -> None:
    store = _Store(objects, size, given.workers, given.store)
    ways: dict[str, Callable[[Path], object]] = {
        "bare reader": lambda _: store.bare(),
        "bare reader that writes and syncs": store.bare,
        "in place, O_DIRECT, unchecked": store.unchecked,
        "framesift stage": store.stage,
    }
    if _works(["aws", "--version"]):
        ways["aws s3 sync"] = store.sync
    if given.s3fs:
        ways["s3fs, fsspec simplecache"] = lambda out: store.file_cache(given.s3fs, out)
    print(f"{objects:,} PNG files of {size / 1e6:.1f} MB from Ceph, {given.workers} transfers")
    _compare(ways, objects * size, folder / "objects", given.turns)


def _copy(files: int, size: int, given: argparse.Namespace, folder: Path) -> None:
    source = folder / "source"
    for number in range(files):
        path = source / "scene" / "camera" / f"{number:09d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_png(size))
    opened = LocalFolder(source)
    entries = list(opened.list())
    manifest = _of_files(opened.root, size, entries)

    def cp(out: Path, *, sync: bool = False) -> None:
        subprocess.run(["/bin/cp", "-r", f"{source}/.", str(out)], check=True)
        for path in out.rglob("*.png") if sync else ():
            with path.open("rb") as file:
                os.fsync(file.fileno())

    ways: dict[str, Callable[[Path], object]] = {
        "cp -r": cp,
        "cp -r, each file synced": lambda out: cp(out, sync=True),
        "in place, O_DIRECT, unchecked": lambda out: _unchecked(
            opened, [entry.key for entry in entries], size, out, given.workers
        ),
        "framesift stage": lambda out: _stage(manifest, opened, out, given.workers),
    }
    print(f"{files:,} PNG files of {size / 1e6:.1f} MB from a folder, {given.workers} transfers")
    _compare(ways, files * size, folder / "files", given.turns)


def _compare(
    ways: dict[str, Callable[[Path], object]], total: int, folder: Path, turns: int
) -> None:
    """Run each in turn; print the best, and its ratios to the first one's turns.

    Files are emptied meanwhile and not deleted: for each new one ext4 looks through all inodes that
    were deleted in the last five minutes, up to 1 ms of CPU.
    """
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for turn in range(turns):
        for number, (name, way) in enumerate(ways.items()):
            out = folder / f"{turn}-{number}"
            out.mkdir(parents=True)
            os.sync()  # else this way waits for what the one before left, and pays for it
            time.sleep(_REST_S)
            began, cpu = time.perf_counter(), _cpu()
            measured = way(out)
            # What measures itself leaves out its start.
            took = measured or (time.perf_counter() - began, _cpu() - cpu)
            spent[name].append(cast("tuple[float, float]", took))
            for path in out.rglob("*"):
                if path.is_file():
                    os.truncate(path, 0)
    first = next(iter(ways))
    for name, turns_of in spent.items():
        took, cpu = (min(values) for values in zip(*turns_of, strict=True))
        pairs = zip(spent[first], turns_of, strict=True)
        ratios = sorted(one[0] / other[0] for one, other in pairs)
        print(f"{name:34} {total / 1e6 / took:7.0f} MB/s, {cpu / total * 1e9:5.2f} s of CPU a GB, "
              f"{statistics.median(ratios):.2f} of {first} "
              f"({ratios[0]:.2f}..{ratios[-1]:.2f})")  # fmt: skip


def _png(size: int) -> bytes:
    """A PNG file of that size, as far as its chunks go."""

    def chunk(name: bytes, content: bytes) -> bytes:
        crc = zlib.crc32(name + content).to_bytes(4)
        return len(content).to_bytes(4) + name + content + crc

    head, end = SIGNATURE + chunk(b"IHDR", bytes(13)), chunk(b"IEND", b"")
    return head + chunk(b"IDAT", secrets.token_bytes(size - len(head) - len(end) - 12)) + end


def _of_files(root: str, size: int, entries: list[File]) -> Manifest:
    """A manifest of files, each the image of a frame without a label."""
    empty = _manifest(2 * len(entries), root, size)
    rows = empty.frames.to_pydict()
    rows["image"] = [entry.key for entry in entries]
    rows["image_version"] = [listed_version(entry.etag, entry.mtime) for entry in entries]
    for name in ("label", "label_source", "label_size", "label_version"):
        rows[name] = [None] * len(entries)
    return Manifest(empty.header, pa.table(rows, schema=FRAMES_SCHEMA))


def _stage(manifest: Manifest, files: SourceFiles, out: Path, workers: int) -> None:
    """What `framesift stage` does."""
    plan = plan_staging(manifest, out)
    with stager(out) as own, recording(out, own.name) as checksums:
        fetched = fetch_files(plan, own, checksums, lambda _: files, workers=workers)
    assert (fetched.files, fetched.failed) == (len(manifest), [])


def _unchecked(files: SourceFiles, keys: list[str], size: int, out: Path, workers: int) -> None:
    """What staging does to bytes alone: receive them into aligned memory, write, and sync them."""
    buffers = Buffers()

    def fetch(key: str) -> None:
        with buffers.buffer(size) as buffer, open_file(files, key) as opened:
            if opened.read_into is None:
                at = 0
                for piece in opened.pieces:
                    buffer.memory[at : at + len(piece)] = piece
                    at += len(piece)
                buffer.size = at
            else:
                buffer.size = opened.read_into(buffer.memory[:size])
            flags = os.O_CREAT | os.O_WRONLY | os.O_DIRECT
            file = os.open(out / key.replace("/", "_"), flags, 0o666)
            left = buffer.memory[: -(-size // ALIGNED_BYTES) * ALIGNED_BYTES]
            while left:
                left = left[os.write(file, left) :]
            os.ftruncate(file, size)
            os.fsync(file)
            os.close(file)

    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(fetch, keys):
            pass


class _Store:
    """Objects in Ceph's gateway, and the ways to read them all into a folder."""

    def __init__(self, objects: int, size: int, workers: int, folder: str | None) -> None:
        self._server, self._workers, self._size = ceph(folder), workers, size
        os.environ["AWS_ACCESS_KEY_ID"] = self._server.access_key
        os.environ["AWS_SECRET_ACCESS_KEY"] = self._server.secret_key
        self._bucket = self._server.new_bucket("staging")
        client = self._server.client()
        for number in range(objects):
            key = f"scene/camera/{number:09d}.png"
            client.put_object(Bucket=self._bucket, Key=key, Body=_png(size))
        self._files = S3Folder(
            f"s3://{self._bucket}", SourceOptions(endpoint_url=self._server.endpoint)
        )
        entries = list(self._files.list())
        self._keys = [entry.key for entry in entries]
        self._manifest = _of_files(self._files.root, size, entries)

    def bare(self, out: Path | None = None) -> None:
        """Obstore alone; into a folder where there is one."""
        read = self._read if out is None else partial(self._read_and_write, out)
        with ThreadPoolExecutor(self._workers) as pool:
            for _ in pool.map(read, self._keys):
                pass

    def _read(self, key: str) -> bytes:
        return bytes(obstore.get(self._files.bucket.store, key).bytes())

    def _read_and_write(self, out: Path, key: str) -> None:
        with (out / key.replace("/", "_")).open("wb") as file:
            file.write(self._read(key))
            file.flush()
            os.fsync(file.fileno())

    def unchecked(self, out: Path) -> None:
        """The bytes alone."""
        _unchecked(self._files, self._keys, self._size, out, self._workers)

    def stage(self, out: Path) -> None:
        """What `framesift stage` does."""
        _stage(self._manifest, self._files, out, self._workers)

    def file_cache(self, python: str, out: Path) -> tuple[float, float]:
        """Fsspec's cache of whole files that threads may share, over s3fs; its time and CPU [s]."""
        keys = [f"{self._bucket}/{key}" for key in self._keys]
        given = [self._server.endpoint, str(out), str(self._workers), *keys]
        command = [python, "-c", _FILE_CACHE, *given]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        took, cpu = map(float, done.stdout.split())
        return took, cpu

    def sync(self, out: Path) -> None:
        """The command of AWS."""
        command = [
            "aws", "s3", "sync", f"s3://{self._bucket}", str(out), "--endpoint-url",
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
