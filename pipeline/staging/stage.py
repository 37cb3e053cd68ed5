"""Stage a dataset: plan, fetch, write the staged manifest, keep the record."""

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from sqlalchemy import select

from catalog.errors import FramesiftError, StorageError
from catalog.records.stagings import staging_recorded
from catalog.records.store import RecordStore
from catalog.records.tables import Dataset, Staging
from pipeline.archive.recall import ArchiveAccess, recall_archived
from pipeline.archive.refused_files import without_refused
from pipeline.cache.checksums import recording
from pipeline.cache.contents import StagedManifest, staged_name, write_stagers
from pipeline.cache.eviction import evictions
from pipeline.cache.lease import MANIFESTS, Holder, leased
from pipeline.cache.reservation import Reservation
from pipeline.cache.running import Announcement, StagingAbout
from pipeline.cache.stager import Stager, stager
from pipeline.cache.statistics import Counting, SourceCounts, counting
from pipeline.entry_name import HEADER_FILE
from pipeline.manifest import Manifest
from pipeline.manifest_store import manifest_folder, read_manifest
from pipeline.staging.check_present import without_damaged
from pipeline.staging.fetch import FailedFile, fetch_files
from pipeline.staging.opened_sources import OpenedSources
from pipeline.staging.plan import StagingPlan, make_cache, plan_staging
from pipeline.staging.progress import Progress, announced


def stage_dataset(
    records: RecordStore,
    dataset: Dataset,
    cache: Path,
    *,
    workers: int = 4,
    indexes: Path | None = None,
    verify: bool = False,
    user: str = "",
    progress: Callable[[Progress], None] = lambda _: None,
    failed: Callable[[FailedFile], None] = lambda _: None,
    damaged: Callable[[str], None] = lambda _: None,
    job_folder: str = "",
    archives: ArchiveAccess = ArchiveAccess(),  # noqa: B008 (it never changes)
) -> Staging:
    """Bring a dataset's images and labels into the cache; what is there is not fetched again.

    Args:
        records: Of the dataset and its sources, whose keys are used here and go no further.
        workers: Files fetched at once.
        verify: Read what is in the cache again, and fetch what is damaged.
        user: Who stages; lists of stagings and messages about a full cache name the user.
        damaged: Called with the path of each file that was damaged in the cache and comes again.

    Returns:
        The record, whose ``manifest`` is a manifest folder with paths in the cache.

    Raises:
        StorageError: No space, no permission, or files that could not be had: the first is named.
    """
    manifest = read_manifest(records, dataset)
    sources = OpenedSources(records, manifest.header, indexes)
    name = staged_name(dataset)
    folder = cache / MANIFESTS / name
    known_evictions = evictions(cache)
    with staging_recorded(records, dataset, str(cache)) as staging:
        plan = plan_staging(manifest, cache, keep_present=verify)
        make_cache(cache)
        with (
            leased(cache, name, Holder(f"{dataset.name}@{dataset.version}", user=user)) as lease,
            stager(cache) as own,
            recording(cache, own.name) as checksums,
            counting(cache) as counts,
        ):
            if plan.missing or not (folder / HEADER_FILE).exists():
                staged_manifest(manifest, plan, lease.own_manifest).write(lease.own_manifest)
            reservation = Reservation(cache, lease)
            reservation.settle()
            # What was there may be gone; from now on it stays.
            if evictions(cache) != known_evictions:
                plan = plan_staging(manifest, cache, keep_present=verify)
            progress = announcing(own, dataset, plan, user, job_folder, progress)
            if verify:
                plan, damaged_paths = without_damaged(plan, cache, checksums, workers, progress)
                for path in damaged_paths:
                    damaged(path)
            staging.files, staging.bytes = plan.files, plan.bytes
            reservation.extend(plan.missing_bytes, len(plan.missing))
            count_plan(counts, plan)
            recalled = recall_archived(
                [(item.source, item.key) for item in plan.missing],
                sources.files,
                archives,
                partial(report_recalling, plan, progress),
            )
            fetched = fetch_files(
                plan,
                own,
                checksums,
                without_refused(sources.files, recalled),
                limits=sources.limit,
                workers=workers,
                progress=_reporting(reservation, plan, progress),
                failed=failed,
            )
            staging.files_copied, staging.bytes_copied = fetched.files, fetched.bytes
            if fetched.failed:
                first = fetched.failed[0]
                raise StorageError(
                    f"dataset {dataset.name}@{dataset.version}: {len(fetched.failed):,} of "
                    f"{plan.files:,} files could not be staged; the first is {first} (what has "
                    "come stays in the cache: stage again once that is mended)",
                    first.origin,
                )
            staged_manifest(manifest, plan, folder).write(folder)
            if user:
                staged = StagedManifest(folder, 0.0, pinned=False)
                write_stagers(folder, staged.stagers | {user})
            reservation.trim()
        staging.manifest = str(folder)
    return staging


