"""Bytes and requests that a scan of a tar on S3 moves, against the archive's size.

    python -m benchmarks.scan_tar_on_s3 [--frames 300]

The committed sample frames (camera image, label, JSON), repeated under distinct names and with the
JSON before its image as a tar of a folder has them, make one archive on Ceph's gateway (its Debian
packages are needed). Bytes are counted by a TCP proxy on the line and include HTTP; requests by
the archive. The scan does with every frame what ingest does: whole label, first 33 bytes and last
4 KiB of the camera image. The labels-only rows read the labels and nothing of the images.
"""

import argparse
import os
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from ingest.labels.class_list import ClassList
from ingest.labels.class_list_file import read_class_list
from ingest.layouts.read_layout import preset
from ingest.scan.listing_diff import compare
from ingest.scan.pair_frames import FrameFiles, pair_frames
from ingest.scan.read_frame import read_frame
from ingest.sources.s3.s3_source import S3Archive
from ingest.sources.source_options import SourceOptions
from ingest.sources.tar_source import TarSource
from tests.ingest.s3_server import BreakingProxy, breaking_proxy, ceph

A2D2 = preset("a2d2")
_SAMPLE = Path(__file__).parent.parent / "sample_data" / "a2d2"
_THREADS = 16


class _Counted(S3Archive):
    """An archive that counts its requests."""

    requests = 0
    _lock = threading.Lock()

    def read_range(self, start: int, length: int, label: str = "") -> bytes:
        with self._lock:
            self.requests += 1
        return super().read_range(start, length, label)


@dataclass
class _Row:
    step: str
    requests: int
    bytes: int
    seconds: float


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=300)
    frames = parser.parse_args().frames
    server = ceph()
    os.environ["AWS_ACCESS_KEY_ID"] = server.access_key
    os.environ["AWS_SECRET_ACCESS_KEY"] = server.secret_key
    bucket = server.new_bucket("tars")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "frames.tar"
        label_bytes = _write(path, frames)
        size = path.stat().st_size
        server.client().upload_file(str(path), bucket, path.name)
        with breaking_proxy(server.endpoint, lambda _: "") as proxy:
            rows = list(_measure(proxy, f"s3://{bucket}/{path.name}", Path(folder), frames))
    print(f"archive {size / 1e6:,.1f} MB: {frames:,} frames, labels {label_bytes / 1e6:,.1f} MB")
    print(f"{'step':28} {'requests':>9} {'MB on the line':>15} {'of archive':>11} {'seconds':>8}")
    for row in rows:
        print(f"{row.step:28} {row.requests:9,} {row.bytes / 1e6:15,.2f}"
              f" {row.bytes / size:11.2%} {row.seconds:8.2f}")  # fmt: skip


def _measure(proxy: BreakingProxy, uri: str, folder: Path, frames: int) -> Iterator[_Row]:
    options = SourceOptions(endpoint_url=proxy.endpoint)
    archives: list[_Counted] = []

    def measured(step: str, work: Callable[[], object]) -> _Row:
        already = archives[-1].requests if archives else 0
        opened = len(archives)
        began, moved = time.perf_counter(), proxy.downstream
        work()
        requests = archives[-1].requests - (already if len(archives) == opened else 0)
        return _Row(step, requests, proxy.downstream - moved, time.perf_counter() - began)

    def source() -> TarSource:
        archives.append(_Counted(uri, options))
        opened.append(TarSource(archives[-1], folder / "index"))
        return opened[-1]

    opened: list[TarSource] = []
    for turn in ("first", "second"):
        yield measured(f"{turn} scan: index", source)
        yield measured(f"{turn} scan: all frames", lambda: _scan(opened[-1], frames))
        yield measured(f"{turn} time: labels only", lambda: _labels(opened[-1]))


def _scan(source: TarSource, frames: int) -> None:
    palette = ClassList.from_colours(read_class_list(source, None))
    with ThreadPoolExecutor(_THREADS) as pool:

        def count(frame: FrameFiles) -> bool:
            return not read_frame(source, frame, palette).problems

        scenes = pair_frames(compare(source.list(), [], A2D2.parse), A2D2)
        of_source = [frame for scene in scenes for frame in scene.frames]
        assert sum(pool.map(count, of_source)) == frames == len(of_source)


def _labels(source: TarSource) -> None:
    labels = [file.key for file in source.list() if "/label/" in file.key]
    with ThreadPoolExecutor(_THREADS) as pool:
        for _ in pool.map(source.read, labels):
            pass


def _write(path: Path, frames: int) -> int:
    """An archive of that many frames; the bytes of its labels."""
    labels = sorted(_SAMPLE.rglob("*/label/*/*.png"))
    label_bytes = 0
    with tarfile.open(path, "w") as tar:

        def add(name: str, content: bytes) -> None:
            member = tarfile.TarInfo(f"./camera_lidar_semantic/{name}")
            member.size, member.mtime = len(content), 1_600_000_000
            tar.addfile(member, BytesIO(content))

        add("class_list.json", (_SAMPLE / "camera_lidar_semantic/class_list.json").read_bytes())
        for kind in ("camera", "label"):
            for number in range(frames):
                label = labels[number % len(labels)]
                key = label.relative_to(_SAMPLE / "camera_lidar_semantic").as_posix()
                name = f"{key[:-13]}{number:09d}"
                if kind == "label":
                    add(f"{name}.png", label.read_bytes())
                    label_bytes += label.stat().st_size
                    continue
                image = Path(str(label).replace("label", "camera"))
                name = name.replace("label", "camera")
                add(f"{name}.json", image.with_suffix(".json").read_bytes())
                add(f"{name}.png", image.read_bytes())
    return label_bytes


if __name__ == "__main__":
    main()
