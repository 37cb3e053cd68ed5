"""What a staging takes from a source that has limits on megabytes and requests a second."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from api.schemas.sources import NewConnection
from api.services.session import Session
from api.workspace import Workspace
from catalog.errors import InvalidInput
from catalog.records.sources import recorded_source
from ingest.sources.opened_file import OpenedFile
from ingest.sources.source_options import SourceOptions
from pipeline.cache.aligned_buffer import LARGEST_BYTES
from pipeline.cache.checksums import recording
from pipeline.cache.stager import CLAIMS, stager
from pipeline.manifest import Manifest
from pipeline.staging.fetch import fetch_files
from pipeline.staging.opened_sources import OpenedSources
from pipeline.staging.plan import make_cache, plan_staging
from pipeline.staging.preview import preview_staging
from pipeline.staging.progress import Progress
from pipeline.staging.rate_limit import RateLimit, TokenBucket
from pipeline.staging.stage import stage_dataset
from pipeline.staging.stage_concurrently import SplitReading
from tests.pipeline.homes import FRAMES
from tests.pipeline.test_datasets import make
from tests.pipeline.test_reading_through import beside, size_of
from tests.pipeline.test_staging import copies

SEED = 5


class Clock:
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        """The time [s]."""
        return self.now

    def pause(self, seconds: float) -> None:
        """Go on."""
        self.now += seconds


def test_no_stretch_of_time_lets_through_more_than_its_share() -> None:
    """Of many takers at once, with pauses: T seconds have what T + 1 allow, and nothing is lost."""
    clock, chance = Clock(), random.Random(SEED)
    bucket, let_through = TokenBucket(10, clock), []
    for _ in range(300):
        units = chance.uniform(0.1, 8)
        let_through.append((clock.now + bucket.take(units), units))
        clock.pause(chance.choice([0, 0, 0.3, chance.uniform(0, 3)]))
    for first, (begin, _) in enumerate(let_through):
        taken = 0.0
        for moment, units in let_through[first:]:
            taken += units
            assert taken <= 10 * (moment - begin + 1) + 1e-6

    clock, asked = Clock(), 0.0
    bucket = TokenBucket(10, clock)
    for _ in range(100):
        asked = bucket.take(5)  # all at once: each in its turn
    assert asked == pytest.approx(100 * 5 / 10 - 1)
    assert TokenBucket(0, clock).take(10**12) == 0


def test_a_large_file_comes_as_slowly_as_its_limits_demand() -> None:
    """Its first 16 MB before it is opened, the rest piece by piece; a request a piece of a tar."""
    size, clock = 3 * LARGEST_BYTES, Clock()
    limit = RateLimit(mb_per_s=8, clock=clock)
    began = clock.now
    clock.pause(limit.open(size))
    assert clock.now - began == pytest.approx(LARGEST_BYTES / 8e6 - 1)
    opened = OpenedFile(size, "", iter([bytes(LARGEST_BYTES // 2)] * 6))
    sizes = [len(piece) for piece in limit.metered(opened, size, clock.pause).pieces]
    assert sum(sizes) == size
    assert clock.now - began == pytest.approx(size / 8e6 - 1)

    for in_ranges, requests in ((False, 1), (True, 6)):
        limit, began = RateLimit(requests_per_s=0.5, clock=clock), clock.now
        clock.pause(limit.open(size))
        opened = replace(opened, pieces=iter([b"x"] * 6), in_ranges=in_ranges)
        assert list(limit.metered(opened, size, clock.pause).pieces) == [b"x"] * 6
        assert clock.now - began == pytest.approx(requests / 0.5 - 1)


class Noting(RateLimit):
    """A limit that notes what it is asked, and lets all through at once."""

    def __init__(self, options: SourceOptions, notes: list[tuple[float, float, int]]) -> None:
        """Note it there: the limits of the options, and the size of each file."""
        super().__init__()
        self._options, self._notes = options, notes

    def open(self, size: int) -> float:
        """Note a file."""
        options = self._options
        self._notes.append((options.max_mb_per_s, options.max_requests_per_s, size))
        return 0.0


def test_stagings_obey_the_limits_of_a_source(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One by itself and one beside a job ask for each file, by the limits that are recorded."""
    notes: list[tuple[float, float, int]] = []
    monkeypatch.setattr(RateLimit, "of", lambda options: Noting(options, notes))
    change = Session(workspace, is_command=True).sources.change
    change("a2d2", max_mb_per_s=250, max_requests_per_s=100)
    dataset = make(workspace)
    stage_dataset(workspace.records, dataset, tmp_path / "cache")
    assert {note[:2] for note in notes} == {(250, 100)}
    assert (len(notes), sum(note[2] for note in notes)) == (2 * FRAMES, size_of(dataset))
    change("a2d2", max_mb_per_s=0)
    with beside(workspace, dataset, tmp_path / "2", SplitReading("all", start_after=1)) as staging:
        assert staging.is_ready.wait(300)
    assert {note[:2] for note in notes[2 * FRAMES :]} == {(0, 100)}
    assert len(notes) == 4 * FRAMES


