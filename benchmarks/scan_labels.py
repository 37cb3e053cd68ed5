"""A first and a second scan of many labels: from a folder or an S3 server, by threads or Dask.

    .venv/bin/python -m benchmarks.scan_labels [--frames 41277] [--source folder|s3]
        [--engine threads|dask] [--workers 2] [--images]

Real A2D2 labels where A2D2_ROOT is set, else the committed sample frames, in turn under distinct
names in A2D2's layout (41,277 frames by default, as many as A2D2 has): hard links in a folder,
objects in Ceph's S3 gateway on this machine, whose own work shares the cores. Labels alone unless
--images is given. Each row is a process of its own: wall time, CPU time (its own and its workers',
without starting Python), CPU use of all cores, and peak memory of the process (of its largest
worker after the plus).
"""

import argparse
import multiprocessing
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from catalog.records.sources import add_source, recorded_source, recorded_sources
from catalog.records.store import RecordStore
from catalog.records.tables import Source
from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
from ingest.engines.choice import EngineChoice, open_engine
from ingest.labels.class_list import ClassList
from ingest.labels.class_list_file import read_class_list
from ingest.layouts.read_layout import preset
from ingest.scan.listing_diff import compare
from ingest.scan.pair_frames import pair_frames
from ingest.scan.read_frame import read_frame
from ingest.scan.scan import ScanOptions, scan_source
from ingest.sources.schemes import open_source
from ingest.sources.source_files import SourceFiles
from ingest.sources.source_options import SourceOptions

A2D2 = preset("a2d2")
REPOSITORY = Path(__file__).parent.parent
SAMPLE = REPOSITORY / "sample_data" / "a2d2" / "camera_lidar_semantic"
FRAMES_PER_SCENE = 2_000

_OWN_AND_CHILDREN = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=41_277)
    parser.add_argument("--source", choices=["folder", "s3"], default="folder")
    parser.add_argument("--engine", default="threads")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--unit-frames", type=int, default=2_000)
    parser.add_argument("--images", action="store_true")
    choices = parser.parse_args()
    (REPOSITORY / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=REPOSITORY / "build") as folder:
        root = Path(folder, "source")
        link_frames(root, choices.frames, with_images=choices.images)
        print(
            f"{choices.frames:,} frames from {choices.source}, {os.cpu_count()} cores, "
            f"{choices.workers} {choices.engine}"
        )
        with _server(choices.source, root) as (uri, options):
            _measure(choices, Path(folder, "home"), uri, options)


def _measure(choices: argparse.Namespace, home: Path, uri: str, options: dict[str, Any]) -> None:
    choice = EngineChoice(choices.engine, choices.workers, unit_frames=choices.unit_frames)
    arguments = (home, uri, options, choice, choices.images)
    _row("listing alone", choices.frames, _list, uri, options)
    _row("counting alone", choices.frames, _count, uri, options, choices.workers, choices.images)
    _row("first scan", choices.frames, _scan, *arguments)
    _row("second scan", choices.frames, _scan, *arguments)


def _row(title: str, frames: int, work: Callable[..., None], *arguments: object) -> None:
    """Run in a process of its own and print what it took."""
    answers: multiprocessing.Queue[tuple[float, float, float, float]] = multiprocessing.Queue()
    process = multiprocessing.Process(target=_measured, args=(answers, work, arguments))
    process.start()
    wall, cpu, own, largest = answers.get()
    process.join()
    use = cpu / wall / (os.cpu_count() or 1)
    print(
        f"{title:15}{wall:8.1f} s {frames / wall:8,.0f} frames/s {1e3 * cpu / frames:7.2f} ms CPU "
        f"a frame, {use:4.0%} of the cores, {own:5.0f} MiB" + (f" + {largest:.0f}" * bool(largest)),
        flush=True,
    )


def _measured(
    answers: "multiprocessing.Queue[tuple[float, ...]]",
    work: Callable[..., None],
    arguments: tuple[object, ...],
) -> None:
    before = _cpu_s()
    began = time.perf_counter()
    work(*arguments)
    wall = time.perf_counter() - began
    peaks = (resource.getrusage(who).ru_maxrss / 1024 for who in _OWN_AND_CHILDREN)
    answers.put((wall, _cpu_s() - before, *peaks))


def _cpu_s() -> float:
    usage = [resource.getrusage(who) for who in _OWN_AND_CHILDREN]
    return sum(usage_.ru_utime + usage_.ru_stime for usage_ in usage)


def _open(uri: str, options: dict[str, Any]) -> SourceFiles:
    return open_source(uri, SourceOptions.from_json(options))


def _list(uri: str, options: dict[str, Any]) -> None:
    for _ in _open(uri, options).list():
        pass


def _count(uri: str, options: dict[str, Any], workers: int, images: bool) -> None:
    files = _open(uri, options)
    palette = ClassList.from_colours(read_class_list(files, None))
    scenes = pair_frames(compare(files.list(), [], A2D2.parse), A2D2)
    frames = chain.from_iterable(scene.frames for scene in scenes)
    with ThreadPoolExecutor(workers) as pool:
        to_read = (frame.to_read(image=images) for frame in frames)
        for _ in pool.map(lambda frame: read_frame(files, frame, palette), to_read):
            pass


def _scan(
    home: Path, uri: str, options: dict[str, Any], choice: EngineChoice, images: bool
) -> None:
    store = CatalogStore(CatalogLocation.in_folder(home / "catalog"))
    records = RecordStore(home / "records.sqlite")
    if not recorded_sources(records):
        add_source(
            records,
            Source(name="s", uri=uri, platform="S3", cluster="c", datasource="s", options=options),
        )
    with open_engine(choice) as engine:
        scan_source(
            store,
            records,
            recorded_source(records, "s"),
            ScanOptions(check_images=images),
            engine=engine,
        )


def link_frames(root: Path, frames: int, *, with_images: bool) -> None:
    """Link frames, in turn, as frames of as many scenes as are needed."""
    root.mkdir(parents=True)
    real = os.environ.get("A2D2_ROOT")
    base = Path(real) if real else SAMPLE
    labels = sorted(base.rglob("*_label_*.png"))
    if real:  # another file system: no links from there
        labels = [Path(shutil.copy(label, root.parent)) for label in labels]
    shutil.copy(SAMPLE / "class_list.json", root / "class_list.json")
    for number in range(frames):
        label = labels[number % len(labels)]
        scene, frame = divmod(number, FRAMES_PER_SCENE)
        name = f"20300101_{scene:06d}"
        for kind in ("camera", "label") if with_images else ("label",):
            target = root / name / kind / "cam_front_center"
            target.mkdir(parents=True, exist_ok=True)
            stamp = name.replace("_", "")
            # A label is as good an image as any: only its header and end are looked at.
            os.link(label, target / f"{stamp}_{kind}_frontcenter_{frame:09d}.png")


@contextmanager
def _server(kind: str, root: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Where the frames are: the folder itself, or a bucket that they were put into."""
    if kind == "folder":
        yield str(root), {}
        return
    from tests.ingest.s3_server import ceph

    server = ceph()
    os.environ.update(AWS_ACCESS_KEY_ID=server.access_key, AWS_SECRET_ACCESS_KEY=server.secret_key)
    bucket, client = server.new_bucket("framesift-scan"), server.client()

    def put(path: Path) -> None:
        key = path.relative_to(root).as_posix()
        client.put_object(Bucket=bucket, Key=key, Body=path.read_bytes())

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(put, [path for path in root.rglob("*") if path.is_file()]))
    yield f"s3://{bucket}", {"endpoint_url": server.endpoint}


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    main()
