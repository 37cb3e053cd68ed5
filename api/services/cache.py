"""The cache near the jobs: what can be done with it."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from api.schemas.base import iso_time
from api.schemas.cache import (
    CachedDatasetBody,
    CachedFile,
    CachedSource,
    CacheEviction,
    CacheLease,
    CacheLimits,
    CachePin,
    CacheSpace,
    CacheStatusAnswer,
)
from api.services.call import Call, Service
from catalog.errors import NotFound
from catalog.records.datasets import recorded_dataset
from pipeline.cache.contents import staged_manifests, staged_name
from pipeline.cache.lease import Holder, leased
from pipeline.cache.limits import Limits, change_limits, read_limits
from pipeline.cache.pin import pin, unpin
from pipeline.cache.status import CacheStatus, DatasetSpace, Space, cache_status
from pipeline.entry_name import IN_PLACE

if TYPE_CHECKING:  # the cache's status is read without what opens sources and the records' database
    from pipeline.manifest import FrameFile
    from pipeline.staging.plan import WantedFile


class Cache(Service):
    """The cache of a home, or another one."""

    def __init__(self, session: Call, folder: Path | None = None) -> None:
        """The cache in a folder; the home's own when None."""
        super().__init__(session)
        self._folder = (folder or session.workspace.cache).expanduser().absolute()

    def at(self, folder: Path) -> "Cache":
        """The cache in another folder."""
        return Cache(self._session, folder)

    def status(self) -> CacheStatusAnswer:
        """Space in the cache, by dataset and by source, and the jobs that use it."""
        status = cache_status(self._folder)
        return CacheStatusAnswer(
            limits=self._limits(status.limits),
            bytes=status.space.bytes,
            files=status.space.files,
            free_bytes=status.free_bytes,
            datasets=[_dataset(one) for one in status.datasets],
            sources=[
                CachedSource(source=name, bytes=space.bytes, files=space.files)
                for name, space in status.sources.items()
            ],
            prepared=_space(status.prepared),
            unnamed=_space(status.unnamed),
            leases=_leases(status),
        )

    def limits(self) -> CacheLimits:
        """Limits of the cache."""
        return self._limits(read_limits(self._folder))

    def limit(self, **limits: int | None) -> CacheLimits:
        """Set limits; those that are not given stay, but for damaged ones."""
        return self._limits(change_limits(self._folder, **limits))

    def pin(self, dataset: str) -> CachePin:
        """Have a dataset stay in the cache until it is unpinned."""
        names, reference = self._staged(dataset)
        for name in names:
            pin(self._folder, name, reference)
        return CachePin(dataset=reference, pinned=True)

    def unpin(self, dataset: str) -> CachePin:
        """Let a dataset be evicted again."""
        names, reference = self._staged(dataset)
        for name in names:
            unpin(self._folder, name)
        return CachePin(dataset=reference, pinned=False)

    def contents(
        self,
        dataset: str,
        *,
        filesets: Sequence[str] = (),
        missing: bool = False,
    ) -> list[CachedFile]:
        """A dataset's files that are cached, by source and key."""
        from pipeline.afm.stage import cached_in_afm
        from pipeline.manifest_store import read_manifest
        from pipeline.staging.plan import plan_staging

        records = self._workspace.records
        record = recorded_dataset(records, dataset)
        listed: Iterable[FrameFile | WantedFile]
        if filesets:
            cached, uncached = cached_in_afm(records, record, filesets)
            listed = uncached if missing else cached
        else:
            plan = plan_staging(read_manifest(records, record), self._folder, keep_present=True)
            listed = plan.missing if missing else plan.present
        files = sorted((file.source, file.key, file.size) for file in listed)
        return [CachedFile(source=source, file=key, bytes=size) for source, key, size in files]

    def evict(self, dataset: str, *, filesets: Sequence[str] = ()) -> CacheEviction:
        """Remove a dataset from the cache; files that other staged datasets name stay."""
        if filesets:
            return self._evict_from_afm(dataset, filesets)
        from pipeline.cache.reservation import Reservation

        names, reference = self._staged(dataset)
        with leased(self._folder, "", Holder(reference)) as lease:
            size, files = Reservation(self._folder, lease).evict_datasets(names)
        return CacheEviction(dataset=reference, bytes=size, files=files)

    def _evict_from_afm(self, dataset: str, filesets: Sequence[str]) -> CacheEviction:
        from pipeline.afm.stage import evict_from_afm

        record = recorded_dataset(self._workspace.records, dataset)
        reference = f"{record.name}@{record.version}"
        access = self._workspace.afm_access
        evicted = evict_from_afm(self._workspace.records, record, filesets, access)
        return CacheEviction(dataset=reference, bytes=evicted.bytes, files=evicted.files)

    def _limits(self, limits: Limits) -> CacheLimits:
        return CacheLimits(cache=self._workspace.place(str(self._folder)), **asdict(limits))

    def _staged(self, dataset: str) -> tuple[list[str], str]:
        """Names of a dataset's manifests in the cache, and its NAME@VERSION.

        One that is removed, or another home's, is found by what its staged manifests say: a NAME
        is every version of it then.
        """
        staged = {one.name: one for one in staged_manifests(self._folder)}
        try:
            record = recorded_dataset(self._workspace.readable_records, dataset)
        except NotFound:
            of = [one for one in staged.values() if dataset in _names(one.dataset)]
            if not of:
                raise
            return [one.name for one in of], ", ".join(dict.fromkeys(one.dataset for one in of))
        reference, own = f"{record.name}@{record.version}", staged_name(record)
        names = [name for name in (own, own + IN_PLACE) if name in staged]
        if not names:
            raise NotFound("staged dataset", reference, f"it is not in {self._folder}")
        return names, reference


def _names(dataset: str) -> tuple[str, str]:
    """A dataset's NAME@VERSION, and its NAME."""
    return dataset, dataset.rpartition("@")[0]


def _dataset(one: DatasetSpace) -> CachedDatasetBody:
    manifest = one.manifest
    return CachedDatasetBody(
        dataset=manifest.dataset,
        bytes=one.space.bytes,
        files=one.space.files,
        alone_bytes=one.alone.bytes,
        prepared_bytes=one.prepared.bytes,
        used=iso_time(datetime.fromtimestamp(manifest.used, UTC).replace(tzinfo=None)),
        pinned=manifest.pinned,
        users=sorted(manifest.stagers),
        leases=len(one.leases),
    )


def _space(space: Space) -> CacheSpace:
    return CacheSpace(bytes=space.bytes, files=space.files)


def _leases(status: CacheStatus) -> list[CacheLease]:
    return [
        CacheLease(
            **asdict(lease.holder),
            host=lease.host,
            pid=lease.pid,
            reserved_bytes=lease.reserved_bytes,
        )
        for lease in status.leases
    ]
