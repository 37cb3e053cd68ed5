"""Staging a split beside the job that reads it."""

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from catalog.errors import StorageError
from catalog.records.store import RecordStore
from catalog.records.tables import Dataset
from pipeline.archive.recall import ArchiveAccess, recall_archived
from pipeline.archive.refused_files import without_refused
from pipeline.cache.checksums import recording
from pipeline.cache.contents import staged_name
from pipeline.cache.eviction import evictions
from pipeline.cache.lease import Holder, leased
from pipeline.cache.reading import StagingLocation
from pipeline.cache.reservation import Reservation
from pipeline.cache.stager import stager
from pipeline.cache.statistics import counting
from pipeline.manifest import Manifest
from pipeline.manifest_store import read_manifest
from pipeline.runs.shard_order import shard_order
from pipeline.staging.concurrent import ConcurrentCallbacks, ConcurrentFetch
from pipeline.staging.opened_sources import OpenedSources
from pipeline.staging.plan import StagingPlan, WantedFile, make_cache, plan_staging, wanted_files
from pipeline.staging.reading_order import Positions, ReadingOrder
from pipeline.staging.stage import (
    announcing,
    count_plan,
    report_recalling,
    staged_manifest,
)


@dataclass(frozen=True)
class SplitReading:
    """The split that a job reads, and its order."""

    split: str | None
    """Of the dataset; None for all its frames."""
    readers: int = 1
    """Ranks or shards of the whole job."""
    here: frozenset[int] | None = None
    """Those that read from this cache; None for all."""
    seed: int | None = None
    """Of a training; None for a validation."""
    batch_size: int = 1
    """Of a training's rank."""
    start_after: float = 0.0
    """Share of the split that must be there before they begin, 0 to 1."""


@dataclass(frozen=True)
class ConcurrentOptions:
    """Options of a concurrent staging."""

    workers: int = 4
    indexes: Path | None = None
    job_folder: Path = Path()
    user: str = ""
    archives: ArchiveAccess = field(default_factory=ArchiveAccess)
    stop: threading.Event = field(default_factory=threading.Event)
    """Set when the job has ended."""


def stage_concurrently(
    records: RecordStore,
    dataset: Dataset,
    cache: Path,
    reading: SplitReading,
    options: ConcurrentOptions,
    callbacks: ConcurrentCallbacks,
    started: Callable[[StagingLocation], None],
) -> None:
    """Fetch what a job reads, ahead of it, until the job has ended.

    Args:
        records: Of the dataset and its sources, whose keys are used here and go no further.
        started: Called with where readers find the staging, before anything is fetched.

    Raises:
        StorageError: The cache cannot be written; or, before readers began, a source fails.
    """
    manifest = read_manifest(records, dataset)
    sources = OpenedSources(records, manifest.header, options.indexes)
    make_cache(cache)
    holder = Holder(f"{dataset.name}@{dataset.version}", options.job_folder.name, options.user)
    with (
        leased(cache, staged_name(dataset), holder) as lease,
        stager(cache) as own,
        recording(cache, own.name) as checksums,
        counting(cache) as counts,
    ):
        known_evictions = evictions(cache)
        plan = plan_staging(manifest, cache)
        staged_manifest(manifest, plan, lease.own_manifest).write(lease.own_manifest)
        reservation = Reservation(cache, lease)
        reservation.settle()
        if evictions(cache) != known_evictions:  # what was there may be gone; from now on it stays
            plan = plan_staging(manifest, cache)
        split = manifest.split(reading.split)
        frames = [
            tuple(file for file in files if file is not None)
            for files in zip_longest(wanted_files(split.images()), wanted_files(split.labels()))
        ]
        of_split = _of_split(plan, frames)
        count_plan(counts, of_split)
        progress = announcing(
            own, dataset, of_split, options.user, str(options.job_folder), callbacks.progress
        )
        recalled = recall_archived(
            [(item.source, item.key) for item in of_split.missing],
            sources.files,
            options.archives,
            partial(report_recalling, of_split, progress),
        )
        try:
            lease.as_window()
            for root in plan.roots.values():
                Path(root).mkdir(exist_ok=True)
            fetch = ConcurrentFetch(
                of_split,
                frames,
                ReadingOrder(
                    len(frames),
                    reading.seed,
                    reading.batch_size,
                    reading.readers,
                    reading.here,
                    dealt=shard_order(split.frame_bytes(), reading.readers),
                ),
                own,
                checksums,
                without_refused(sources.files, recalled),
                reservation,
                replace(callbacks, progress=progress),
                limits=sources.limit,
                workers=options.workers,
                manifest_rows=_rows_of(manifest, reading.split),
            )
        except OSError as error:
            path = str(error.filename or cache)
            raise StorageError(f"{path}: {error.strerror}", path) from error
        started(StagingLocation(str(own.folder), str(lease.own_manifest)))
        fetch.run(options.stop, reading.start_after)


def _rows_of(manifest: Manifest, split: str | None) -> Positions | None:
    """The rows of a manifest that are a split's; None for all."""
    if split is None:
        return None
    return np.flatnonzero(pc.equal(manifest.frames["split"], split).to_numpy())


def _of_split(plan: StagingPlan, frames: list[tuple[WantedFile, ...]]) -> StagingPlan:
    """The part of a plan that is of a split's frames."""
    files = {file for of_frame in frames for file in of_frame}
    return replace(
        plan,
        missing=tuple(item for item in plan.missing if item in files),
        files=len(files),
        files_of=Counter(file.source for file in files),
        bytes=sum(file.size for file in files),
    )
