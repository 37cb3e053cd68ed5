"""A dataset brought into AFM filesets: listed, queued, watched until it is there, and checked.

Jobs then read it at its sources' mounts, as without staging. One prefetch of a fileset runs at a
time: its statistics and its list of failed files are those of the last one.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from catalog.errors import InUse, StorageError
from catalog.records.jobs import recorded_jobs
from catalog.records.stagings import staging_recorded
from catalog.records.store import RecordStore
from catalog.records.tables import Dataset, Staging
from catalog.storage.file_lock import open_locked, unlock
from pipeline.afm.cached_files import failed_list, faults, without_blocks
from pipeline.afm.mmafmcosctl import Mmafmcosctl
from pipeline.afm.mmafmctl import Mmafmctl, PrefetchOptions, PrefetchStatistics, Queued
from pipeline.afm.target import Fileset, filesets_of
from pipeline.archive.recall import ArchiveAccess, recall_archived
from pipeline.cache.running import Announcement, StagingAbout
from pipeline.cache.stager import stager
from pipeline.job_state import UNFINISHED
from pipeline.manifest import FrameFile, Manifest
from pipeline.manifest_store import placed_manifest, read_manifest
from pipeline.staging.fetch import FailedFile
from pipeline.staging.mounted import mounted_manifest, mounts_of
from pipeline.staging.opened_sources import OpenedSources
from pipeline.staging.plan import make_cache
from pipeline.staging.progress import Progress, announced
from pipeline.staging.storage_commands.list_file import escaped, list_file, needs_escapes

_FIRST_LOOK_S, _LONGEST_LOOK_S = 0.2, 15.0
"""First and longest interval between two looks at AFM's progress [s]."""


@dataclass(frozen=True)
class AfmAccess:
    """Access to AFM: its commands, folder of lists and options."""

    command: tuple[str, ...]
    """mmafmctl, and what leads to it."""
    lists: Path
    """Folder of list files, which this machine and the storage node have."""
    in_container: bool = False
    """Whether jobs read sources at their folders in containers."""
    cos_command: tuple[str, ...] = ("mmafmcosctl",)
    """mmafmcosctl, and what leads to it."""
    prefetch: PrefetchOptions = field(default_factory=PrefetchOptions)

    @property
    def mmafmctl(self) -> Mmafmctl:
        """Runs mmafmctl."""
        return Mmafmctl(self.command, self.prefetch)

    @property
    def mmafmcosctl(self) -> Mmafmcosctl:
        """Runs mmafmcosctl."""
        return Mmafmcosctl(self.cos_command)


def stage_to_afm(
    records: RecordStore,
    dataset: Dataset,
    targets: Sequence[str],
    access: AfmAccess,
    *,
    workers: int = 4,
    progress: Callable[[Progress], None] = lambda _: None,
    failed: Callable[[FailedFile], None] = lambda _: None,
    archives: ArchiveAccess = ArchiveAccess(),  # noqa: B008 (it never changes)
    cache: Path | None = None,
    user: str = "",
    job_folder: str = "",
) -> Staging:
    """Have AFM fetch a dataset's images and labels; what is cached is not fetched again.

    Args:
        records: Of the dataset and its sources, whose mounts are where the filesets show them.
        targets: The filesets, as pipeline.afm.target writes them.
        workers: Files that each fileset fetches at once.
        cache: Where it is announced among the running stagings, and hears that a user cancels it;
            None for nowhere.
        job_folder: Of the job that does it; empty where a command does.

    Returns:
        The record, whose ``manifest`` has the files at their mounts.
    """
    brought = _Brought.of(records, dataset, targets)
    filesets = ", ".join(map(str, brought.files))
    with staging_recorded(records, dataset, filesets) as staging, ExitStack() as stack:
        if cache is not None:
            make_cache(cache)
            own = stack.enter_context(stager(cache))
            about = _about(dataset, brought.files, user, job_folder)
            progress = announced(Announcement(own, about), progress)
        _bring(records, dataset, brought, access, workers, progress, failed, archives, staging)
    return staging


def _about(
    dataset: Dataset,
    files: Mapping[Fileset, Sequence[FrameFile]],
    user: str,
    job_folder: str,
) -> StagingAbout:
    missing = [file for of_fileset in files.values() for file in without_blocks(of_fileset)]
    return StagingAbout(
        dataset=f"{dataset.name}@{dataset.version}",
        content_id=dataset.content_id,
        job_folder=job_folder,
        user=user,
        files=sum(map(len, files.values())),
        bytes=sum(map(_size, files.values())),
        missing_files=len(missing),
        missing_bytes=_size(missing),
    )


