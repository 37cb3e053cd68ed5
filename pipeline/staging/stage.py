"""Stage a dataset: plan, fetch, write the staged manifest, keep the record."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from sqlalchemy import select

from catalog.errors import FramesiftError, StorageError
from catalog.records.store import RecordStore
from catalog.records.tables import Dataset, Staging
from pipeline.cache.checksums import recording
from pipeline.cache.stager import stager
from pipeline.manifest import SAYS_VERSIONS, Manifest
from pipeline.manifest_store import manifest_folder, read_manifest
from pipeline.staging.check_present import without_damaged
from pipeline.staging.fetch import FailedFile, fetch_files
from pipeline.staging.opened_sources import OpenedSources
from pipeline.staging.plan import check_space, plan_staging
from pipeline.staging.progress import Progress


def stage_dataset(
    records: RecordStore,
    dataset: Dataset,
    cache: Path,
    *,
    workers: int = 4,
    indexes: Path | None = None,
    verify: bool = False,
    progress: Callable[[Progress], None] = lambda _: None,
    failed: Callable[[FailedFile], None] = lambda _: None,
    damaged: Callable[[str], None] = lambda _: None,
) -> Staging:
    """Bring a dataset's images and labels into the cache; what is there is not fetched again.

    Args:
        records: Of the dataset and its sources, whose keys are used here and go no further.
        dataset: What to stage.
        cache: Folder of the cache.
        workers: Files fetched at once.
        indexes: Where the indexes of tar archives are kept; None keeps none.
        verify: Read what is in the cache again, and fetch what is damaged.
        progress: Told whenever a file has come.
        failed: Told of each file that cannot be had; the others go on.
        damaged: Told the path of each file that was damaged in the cache, and is fetched again.

    Returns:
        The record, whose ``manifest`` is a manifest folder with paths in the cache.

    Raises:
        StorageError: No space, no permission, or files that could not be had: the first is named.
        BadFile: The dataset's manifest is damaged.
    """
    manifest = read_manifest(records, dataset)
    sources = OpenedSources(records, manifest.header, indexes)
    plan = plan_staging(manifest, cache, sources.files, keep_present=verify)
    check_space(plan, cache)
    with stager(cache) as own, recording(cache, own.name) as checksums:
        if verify:
            plan, found = without_damaged(plan, cache, checksums, workers, progress)
            for path in found:
                damaged(path)
        fetched = fetch_files(
            plan,
            own,
            checksums,
            sources.files,
            workers=workers,
            progress=progress,
            failed=failed,
        )
    if fetched.failed:
        first = fetched.failed[0]
        raise StorageError(
            f"dataset {dataset.name}@{dataset.version}: {len(fetched.failed):,} of "
            f"{plan.files:,} files could not be staged; the first is {first} (what has come stays "
            "in the cache: stage again once that is mended)",
            first.place,
        )
    # The id as well: two homes may share a cache, each with a dataset of that name.
    name = f"{dataset.name}-v{dataset.version}-{dataset.content_id[:12]}"
    place = cache / ".manifests" / name
    roots = {source: os.path.relpath(root, place) for source, root in plan.roots.items()}
    staged = replace(manifest.header, roots=roots, within={}, staged=True)
    Manifest(staged, plan.rows).write(place)
    staging = Staging(
        dataset_id=dataset.id,
        state="done",
        cache=str(cache),
        manifest=str(place),
        files=plan.files,
        files_copied=fetched.files,
        bytes=plan.bytes,
        bytes_copied=fetched.bytes,
    )
    with records.session() as session:
        session.add(staging)
    return staging


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
        header = Manifest.read(manifest).header
    except FramesiftError:
        return False
    # What an earlier release staged may be of another version than the dataset's.
    return header.id == dataset.content_id and header.format >= SAYS_VERSIONS
