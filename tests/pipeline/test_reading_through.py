"""A staging beside the readers of a job, who wait for what is coming, in caches of any size."""

import json
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path

import pytest

from api.workspace import Workspace
from catalog.errors import BadFile, FramesiftError, StorageError
from catalog.records.tables import Dataset
from pipeline.cache.contents import space
from pipeline.cache.lease import LEASES
from pipeline.cache.limits import Limits, write_limits
from pipeline.cache.reading import Reading, ReadsThrough, StagingLocation
from pipeline.cache.stager import PARTS
from pipeline.cache.statistics import cache_statistics
from pipeline.example_order import examples
from pipeline.manifest import Manifest
from pipeline.staging.concurrent import ConcurrentCallbacks
from pipeline.staging.fetch import FailedFile
from pipeline.staging.progress import Progress
from pipeline.staging.reading_order import ReadingOrder
from pipeline.staging.stage_concurrently import ConcurrentOptions, SplitReading, stage_concurrently
from tests.api.servers import wait_until
from tests.pipeline.homes import FRAMES
from tests.pipeline.test_datasets import make

SEED = 3


@dataclass
class Beside:
    """A staging that runs beside this test."""

    cache: Path
    stop: threading.Event = field(default_factory=threading.Event)
    began: threading.Event = field(default_factory=threading.Event)
    is_ready: threading.Event = field(default_factory=threading.Event)
    place: StagingLocation | None = None
    progress: list[Progress] = field(default_factory=list)
    failed: list[FailedFile] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    most: int = 0
    error: FramesiftError | None = None

    def run(self, workspace: Workspace, dataset: Dataset, reading: SplitReading) -> None:
        """Stage until told to stop."""
        told = ConcurrentCallbacks(
            self.is_ready.set, self.count, self.failed.append, self.said.append
        )
        options = ConcurrentOptions(workers=1, stop=self.stop)
        try:
            stage_concurrently(
                workspace.records, dataset, self.cache, reading, options, told, self.begin
            )
        except FramesiftError as error:
            self.error = error
        self.began.set()
        self.is_ready.set()

    def begin(self, place: StagingLocation) -> None:
        """Note where it is."""
        self.place = place
        self.began.set()

    def count(self, progress: Progress) -> None:
        """Note how far it is, and the most that the cache held."""
        self.progress.append(progress)
        self.most = max(self.most, space(self.cache)[0])

    @property
    def fetched_bytes(self) -> int:
        """What it has fetched."""
        return self.progress[-1].fetched_bytes if self.progress else 0

    def through(self) -> ReadsThrough:
        """A reader of it."""
        assert self.place is not None
        return ReadsThrough(Path(self.place.folder), Path(self.place.manifest))


@contextmanager
def beside(
    workspace: Workspace, dataset: Dataset, cache: Path, reading: SplitReading
) -> Iterator[Beside]:
    """A staging for the block."""
    staging = Beside(cache)
    thread = threading.Thread(target=staging.run, args=(workspace, dataset, reading))
    thread.start()
    try:
        assert staging.began.wait(300)
        yield staging
    finally:
        staging.stop.set()
        thread.join(60)
        assert not thread.is_alive()


def files_of(manifest: Manifest) -> list[tuple[str, str]]:
    """Paths of the image and the label of each frame."""
    return list(zip(manifest.image_paths(), map(str, manifest.label_paths()), strict=True))


def read(
    staging: Beside,
    dataset: Dataset,
    rows: Sequence[int],
    reading: Reading,
) -> None:
    """Read frames as a rank or shard does, and compare each with the source's."""
    with staging.through() as through:
        through.begin(reading)
        own = files_of(Manifest.read(Path(dataset.manifest)))
        here = files_of(Manifest.read(through.manifest))
        for index, row in enumerate(rows):
            for path, source in zip(here[row], own[row], strict=True):
                assert content(through, Path(path)) == Path(source).read_bytes()
            through.has_read(index)


def content(through: ReadsThrough, path: Path) -> bytes:
    """A file's bytes once it is there."""
    while True:
        try:
            return path.read_bytes()
        except FileNotFoundError:
            assert through.wait_for(str(path))


