"""Which files of a manifest must be fetched, and whether they fit."""

import os
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa

from catalog.errors import BadFile, StorageError
from catalog.storage.file_version import listed_version
from ingest.sources.source_files import SourceFiles
from pipeline.cache.entry_name import kept_key
from pipeline.manifest import FrameFile, Manifest

OpenSource = Callable[[str], SourceFiles]
"""The files of a source, by its name."""


@dataclass(frozen=True, slots=True)
class WantedFile:
    """One file that must be in the cache.

    Attributes:
        source: Name of its source.
        key: Where it lies below it.
        size: Its size as catalogued [bytes].
        version: Which version of it is wanted (catalog.storage.file_version).
        digest: Of its content, "sha256:<hex>"; None where it is not known.
    """

    source: str
    key: str
    size: int
    version: str
    digest: str | None = None

    @property
    def entry(self) -> str:
        """Its path below its source's folder in the cache; it says the version."""
        return kept_key(self.key, self.size, self.version)


@dataclass(frozen=True)
class StagingPlan:
    """What staging a manifest takes.

    Attributes:
        missing: Files to fetch.
        present: Files that are in the cache, where they were asked for; else none are kept.
        files: Files of the manifest, those already in the cache included.
        bytes: Their size [bytes].
        roots: Folder of each source in the cache.
        places: Folder or URI of each source.
        rows: The manifest's rows, each file with its version.
    """

    missing: tuple[WantedFile, ...]
    present: tuple[WantedFile, ...]
    files: int
    bytes: int
    roots: Mapping[str, str]
    places: Mapping[str, str]
    rows: pa.Table

    @property
    def missing_bytes(self) -> int:
        """Size of what is to be fetched [bytes]."""
        return sum(item.size for item in self.missing)

    def target(self, item: WantedFile) -> Path:
        """Where a file goes."""
        return Path(self.roots[item.source], item.entry)

    def entry(self, item: WantedFile) -> str:
        """Its path below the cache, as checksums and claims name it."""
        return f"{self.roots[item.source].rpartition('/')[2]}/{item.entry}"

    def is_there(self, item: WantedFile) -> bool:
        """Whether it lies in the cache by now."""
        try:
            return self.target(item).stat().st_size == item.size
        except OSError:
            return False

    def place(self, item: WantedFile) -> str:
        """Where a file comes from, for messages."""
        return f"{self.places[item.source].rstrip('/')}/{item.key}"


def plan_staging(
    manifest: Manifest,
    cache: Path,
    sources: OpenSource | None = None,
    *,
    keep_present: bool = False,
) -> StagingPlan:
    """What must be fetched so that every file of the manifest lies in the cache.

    A file in the cache whose name says the wanted version, and which has the catalogued size, is
    complete: files are written aside, checked and renamed.

    Args:
        manifest: The files, not staged.
        cache: Where they go.
        sources: Opens those whose files' versions the manifest does not say, as earlier formats.
        keep_present: Keep those that are there, too.

    Raises:
        BadFile: The manifest names a file outside its source, or no version.
        StorageError: A source that is asked for versions cannot be reached.
    """
    header = manifest.header
    roots = {
        name: str(cache / quote(names, safe=":@+ ")) for name, names in header.datasources.items()
    }
    rows = manifest.frames
    listed = _Listed()
    missing: list[WantedFile] = []
    present: list[WantedFile] = []
    seen: dict[str, set[str]] = defaultdict(set)
    files = size = 0
    for kind, files_of in (("image", manifest.images), ("label", manifest.labels)):
        versions: list[str | None] = []
        for item in _wanted(files_of(), sources):
            versions.append(item.version if item else None)
            if item is None:
                continue
            entry = item.entry
            if entry in seen[item.source]:
                continue
            seen[item.source].add(entry)
            files, size = files + 1, size + item.size
            if listed.size(roots[item.source], entry) != item.size:
                missing.append(item)
            elif keep_present:
                present.append(item)
        place = rows.column_names.index(f"{kind}_version")
        rows = rows.set_column(place, rows.schema.field(place), pa.array(versions, pa.string()))
    places = header.roots
    return StagingPlan(tuple(missing), tuple(present), files, size, roots, places, rows)


def check_space(plan: StagingPlan, cache: Path) -> None:
    """Make the cache folder and see that the plan fits.

    Raises:
        StorageError: The folder cannot be made or written, or has too little space.
    """
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=cache):  # without a name: one that is killed leaves nothing
            pass
        free = shutil.disk_usage(cache).free
    except OSError as error:
        raise StorageError(
            f"cache {cache}: cannot be written: {error.strerror}; give another with --cache",
            str(cache),
        ) from error
    if plan.missing_bytes > free:
        raise StorageError(
            f"cache {cache}: {_size(free)} free, but {_size(plan.missing_bytes)} are to be "
            "fetched; free some space or give another cache with --cache",
            str(cache),
        )


class _Listed:
    """Sizes of what is in the cache, folder by folder: a listing, and no search for each name."""

    def __init__(self) -> None:
        self._folders: dict[str, dict[str, int]] = {}

    def size(self, root: str, entry: str) -> int | None:
        """Size of an entry [bytes]; None where it is not there."""
        below, _, name = entry.rpartition("/")
        folder = f"{root}/{below}"
        if folder not in self._folders:
            self._folders[folder] = _sizes(folder)
        return self._folders[folder].get(name)


def _sizes(folder: str) -> dict[str, int]:
    sizes = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                sizes[entry.name] = status.st_size
    except OSError:  # not there yet; whatever else ails it is said when it is written
        return sizes
    return sizes


def _wanted(
    files: Iterable[FrameFile | None], sources: OpenSource | None
) -> Iterator[WantedFile | None]:
    for file in files:
        if file is None:
            yield None
            continue
        if file.key.startswith("/") or ".." in file.key.split("/"):
            raise BadFile("the manifest names a file outside its source's root", file.key)
        version = file.version or _version_now(file, sources)
        yield WantedFile(file.source, file.key, file.size, version, file.digest)


def _version_now(file: FrameFile, sources: OpenSource | None) -> str:
    """The version that lies in the source, where an earlier format says none."""
    if sources is None:
        raise BadFile("the manifest does not say its version", file.path)
    entry = next(iter(sources(file.source).list(file.key)), None)
    if entry is None:
        raise StorageError(
            f"{file.path}: is not there; the dataset was made by an earlier release, which did not "
            "keep the versions of files, so its source is needed: is it mounted?",
            file.path,
        )
    return listed_version(entry.etag, entry.mtime)


def _size(number: int) -> str:
    return f"{number / 1e9:.2f} GB" if number >= 1e8 else f"{number / 1e6:.2f} MB"
