"""Chooses what a job reads: a staged manifest, folders as they are, or what is staged beside it."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from catalog.records.store import RecordStore
from catalog.records.tables import Dataset
from framesift_start import start
from ingest.sources.mount import Mount
from ingest.sources.schemes import is_archive, scheme_of
from pipeline.cache.contents import staged_name
from pipeline.cache.lease import MANIFESTS
from pipeline.jobs.request import JobPaths, StagingBeside
from pipeline.jobs.work import JobHome
from pipeline.manifest import Manifest, ManifestHeader
from pipeline.manifest_store import folder_of, placed_manifest, read_manifest
from pipeline.runs.orders import Order
from pipeline.staging.mounted import mounted_manifest, mounts_of
from pipeline.staging.stage import newest_manifest


@dataclass(frozen=True)
class JobInput:
    """The frames of a job."""

    dataset: Dataset
    """They are of it."""
    whole: Manifest
    """Its manifest, with the places of its files."""
    manifest: Path
    """Where that lies."""
    mounts: Mapping[str, Mount] = field(default_factory=dict)
    """Of its sources, where nothing is staged; else empty."""
    cache: Path | None = None
    """That is staged into meanwhile; None where nothing is."""
    start_after: float | None = None
    """Share of the split that must be there before the job begins [percent]; None where that was
    not asked for.
    """
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables by which the staging opens the home."""
    writes: tuple[Callable[[], object], ...] = ()
    """Write the manifest where it lies, where it is not there yet."""

    @property
    def is_in_place(self) -> bool:
        """True where folders of this machine are read as they are, and nobody asked for that."""
        return not self.whole.header.staged and not self.mounts and self.cache is None

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that the job's record says were asked for."""
        start = {} if self.start_after is None else {"start_after": self.start_after}
        return start | ({"stage": False} if self.mounts else {})

    @property
    def reads(self) -> dict[str, str]:
        """The manifest and its dataset, for the job's lease."""
        return {str(self.manifest): f"{self.dataset.name}@{self.dataset.version}"}

    @property
    def shown(self) -> dict[str, str]:
        """The manifest, and the mounts that it was made with, for the job's record."""
        mounts = {f"mount:{name}": str(mount) for name, mount in self.mounts.items()}
        return {"manifest": str(self.manifest), **mounts}

    def flags(self, paths: JobPaths) -> list[str]:
        """The flags by which a program opens it."""
        staging_flags = [] if self.cache is None else ["--staging", str(paths.staging)]
        return ["--manifest", str(self.manifest), *staging_flags]

    def beside(
        self, paths: JobPaths, split: str | None, readers: int, order: Sequence[str] = ()
    ) -> StagingBeside | None:
        """The staging beside the job; None where there is none.

        Args:
            paths: The job's files.
            split: That the job reads; None for all frames.
            readers: The job's ranks or shards.
            order: Flags that say in which order a training reads: see api.cli.staging_beside.
        """
        if self.cache is None:
            return None
        command = [
            sys.executable, *start("api.cli.job_step"), str(paths.folder), "beside",
            "--dataset", f"{self.dataset.name}@{self.dataset.version}",
            *(() if split is None else ("--split", split)),
            "--cache", str(self.cache), "--readers", str(readers),
            "--start-after", f"{self.start_after or 0:g}", *order,
        ]  # fmt: skip
        return StagingBeside(tuple(command), dict(self.environment))


def job_input(
    home: JobHome,
    order: Order,
    dataset: Dataset,
    manifest: Manifest | None = None,
    start_after: float | None = None,
) -> JobInput:
    """The input of a job on a dataset.

    The newest staged manifest that is whole; else folders of this machine as they are; else what is
    staged beside the job.

    Args:
        home: The home.
        order: Whether what is staged is read; else the files where their sources are mounted.
        dataset: The dataset.
        manifest: The dataset's as the job will find it, when its files are staged; as it lies there
            now when None.
        start_after: Stage beside the job what is not staged, folders too, and begin when so much of
            the split is there [percent]; None to begin at once, and to leave folders as they are.

    Raises:
        InvalidInput: A source is not mounted.
        StorageError: A source's mount is not there.
        BadFile: The dataset's manifest is damaged.
    """
    records, queue = home.records, home.queue
    if not order.stage:
        unstaged = manifest or read_manifest(records, dataset)
        mounts = mounts_of(records, unstaged.header)
        mounted = mounted_manifest(unstaged, mounts, in_container=queue.in_container)
        return JobInput(
            dataset,
            mounted,
            folder_of(records, dataset, mounted, "mounted"),
            mounts,
            writes=(partial(placed_manifest, records, dataset, mounted, "mounted"),),
        )
    full = manifest or Manifest.read(newest_manifest(records, dataset))
    folder = full.folder or Path(dataset.manifest)
    if full.header.staged or (start_after is None and is_at_hand(full.header)):
        return JobInput(dataset, full, folder, start_after=start_after)
    if manifest is not None and start_after is None and queue.cache is not None:
        # By then the step "stage" has brought its files.
        staged = replace(full, header=replace(full.header, staged=True))
        return JobInput(dataset, staged, queue.cache / MANIFESTS / staged_name(dataset))
    return JobInput(
        dataset,
        full,
        folder,
        cache=queue.cache,
        start_after=start_after,
        environment=queue.environment,
    )


def needs_staging(records: RecordStore, dataset: Dataset) -> bool:
    """Return whether a job on a dataset finds its files only once they are staged.

    Raises:
        BadFile: The dataset's manifest is damaged.
    """
    header = Manifest.read(newest_manifest(records, dataset)).header
    return not header.staged and not is_at_hand(header)


def is_at_hand(header: ManifestHeader) -> bool:
    """True when all sources are folders of this machine."""
    return all(scheme_of(root).is_local and not is_archive(root) for root in header.roots.values())
