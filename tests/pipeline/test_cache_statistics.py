"""What stagings and evictions did, counted by source in the cache, and shown by /metrics."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from api.workspace import Workspace
from catalog.errors import StorageError
from pipeline.cache import statistics
from pipeline.cache.lease import Holder, leased
from pipeline.cache.limits import Limits, write_limits
from pipeline.cache.measured_space import measured_space
from pipeline.cache.reservation import Reservation
from pipeline.cache.statistics import Counting, SourceCounts, cache_statistics, counting
from pipeline.manifest import Manifest
from pipeline.staging.stage import stage_dataset
from tests.api.servers import serving
from tests.pipeline.homes import FRAMES
from tests.pipeline.test_datasets import make

FILES, SOURCE = 2 * FRAMES, "local:a2d2"


def test_counts_of_all_are_added_and_their_files_do_not_pile_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after another, one that runs beside, threads of a process: nothing twice or lost."""
    monkeypatch.setattr(statistics, "_WRITTEN_EVERY_S", 0.0)
    running = Counting(tmp_path)
    running.count("a:b", SourceCounts(hits=1))
    for _ in range(20):
        with counting(tmp_path) as counts:
            counts.fetched("a:b", 10, 0.3)

    def fetch(_: int) -> None:
        with counting(tmp_path) as outer, counting(tmp_path) as inner:
            assert outer is inner
            inner.fetched("a:b", 10, 1000.0)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(fetch, range(40)))
    found = cache_statistics(tmp_path)["a:b"]
    assert (found.hits, found.fetched_files, found.fetched_bytes) == (1, 60, 600)
    assert found.within[statistics.BOUNDS_S.index(0.5)] == 20
    assert found.within[-1] == 40
    assert len(list((tmp_path / ".statistics").iterdir())) == 2
    running.close()
    assert cache_statistics(tmp_path)["a:b"].hits == 1


def test_one_that_is_killed_while_it_adds_another_s_counts_twice_nothing(tmp_path: Path) -> None:
    """It has written the sum, and not removed the other's file yet; the next one does."""
    folder = tmp_path / ".statistics"
    folder.mkdir()
    said = {"taken": ["x.taken.json"], "sources": {"a:b": {"misses": 7}}}
    (folder / "killed.ended.json").write_text(json.dumps(said))
    (folder / "x.taken.json").write_text(json.dumps(said | {"taken": []}))
    (folder / "damaged.json").write_text("{")
    assert cache_statistics(tmp_path)["a:b"].misses == 7
    with counting(tmp_path) as counts:
        counts.count("a:b", SourceCounts(misses=1))
    assert cache_statistics(tmp_path)["a:b"].misses == 8
    assert not (folder / "x.taken.json").exists()


@pytest.mark.wide
def test_stagings_and_evictions_are_counted_and_every_worker_shows_them(
    own_source: Workspace,
) -> None:
    """Misses and bytes of a first staging, hits of a second, a file that is gone, an eviction."""
    workspace = own_source
    dataset, cache = make(workspace), workspace.cache
    staged = stage_dataset(workspace.records, dataset, cache)
    stage_dataset(workspace.records, dataset, cache)
    image = next(iter(Manifest.read(Path(dataset.manifest)).images()))
    copy = next(iter(Manifest.read(Path(staged.manifest)).images()))
    Path(str(image.path)).unlink()
    Path(str(copy.path)).unlink()
    with pytest.raises(StorageError):
        stage_dataset(workspace.records, dataset, cache)
    counts = cache_statistics(cache)[SOURCE]
    assert (counts.misses, counts.hits) == (FILES + 1, FILES + FILES - 1)
    assert (counts.fetched_files, counts.fetched_bytes) == (FILES, staged.bytes)
    assert (counts.failed_files, sum(counts.within)) == (1, FILES)
    assert counts.seconds > 0
    held = staged.bytes - image.size
    assert measured_space(cache) == {SOURCE: (held, FILES - 1)}

    write_limits(cache, Limits(soft_bytes=staged.bytes // 2, free_bytes=1))
    with leased(cache, "another-v1", Holder("another@1")) as lease:
        Reservation(cache, lease).trim()
    counts = cache_statistics(cache)[SOURCE]
    assert held - counts.evicted_bytes <= staged.bytes // 2
    assert 0 < counts.evicted_files < FILES
    came = counts.fetched_files
    (cache / ".statistics" / "space").unlink()  # measured a while ago
    wanted = {
        f'framesift_cache_misses_total{{source="{SOURCE}"}}': counts.misses,
        f'framesift_cache_fetched_bytes_total{{source="{SOURCE}"}}': counts.fetched_bytes,
        f'framesift_cache_failed_files_total{{source="{SOURCE}"}}': 1,
        f'framesift_cache_evicted_files_total{{source="{SOURCE}"}}': counts.evicted_files,
        f'framesift_cache_fetch_seconds_count{{source="{SOURCE}"}}': came,
        f'framesift_cache_fetch_seconds_bucket{{le="+Inf",source="{SOURCE}"}}': came,
        'framesift_cache_limit{limit="soft_bytes"}': staged.bytes // 2,
        "framesift_cache_leases": 0,
        f'framesift_cache_files{{source="{SOURCE}"}}': FILES - 1 - counts.evicted_files,
    }
    with serving(workspace.home, "--workers", "2") as (url, _):
        texts = []
        for _ in range(6):  # each by a connection of its own: both workers answer
            text = httpx.get(f"{url}/metrics", headers={"Connection": "close"}, timeout=120).text
            lines = re.findall(r"^framesift_(?:cache|staging)_.*$", text, re.MULTILINE)
            texts.append([line for line in lines if "free_bytes" not in line])
    assert all(text == texts[0] for text in texts)
    shown = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in texts[0]}
    assert {name: shown.get(name) for name in wanted} == wanted
