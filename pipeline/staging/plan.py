"""The files of a manifest to fetch, and the folder where they go."""

import os
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from catalog.errors import BadFile, StorageError
from ingest.sources.source_files import SourceFiles
from pipeline.entry_name import source_folder, versioned_key
from pipeline.manifest import FrameFile, Manifest

OTHER_NAME = (
    "rename it, or leave it out: framesift source set SOURCE --exclude PATTERN, and ingest again"
)
"""What to do about a file whose name no cache can hold."""

OpenSource = Callable[[str], SourceFiles]
"""The files of a source, by its name."""


@dataclass(frozen=True, slots=True)
class WantedFile:
    """One file that must be in the cache."""

    source: str
    key: str
    """Where it lies below it."""
    size: int
    """Its size as catalogued [bytes]."""
    version: str
    """Which version of it is wanted (catalog.storage.file_version)."""
    digest: str | None = None
    """Of its content, "sha256:<hex>"; None where it is not known."""

    @property
    def entry(self) -> str:
        """Its path below its source's folder in the cache; it says the version."""
        return versioned_key(self.key, self.size, self.version)

    @property
    def leads_out(self) -> bool:
        """True where its key is a path that leads out of any folder, as keys of objects may."""
        return self.key.startswith("/") or ".." in self.key.split("/")


@dataclass(frozen=True)
class StagingPlan:
    """Plan of staging a manifest: the files to fetch, and where they go."""

    missing: tuple[WantedFile, ...]
    present: tuple[WantedFile, ...]
    """Files that are in the cache, where they were asked for; else none are kept."""
    files: int
    """Files of the manifest, those already in the cache included."""
    bytes: int
    roots: Mapping[str, str]
    """Folder of each source in the cache."""
    origins: Mapping[str, str]
    """Folder or URI of each source."""
    files_of: Mapping[str, int] = field(default_factory=dict)

    @property
    def missing_bytes(self) -> int:
        """Size of what is to be fetched [bytes]."""
        return sum(item.size for item in self.missing)

    def target(self, item: WantedFile) -> Path:
        """The path of a file in the cache.

        Raises:
            BadFile: Its name leads out of its source's folder.
        """
        if item.leads_out:
            raise BadFile(
                f"its name leads outside its source's folder, where no cache goes; {OTHER_NAME}",
                item.key,
            )
        return Path(self.roots[item.source], item.entry)

    def label(self, source: str) -> str:
        """Name of a source's folder in the cache, which statistics count by."""
        return self.roots[source].rpartition("/")[2]

    def entry(self, item: WantedFile) -> str:
        """Its path below the cache, as checksums and claims name it."""
        return f"{self.label(item.source)}/{item.entry}"

    def is_there(self, item: WantedFile) -> bool:
        """True where it lies in the cache by now."""
        return not item.leads_out and self.lies_at(self.target(item), item)

    def lies_at(self, target: Path, item: WantedFile) -> bool:
        """True where a file lies at its target by now."""
        try:
            return target.stat().st_size == item.size
        except OSError:
            return False

    def origin(self, item: WantedFile) -> str:
        """The path or URI that a file comes from, for messages."""
        return f"{self.origins[item.source].rstrip('/')}/{item.key}"


def plan_staging(manifest: Manifest, cache: Path, *, keep_present: bool = False) -> StagingPlan:
    """The files to fetch so that every file of the manifest lies in the cache.

    A file in the cache whose name says the wanted version, and which has the catalogued size, is
    complete: files are written to temporary paths, checked and renamed.

    Args:
        manifest: The files, not staged.
    """
    header = manifest.header
    roots = {name: str(cache / source_folder(of)) for name, of in header.datasources.items()}
    listed = _Listed()
    missing: list[WantedFile] = []
    present: list[WantedFile] = []
    unique = _UniqueFiles()
    files = size = 0
    for kind in ("image", "label"):
        for item in wanted_files(manifest.files(kind)):
            if item is None or not unique.is_new(item):
                continue
            files, size = files + 1, size + item.size
            if item.leads_out or listed.size(roots[item.source], item) != item.size:
                missing.append(item)
            elif keep_present:
                present.append(item)
    return StagingPlan(
        tuple(missing), tuple(present), files, size, roots, header.roots, unique.files_of()
    )


def make_cache(cache: Path) -> None:
    """Make the cache folder.

    Raises:
        StorageError: It cannot be made or written.
    """
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=cache):  # without a name: one that is killed leaves nothing
            pass
    except OSError as error:
        raise StorageError(
            f"cache {cache}: cannot be written: {error.strerror}; give another with --cache",
            str(cache),
        ) from error


class _UniqueFiles:
    """The files that a manifest has named so far; of a million, memory for no other text."""

    def __init__(self) -> None:
        self._first: dict[str, dict[str, WantedFile]] = defaultdict(dict)
        self._other_versions: set[WantedFile] = set()

    def is_new(self, item: WantedFile) -> bool:
        """True for a file that was not named before; from now on it was."""
        first = self._first[item.source].setdefault(item.key, item)
        if first is item:
            return True
        if item == first or item in self._other_versions:
            return False
        self._other_versions.add(item)  # another version of a file
        return True

    def files_of(self) -> dict[str, int]:
        """Files of each source."""
        other_versions = Counter(item.source for item in self._other_versions)
        return {
            source: len(first) + other_versions[source] for source, first in self._first.items()
        }


class _Listed:
    """Sizes of what is in the cache, folder by folder: a listing, and no search for each name."""

    def __init__(self) -> None:
        self._folders: dict[str, dict[str, int]] = {}

    def size(self, root: str, item: WantedFile) -> int | None:
        """Size of a file's entry [bytes]; None where it is not there."""
        folder = f"{root}/{item.key.rpartition('/')[0]}"
        if folder not in self._folders:
            self._folders[folder] = _sizes(folder)
        sizes = self._folders[folder]
        return sizes.get(item.entry.rpartition("/")[2]) if sizes else None


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


def wanted_files(files: Iterable[FrameFile | None]) -> Iterator[WantedFile | None]:
    """The files of a manifest that is not staged; None where there is none.

    Raises:
        BadFile: It names no version of one.
    """
    for file in files:
        if file is None:
            yield None
        elif file.version is None:
            raise BadFile("the manifest does not say its version", file.path)
        else:
            yield WantedFile(file.source, file.key, file.size, file.version, file.digest)