def staged_manifest(manifest: Manifest, plan: StagingPlan, folder: Path) -> Manifest:
    """The manifest with its files in the cache, to be written to that place there."""
    roots = {source: os.path.relpath(root, folder) for source, root in plan.roots.items()}
    return Manifest(replace(manifest.header, roots=roots, within={}, staged=True), manifest.frames)


def report_recalling(plan: StagingPlan, progress: Callable[[Progress], None], files: int) -> None:
    """Report how many files archives are bringing back."""
    there = plan.files - len(plan.missing)
    size = plan.bytes - plan.missing_bytes
    progress(Progress(there, plan.files, size, plan.bytes, present=there, recalling=files))


def _reporting(
    reservation: Reservation, plan: StagingPlan, progress: Callable[[Progress], None]
) -> Callable[[Progress], None]:
    """A callback that releases what has arrived from the reservation, too."""
    reserved = [plan.missing_bytes, len(plan.missing)]

    def report(now: Progress) -> None:
        coming = [plan.bytes - now.bytes, plan.files - now.files]
        reservation.arrived(reserved[0] - coming[0], reserved[1] - coming[1])
        reserved[:] = coming
        progress(now)

    return report


def count_plan(counts: Counting, plan: StagingPlan) -> None:
    """Count the files of a plan that are there, and those that are not, by source."""
    missing = Counter(item.source for item in plan.missing)
    for source, files in plan.files_of.items():
        misses = missing[source]
        counts.count(plan.label(source), SourceCounts(hits=files - misses, misses=misses))


def announcing(
    own: Stager,
    dataset: Dataset,
    plan: StagingPlan,
    user: str,
    job_folder: str,
    progress: Callable[[Progress], None],
) -> Callable[[Progress], None]:
    """Announce the staging in its cache; a callback that reports its progress there, too."""
    about = StagingAbout(
        dataset=f"{dataset.name}@{dataset.version}",
        content_id=dataset.content_id,
        job_folder=job_folder,
        user=user,
        files=plan.files,
        bytes=plan.bytes,
        missing_files=len(plan.missing),
        missing_bytes=plan.missing_bytes,
    )
    return announced(Announcement(own, about), progress)


def newest_manifest(records: RecordStore, dataset: Dataset) -> Path:
    """The manifest a job should read: the newest staged one that is whole, else its own."""
    with records.session() as session:
        staged = session.scalars(
            select(Staging)
            .where(Staging.dataset_id == dataset.id, Staging.state == "done")
            .order_by(Staging.id.desc())
        )
        for staging in staged:
            if _is_of(Path(staging.manifest), dataset):
                return Path(staging.manifest)
    return manifest_folder(records, dataset)


def _is_of(manifest: Path, dataset: Dataset) -> bool:
    try:
        return Manifest.read(manifest).header.id == dataset.content_id
    except FramesiftError:
        return False