def training(rank: int, ranks: int, batch_size: int, epochs: int, begin: int = 0) -> list[int]:
    """The rows that a rank reads in so many epochs."""
    own = examples(FRAMES, SEED, batch_size, rank=rank, ranks=ranks, begin=begin)
    return [example.row for example in islice(own, (epochs * FRAMES - begin) // ranks)]


def size_of(dataset: Dataset) -> int:
    """The dataset's files [bytes]."""
    files = files_of(Manifest.read(Path(dataset.manifest)))
    return sum(Path(path).stat().st_size for pair in files for path in pair)


def test_files_come_in_the_order_in_which_they_are_read(
    workspace: Workspace, tmp_path: Path
) -> None:
    """A cache of a fourth holds what is read first; one of all gets all, and nothing is left."""
    dataset, cache = make(workspace), tmp_path / "cache"
    write_limits(cache, Limits(hard_bytes=size_of(dataset) // 4))
    with beside(workspace, dataset, cache, SplitReading("all", seed=SEED, start_after=1)) as few:
        assert few.is_ready.wait(300)
        assert few.place is not None
        here = files_of(Manifest.read(Path(few.place.manifest)))
        came = {row for row in range(FRAMES) if all(Path(path).exists() for path in here[row])}
    order = ReadingOrder(FRAMES, SEED)
    assert len(came) > 2
    assert came == {order.row(position) for position in range(len(came))}
    write_limits(cache, Limits())
    with beside(workspace, dataset, cache, SplitReading("all", start_after=1)) as staging:
        assert staging.is_ready.wait(300)
        assert staging.progress[-1].bytes == size_of(dataset)
        assert staging.progress[-1].files == 2 * FRAMES
        assert staging.fetched_bytes < size_of(dataset)
    assert staging.error is None
    counts = cache_statistics(cache)["local:a2d2"]
    assert counts.hits + counts.misses == 2 * 2 * FRAMES
    assert counts.fetched_files >= 2 * FRAMES
    assert not list((cache / PARTS).iterdir())
    assert not [place for place in (cache / LEASES).iterdir() if place.is_dir()]


@pytest.mark.wide
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_dataset_larger_than_the_cache_is_read_over_several_epochs(
    workspace: Workspace, tmp_path: Path, ranks: int
) -> None:
    """Every byte right, the limit never passed, and what the next epoch needs first is kept."""
    dataset, cache, epochs = make(workspace), tmp_path / "cache", 3
    size = size_of(dataset)
    write_limits(cache, Limits(hard_bytes=size // 2))
    reading = SplitReading("all", ranks, seed=SEED, batch_size=2, start_after=1)
    with beside(workspace, dataset, cache, reading) as staging:
        assert staging.is_ready.wait(300)
        with ThreadPoolExecutor(ranks) as pool:
            jobs = [
                pool.submit(
                    read,
                    staging,
                    dataset,
                    training(rank, ranks, 2, epochs),
                    Reading(rank, ranks, 2, 0, epochs * FRAMES),
                )
                for rank in range(ranks)
            ]
            for job in jobs:
                job.result(120)
    assert staging.error is None
    assert 0 < staging.most <= size // 2
    # A part of what an epoch needs lies there from the one before.
    assert staging.fetched_bytes < epochs * size
    assert len([line for line in staging.said if "part of the split" in line]) == 1


@pytest.mark.wide
def test_a_cache_of_a_few_frames_suffices(workspace: Workspace, tmp_path: Path) -> None:
    """Room for two of 24 frames: slow, and right. Without room for one, it says so."""
    dataset, cache = make(workspace), tmp_path / "cache"
    files = files_of(Manifest.read(Path(dataset.manifest)))
    largest = max(sum(Path(path).stat().st_size for path in pair) for pair in files)
    write_limits(cache, Limits(hard_bytes=2 * largest))
    with beside(workspace, dataset, cache, SplitReading("all", seed=SEED)) as staging:
        read(staging, dataset, training(0, 1, 1, 2), Reading(0, 1, 1, 0, 2 * FRAMES))
    assert staging.most <= 2 * largest
    write_limits(cache, Limits(hard_bytes=1000))
    with (
        beside(workspace, dataset, cache, SplitReading("all", seed=SEED)) as staging,
        pytest.raises(BadFile, match=r"limited to 0\.00 MB"),
    ):
        read(staging, dataset, [0], Reading(0, 1, 1, 0, FRAMES))


@pytest.mark.wide
def test_two_jobs_on_one_dataset_share_a_cache_that_is_too_small(
    workspace: Workspace, tmp_path: Path
) -> None:
    """Neither is refused for what the other holds; each reads every frame."""
    dataset, cache = make(workspace), tmp_path / "cache"
    write_limits(cache, Limits(hard_bytes=size_of(dataset) // 2))
    first = SplitReading("all", seed=SEED)
    with (
        beside(workspace, dataset, cache, first) as one,
        beside(workspace, dataset, cache, SplitReading("all")) as other,
        ThreadPoolExecutor(2) as pool,
    ):
        jobs = [
            pool.submit(read, one, dataset, training(0, 1, 1, 2), Reading(0, 1, 1, 0, 2 * FRAMES)),
            pool.submit(read, other, dataset, range(FRAMES), Reading(0, 1, 1, 0, FRAMES)),
        ]
        for job in jobs:
            job.result(120)


def test_what_made_room_for_awaited_files_comes_again_in_its_turn(
    workspace: Workspace, tmp_path: Path
) -> None:
    """A process reads far ahead: what goes for its frames is not passed over."""
    dataset, cache = make(workspace), tmp_path / "cache"
    write_limits(cache, Limits(hard_bytes=size_of(dataset) // 4))
    with (
        beside(workspace, dataset, cache, SplitReading("all", start_after=1)) as staging,
        staging.through() as through,
    ):
        assert staging.is_ready.wait(300)
        here = files_of(Manifest.read(through.manifest))

        def there() -> set[int]:
            return {row for row in range(FRAMES) if all(Path(path).exists() for path in here[row])}

        def read_until(row: int) -> None:
            through.has_read(row - 1)
            through.wait_for(here[row][0])  # which tells the staging at once

        ahead = there()
        through.begin(Reading(0, 1, 1, 0, FRAMES))
        read_until(1)
        read_until(2)
        wait_until(lambda: max(there()) > max(ahead), 60)
        ahead = there()
        last = range(FRAMES - 3, FRAMES)
        paths = [os.path.relpath(path, cache) for row in last for path in here[row]]
        assert staging.place is not None
        process = Path(staging.place.folder) / "readers" / "0-process.json"
        waits = Reading(0, 1, 1, 0, None, waits=tuple(paths), process="process")
        process.write_text(json.dumps(asdict(waits)))
        wait_until(lambda: there() >= set(last), 60)
        assert {4, 5} <= ahead - there()
        process.unlink()
        read_until(3)
        wait_until(lambda: there() >= {4, 5}, 60)
    assert staging.error is None


def test_a_file_that_cannot_be_had_is_named(own_source: Workspace, tmp_path: Path) -> None:
    """Its reader learns where it should lie and why it does not come; the others come."""
    dataset = make(own_source)
    gone = files_of(Manifest.read(Path(dataset.manifest)))[2][0]
    Path(gone).unlink()
    with beside(own_source, dataset, tmp_path / "cache", SplitReading("all")) as staging:
        with pytest.raises(BadFile, match="is the source mounted") as why:
            read(staging, dataset, range(FRAMES), Reading(0, 1, 1, 0, FRAMES))
        assert why.value.file == gone
        wait_until(lambda: staging.progress[-1].files == 2 * FRAMES - 1)
        assert staging.progress[-1].eta_s == 0
    assert {failure.origin for failure in staging.failed} == {gone}


def test_a_source_that_fails_ends_the_staging_before_readers_begin(
    own_source: Workspace, tmp_path: Path
) -> None:
    """Not after: then a reader that needs it is told."""
    dataset = make(own_source)
    (tmp_path / "source").rename(tmp_path / "away")
    reading = SplitReading("all", start_after=0.5)
    with beside(own_source, dataset, tmp_path / "cache", reading) as staging:
        assert staging.is_ready.wait(300)
    assert isinstance(staging.error, StorageError)
    with beside(own_source, dataset, tmp_path / "cache", SplitReading("all")) as staging:
        with pytest.raises(BadFile, match="source"):
            read(staging, dataset, range(FRAMES), Reading(0, 1, 1, 0, FRAMES))
        (tmp_path / "away").rename(tmp_path / "source")


def test_a_reader_whose_staging_has_ended_says_so(workspace: Workspace, tmp_path: Path) -> None:
    """What is there is read; what is not is not waited for any longer."""
    dataset = make(workspace)
    files = files_of(Manifest.read(Path(dataset.manifest)))
    write_limits(tmp_path / "cache", Limits(hard_bytes=size_of(dataset) // 2))
    with beside(workspace, dataset, tmp_path / "cache", SplitReading("all")) as staging:
        through = staging.through()
        here = files_of(Manifest.read(through.manifest))
        wait_until(lambda: all(Path(path).exists() for path in here[0]))
    assert content(through, Path(here[0][0])) == Path(files[0][0]).read_bytes()
    with pytest.raises(BadFile, match="the staging that fetches it has ended"):
        through.wait_for(here[-1][0])


def test_a_job_that_goes_on_from_a_checkpoint(workspace: Workspace, tmp_path: Path) -> None:
    """What it reads next comes first, through a cache of a third."""
    dataset, cache = make(workspace), tmp_path / "cache"
    write_limits(cache, Limits(hard_bytes=size_of(dataset) // 3))
    begin = FRAMES + 10
    with beside(workspace, dataset, cache, SplitReading("all", seed=SEED)) as staging:
        rows = training(0, 1, 1, 2, begin)
        read(staging, dataset, rows, Reading(0, 1, 1, begin, 2 * FRAMES))


def test_a_shard_that_reads_nothing_holds_nobody_up(workspace: Workspace, tmp_path: Path) -> None:
    """It was killed before it began: the frames of the other come all the same."""
    dataset, cache = make(workspace), tmp_path / "cache"
    write_limits(cache, Limits(hard_bytes=size_of(dataset) // 4))
    with beside(workspace, dataset, cache, SplitReading("all", 2)) as staging:
        read(staging, dataset, range(1, FRAMES, 2), Reading(1, 2, 1, 0, FRAMES))


def test_a_cache_of_one_node_gets_the_part_of_its_ranks(
    workspace: Workspace, tmp_path: Path
) -> None:
    """The other node's half of the epoch is not fetched here."""
    dataset, cache = make(workspace), tmp_path / "cache"
    reading = SplitReading("all", 2, frozenset({1}), SEED, 2)
    with beside(workspace, dataset, cache, reading) as staging:
        rows = training(1, 2, 2, 1)
        read(staging, dataset, rows, Reading(1, 2, 2, 0, FRAMES))
    assert staging.progress[-1].files == FRAMES
    assert len(list((cache / "local:a2d2").rglob("*.png"))) == FRAMES