@pytest.mark.wide
def test_a_staging_that_waits_for_its_limit_can_be_ended(
    workspace: Workspace, tmp_path: Path
) -> None:
    """Its threads have hours to wait; nothing was fetched, and nothing is left."""
    cache = tmp_path / "cache"
    manifest = Manifest.read(Path(make(workspace).manifest))
    sources = OpenedSources(workspace.records, manifest.header)
    plan, limit = plan_staging(manifest, cache), RateLimit(requests_per_s=0.001)
    limit.open(0)
    told: list[Progress] = []

    def ended(progress: Progress) -> None:
        told.append(progress)
        if len(told) > 1:
            raise KeyboardInterrupt

    make_cache(cache)
    with (
        pytest.raises(KeyboardInterrupt),
        stager(cache) as own,
        recording(cache, own.name) as checksums,
    ):
        fetch_files(plan, own, checksums, sources.files, limits=lambda _: limit, progress=ended)
    assert told[-1].fetched_bytes == 0
    assert not copies(cache)
    assert not list((cache / CLAIMS).iterdir())


def test_a_plan_knows_the_limits(workspace: Workspace, tmp_path: Path) -> None:
    """No faster than they allow, however fast earlier stagings were."""
    records, cache = workspace.records, tmp_path / "cache"
    cars, dataset = make(workspace, "cars", "car=10000:"), make(workspace)
    stage_dataset(records, cars, cache)
    change = Session(workspace, is_command=True).sources.change
    change("a2d2", max_mb_per_s=0.001)
    plan = preview_staging(records, dataset, cache)
    assert plan.seconds == pytest.approx(plan.missing_bytes / 1_000)
    change("a2d2", max_mb_per_s=0, max_requests_per_s=0.01)
    assert preview_staging(records, dataset, cache).seconds == plan.missing_files / 0.01


def test_limits_of_a_source(workspace: Workspace, tmp_path: Path) -> None:
    """Given with it, changed, kept where it moves and where a connection is replaced."""
    session = Session(workspace, is_command=True)
    sources = session.sources
    added = sources.add("slow", str(tmp_path), max_mb_per_s=2.5, max_requests_per_s=10)
    assert added.options == {"max_mb_per_s": 2.5, "max_requests_per_s": 10}
    expected = r"max_requests_per_s: got {}, expected 0\.001 to 1,000,000, or 0 for no limit"
    for wrong, shown in ((1e-9, "1e-09"), (1e7, r"1e\+07"), (float("inf"), "inf")):
        with pytest.raises(InvalidInput, match=expected.format(shown)):
            sources.change("slow", max_requests_per_s=wrong)
        with pytest.raises(InvalidInput, match=expected.format(shown)):
            sources.add("wrong", str(tmp_path), max_requests_per_s=wrong)
    (tmp_path / "there").mkdir()
    moved = sources.change("slow", uri=str(tmp_path / "there"), max_requests_per_s=0)
    assert (moved.max_mb_per_s, moved.max_requests_per_s) == (2.5, 0)
    replaced = NewConnection(name="slow", uri=str(tmp_path), datasource="slow")
    session.connections.replace("slow", replaced)
    options = SourceOptions.from_json(recorded_source(workspace.records, "slow").options)
    assert (options.max_mb_per_s, options.max_requests_per_s) == (2.5, 0)