def _bring(
    records: RecordStore,
    dataset: Dataset,
    brought: "_Brought",
    access: AfmAccess,
    workers: int,
    progress: Callable[[Progress], None],
    failed: Callable[[FailedFile], None],
    archives: ArchiveAccess,
    staging: Staging,
) -> None:
    """Do so, and say in the record what was done."""
    failures = list[FailedFile]()
    # Files that are cached are not asked for: a misspelt fileset would not be noticed.
    for fileset in brought.files:
        access.mmafmctl.check(fileset)
    watch = _Watch(brought.files, progress)
    staging.files, staging.bytes = watch.files, watch.bytes
    missing = {fileset: without_blocks(files) for fileset, files in brought.files.items()}
    watch.begin(missing)
    recalled = recall_archived(
        [(file.source, file.key) for files in missing.values() for file in files],
        OpenedSources(records, brought.own.header).files,
        archives,
        watch.recalling,
    )
    for fileset, files in missing.items():
        if files:
            with _fileset_lock(access.lists, fileset):
                _fetch(access, fileset, files, workers, watch)
        refused = failed_list(files[0].root) if files else set()
        bad = faults(brought.files[fileset])
        for file, fault in bad:
            failure = FailedFile(file.path, _reason(file, fault, fileset, refused))
            failures.append(recalled.explained(failure, (file.source, file.key)))
            failed(failures[-1])
        watch.end(fileset, [file for file, _ in bad])
    if failures:
        raise StorageError(
            f"dataset {dataset.name}@{dataset.version}: {len(failures):,} of {watch.files:,} "
            f"files could not be staged; the first is {failures[0]}",
            failures[0].origin,
        )
    # Containers' folders are not of this host: it looked at the mounts of its own.
    manifest = brought.manifest
    if access.in_container:
        mounts = mounts_of(records, brought.own.header)
        manifest = mounted_manifest(brought.own, mounts, in_container=True)
    staging.manifest = str(placed_manifest(records, dataset, manifest, "mounted"))
    staging.files_copied = sum(map(len, missing.values()))
    staging.bytes_copied = _size(file for files in missing.values() for file in files)


def cached_in_afm(
    records: RecordStore, dataset: Dataset, targets: Sequence[str]
) -> tuple[list[FrameFile], list[FrameFile]]:
    """A dataset's files that filesets have cached, and the others; their blocks tell."""
    files = [
        file for some in _Brought.of(records, dataset, targets).files.values() for file in some
    ]
    uncached = without_blocks(files)
    missing = set(uncached)
    return [file for file in files if file not in missing], uncached


@dataclass(frozen=True)
class Evicted:
    """The files that were evicted."""

    files: int
    bytes: int


def evict_from_afm(
    records: RecordStore, dataset: Dataset, targets: Sequence[str], access: AfmAccess
) -> Evicted:
    """Have AFM release the blocks of a dataset's files; a read fetches them from home again.

    Raises:
        StorageError: A mount or a fileset is not there, mmafmctl fails, or a file stays cached.
    """
    brought = _Brought.of(records, dataset, targets)
    _check_unused(records, dataset, brought.manifest)
    for fileset in brought.files:
        access.mmafmctl.check(fileset)
    evicted = still_cached = size = 0
    for fileset, files in brought.files.items():
        uncached = set(without_blocks(files))
        cached = [file for file in files if file not in uncached]
        if not cached:
            continue
        paths = _listable([file.path for file in cached])
        if paths:
            with _fileset_lock(access.lists, fileset), list_file(access.lists, paths) as listed:
                if fileset.is_cos:
                    access.mmafmcosctl.evict(fileset, cached[0].root, listed)
                else:
                    access.mmafmctl.evict(fileset, listed)
        stays = [file for file in cached if file not in set(without_blocks(cached))]
        still_cached += len(stays)
        evicted, size = evicted + len(cached) - len(stays), size + _size(cached) - _size(stays)
    if still_cached:
        raise StorageError(
            f"dataset {dataset.name}@{dataset.version}: {still_cached:,} files stay cached, "
            f"{evicted:,} were evicted; AFM evicts no file with changes that home has not got "
            "yet, and none whose name has a line break or a backslash",
            dataset.name,
        )
    return Evicted(evicted, size)


@dataclass(frozen=True)
class _Brought:
    """A dataset's files by the filesets that show them."""

    own: Manifest
    """Its manifest, with the sources' own places."""
    manifest: Manifest
    """The same with its files at their mounts."""
    files: Mapping[Fileset, list[FrameFile]]
    """Each file once, by its fileset."""

    @classmethod
    def of(cls, records: RecordStore, dataset: Dataset, targets: Sequence[str]) -> "_Brought":
        own = read_manifest(records, dataset)
        filesets = filesets_of(targets, sorted(own.header.roots))
        downloaded = [source for source, fileset in filesets.items() if fileset.is_cos]
        mounts = mounts_of(records, own.header)
        manifest = mounted_manifest(own, mounts, downloaded=downloaded)
        files: dict[Fileset, dict[str, FrameFile]] = defaultdict(dict)
        for file in (*manifest.images(), *manifest.labels()):
            if file is not None:
                files[filesets[file.source]].setdefault(file.path, file)
        return cls(own, manifest, {name: list(by_path.values()) for name, by_path in files.items()})


