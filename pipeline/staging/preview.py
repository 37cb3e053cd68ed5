"""Previews a staging: what is there, what would come and go, and how long that takes."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from catalog.records.store import RecordStore
from catalog.records.tables import Dataset
from pipeline.cache.contents import staged_name
from pipeline.cache.lease import Holder, leased
from pipeline.cache.reservation import Reservation
from pipeline.cache.statistics import SourceCounts, cache_statistics
from pipeline.manifest_store import read_manifest
from pipeline.staging.opened_sources import OpenedSources
from pipeline.staging.plan import StagingPlan, make_cache, plan_staging
from pipeline.staging.stage import staged_manifest


@dataclass(frozen=True)
class StagingPreview:
    """Preview of a staging: what it would fetch and evict."""

    files: int
    bytes: int
    missing_files: int
    missing_bytes: int
    fits: bool
    why: str
    """Which limit allows no more, where they do not fit; else empty."""
    holders: tuple[str, ...]
    """What keeps content from going, where they do not fit."""
    evicted_datasets: tuple[str, ...]
    """Staged datasets that would be evicted, NAME@VERSION."""
    evicted_bytes: int
    seconds: float | None
    """How long the transfers take, at the rate that earlier ones into this cache had, and no faster
    than the sources' limits allow [s]; None where a source has no rate yet.
    """


def preview_staging(
    records: RecordStore,
    dataset: Dataset,
    cache: Path,
    *,
    workers: int = 4,
    indexes: Path | None = None,
    user: str = "",
) -> StagingPreview:
    """The plan of a staging as it would run now; this fetches and evicts nothing.

    Args:
        cache: Folder of the cache, which is made where there is none.
        user: Who would stage, for that user's share.
    """
    manifest = read_manifest(records, dataset)
    sources = OpenedSources(records, manifest.header, indexes)
    make_cache(cache)
    holder = Holder(f"{dataset.name}@{dataset.version}", user=user)
    # Under a lease, as a staging is: what the dataset has in the cache makes no room for the rest.
    with leased(cache, staged_name(dataset), holder) as lease:
        plan = plan_staging(manifest, cache)
        staged_manifest(manifest, plan, lease.own_manifest).write(lease.own_manifest)
        reservation_plan = Reservation(cache, lease).preview(plan.missing_bytes, len(plan.missing))
    going = reservation_plan.eviction if reservation_plan.fits else None
    return StagingPreview(
        plan.files,
        plan.bytes,
        len(plan.missing),
        plan.missing_bytes,
        reservation_plan.fits,
        reservation_plan.why,
        () if reservation_plan.fits else reservation_plan.holders,
        tuple(manifest.dataset for manifest in going.manifests) if going else (),
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
