"""Foresees a staging: what is there, what would come and go, and how long that takes."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from catalog.records.store import RecordStore
from catalog.records.tables import Dataset
from pipeline.cache.lease import Holder, leased
from pipeline.cache.room import Room
from pipeline.cache.statistics import SourceCounts, cache_statistics
from pipeline.manifest_store import read_manifest
from pipeline.staging.opened_sources import OpenedSources
from pipeline.staging.plan import StagingPlan, make_cache, plan_staging
from pipeline.staging.stage import staged_manifest, staged_name


@dataclass(frozen=True)
class Foresight:
    """The plan of a staging: what it would fetch and evict.

    Attributes:
        files: Files of the dataset.
        bytes: Their size [bytes].
        missing_files: Those that would be fetched.
        missing_bytes: Their size [bytes].
        fits: Whether the cache has room for them, after its evictions.
        why: Which limit allows no more, where they do not fit; else empty.
        holders: What keeps content from going, where they do not fit.
        evicted_datasets: Staged datasets that would be evicted, NAME@VERSION.
        evicted_bytes: What would go [bytes].
        seconds: How long the transfers take, at the rate that earlier ones into this cache had, and
            no faster than the sources' limits allow [s]; None where a source has no rate yet.
    """

    files: int
    bytes: int
    missing_files: int
    missing_bytes: int
    fits: bool
    why: str
    holders: tuple[str, ...]
    evicted_datasets: tuple[str, ...]
    evicted_bytes: int
    seconds: float | None


def foresee_staging(
    records: RecordStore,
    dataset: Dataset,
    cache: Path,
    *,
    workers: int = 4,
    indexes: Path | None = None,
    user: str = "",
) -> Foresight:
    """The plan of a staging as it would run now; this fetches and evicts nothing.

    Args:
        records: Of the dataset and its sources.
        dataset: The dataset.
        cache: Folder of the cache, which is made where there is none.
        workers: Files fetched at once.
        indexes: Where the indexes of tar archives are kept; None keeps none.
        user: Who would stage, for that user's share.

    Raises:
        StorageError: The cache cannot be read or written.
        BadFile: The dataset's manifest is damaged.
    """
    manifest = read_manifest(records, dataset)
    sources = OpenedSources(records, manifest.header, indexes)
    make_cache(cache)
    holder = Holder(f"{dataset.name}@{dataset.version}", user=user)
    # Under a lease, as a staging is: what the dataset has in the cache makes no room for the rest.
    with leased(cache, staged_name(dataset), holder) as lease:
        plan = plan_staging(manifest, cache)
        staged_manifest(manifest, plan, lease.own_manifest).write(lease.own_manifest)
        making = Room(cache, lease).foresee(plan.missing_bytes, len(plan.missing))
    going = making.eviction if making.fits else None
    return Foresight(
        plan.files,
        plan.bytes,
        len(plan.missing),
        plan.missing_bytes,
        making.fits,
        making.why,
        () if making.fits else making.holders,
        tuple(gone.dataset for gone in going.manifests) if going else (),
        going.bytes if going else 0,
        _seconds(plan, sources, cache_statistics(cache), workers),
    )


def _seconds(
    plan: StagingPlan,
    sources: OpenedSources,
    measured: Mapping[str, SourceCounts],
    workers: int,
) -> float | None:
    """Time to fetch the missing files, so many at once [s]."""
    files = Counter(item.source for item in plan.missing)
    sizes: Counter[str] = Counter()
    for item in plan.missing:
        sizes[item.source] += item.size
    seconds = 0.0
    for source, size in sizes.items():
        counts = measured.get(plan.label(source))
        if counts is None or not counts.fetched_bytes:
            return None
        so_far = size * counts.seconds / counts.fetched_bytes / workers
        seconds += max(so_far, sources.limit(source).least_s(files[source], size))
    return seconds