class _Watch:
    """Progress of a staging, over all filesets."""

    def __init__(
        self,
        files: Mapping[Fileset, Sequence[FrameFile]],
        progress: Callable[[Progress], None],
    ) -> None:
        self._all, self._progress = files, progress
        self.files = sum(map(len, files.values()))
        self.bytes = sum(_size(some) for some in files.values())
        self._began = time.monotonic()
        self._there = self._there_bytes = self._fetched_bytes = self._present = 0
        self._failed = self._failed_bytes = 0
        self._missing: dict[Fileset, tuple[int, int]] = {}

    def begin(self, missing: Mapping[Fileset, Sequence[FrameFile]]) -> None:
        """Begin with what is cached."""
        self._missing = {name: (len(files), _size(files)) for name, files in missing.items()}
        self._present = self.files - sum(count for count, _ in self._missing.values())
        self._there = self._present
        self._there_bytes = self.bytes - sum(size for _, size in self._missing.values())
        self._report()

    def recalling(self, files: int) -> None:
        """Report how many files archives are bringing back."""
        self._report(recalling=files)

    def queued(self, queued: Queued) -> None:
        """Report what AFM has queued; nothing of it counts as there."""
        self._report(failed=queued.failed)

    def fetched(self, fileset: Fileset, statistics: PrefetchStatistics) -> None:
        """Report the progress of a fileset."""
        count, size = self._missing[fileset]
        done = max(0, min(count, count - statistics.pending - statistics.failed))
        self._report(done, min(size, statistics.bytes), statistics.failed)

    def end(self, fileset: Fileset, bad: Sequence[FrameFile]) -> None:
        """Count a fileset whose files were checked; these of them are not there."""
        count, size = self._missing[fileset]
        self._there += count - len(bad)
        self._there_bytes += size - _size(bad)
        self._fetched_bytes += max(0, size - _size(bad))
        self._failed += len(bad)
        self._failed_bytes += _size(bad)
        self._report()

    def _report(self, files: int = 0, size: int = 0, failed: int = 0, recalling: int = 0) -> None:
        self._progress(
            Progress(
                files=self._there + files,
                of_files=self.files,
                bytes=self._there_bytes + size,
                of_bytes=self.bytes,
                fetched_bytes=self._fetched_bytes + size,
                failed=self._failed + failed,
                seconds=time.monotonic() - self._began,
                present=self._present,
                recalling=recalling,
                failed_bytes=self._failed_bytes,
            )
        )


def _fetch(
    access: AfmAccess, fileset: Fileset, files: Sequence[FrameFile], workers: int, watch: _Watch
) -> None:
    """Queue files of a fileset, and wait until AFM has none of them pending."""
    paths = [file.path for file in files]
    is_escaped = not fileset.is_cos and needs_escapes(paths)
    lines = [escaped(path) for path in paths] if is_escaped else _listable(paths)
    if not lines:
        return
    with list_file(access.lists, lines) as listed:
        if fileset.is_cos:
            access.mmafmcosctl.download(
                fileset, files[0].root, listed, threads=workers, queued=watch.queued
            )
        else:
            access.mmafmctl.prefetch(
                fileset, listed, threads=workers, is_escaped=is_escaped, queued=watch.queued
            )
        command = access.mmafmcosctl if fileset.is_cos else access.mmafmctl
        pause = _FIRST_LOOK_S
        while (statistics := command.statistics(fileset)).pending:
            watch.fetched(fileset, statistics)
            time.sleep(pause)
            pause = min(_LONGEST_LOOK_S, pause * 1.5)
        watch.fetched(fileset, statistics)


def _listable(paths: Sequence[str]) -> list[str]:
    """The files that a list without escapes can name; others stay as they are, and are reported."""
    return [path for path in paths if not needs_escapes([path])]


def _reason(file: FrameFile, fault: str, fileset: Fileset, refused: set[str]) -> str:
    if file.path in refused or escaped(file.path) in refused:
        return (
            f"AFM could not fetch it into {fileset}: {fault}; is it at home? Staging again asks "
            "again"
        )
    return f"{fault} in {fileset}; stage again, or make a dataset of what is there now"


def _check_unused(records: RecordStore, dataset: Dataset, mounted: Manifest) -> None:
    read = str(placed_manifest(records, dataset, mounted, "mounted"))
    jobs = recorded_jobs(records, states=UNFINISHED)
    if using := [job.name for job in jobs if job.paths.get("manifest") == read]:
        raise InUse(
            "dataset",
            f"{dataset.name}@{dataset.version}",
            f"job {', '.join(using)} reads it at its sources' mounts; wait for it, or cancel it: "
            "framesift jobs cancel NAME",
        )


def _size(files: Iterable[FrameFile]) -> int:
    return sum(file.size for file in files)


@contextmanager
def _fileset_lock(folder: Path, fileset: Fileset) -> Iterator[None]:
    """Hold a fileset for the block; others of this folder wait.

    Args:
        folder: Of the lock's file, which all who use the fileset share.

    Raises:
        StorageError: The folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = open_locked(folder / f"{fileset.device}.{fileset.name}.lock")
    except OSError as error:
        raise StorageError(f"list folder {folder}: {error.strerror}", str(folder)) from error
    try:
        yield
    finally:
        unlock(lock)
