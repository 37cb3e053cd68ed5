"""Contents of a cache: entries, prepared forms, and the staged manifests that name entries."""

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from catalog.errors import BadFile, StorageError
from catalog.storage.atomic_write import atomic_write
from catalog.storage.bounded_file import parsed_json, read_bounded
from pipeline.cache.lease import MANIFESTS, USED_FILE
from pipeline.cache.stager import PARTS
from pipeline.entry_name import FORMS, HEADER_FILE, IN_PLACE, source_folder
from pipeline.runs.size import FULL, FormSize, form_size

if TYPE_CHECKING:  # an empty cache's status is read without Arrow and the records' database
    from catalog.records.tables import Dataset
    from pipeline.manifest import Manifest

PINNED_FILE, STAGERS_FILE = "pinned", "stagers.json"
_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class CachedItem:
    """An entry of a cache, or a prepared form in it."""

    path: str
    """Below the cache."""
    bytes: int
    files: int
    used: float
    """When it came or was last used, by the file system's clock [s]."""


@dataclass(frozen=True)
class StagedManifest:
    """A manifest in a cache."""

    folder: Path
    used: float
    """When a job or a staging last began or ended to use it [s]."""
    pinned: bool

    @property
    def name(self) -> str:
        """Name of its folder, NAME-vVERSION-ID."""
        return self.folder.name

    @property
    def is_in_place(self) -> bool:
        """True where its files lie in folders outside the cache, which has their forms alone."""
        return self.name.endswith(IN_PLACE)

    @cached_property
    def manifest(self) -> "Manifest | None":
        """Its content; None where it is damaged or gone: then it holds nothing."""
        from pipeline.manifest import Manifest

        try:
            return Manifest.read(self.folder)
        except BadFile:
            return None

    @cached_property
    def dataset(self) -> str:
        """NAME@VERSION."""
        if self.manifest is None:
            return self.name
        return f"{self.manifest.header.name}@{self.manifest.header.version}"

    @cached_property
    def stagers(self) -> frozenset[str]:
        """The users who have staged it, as far as they are known."""
        try:
            names = parsed_json(read_bounded(self.folder / STAGERS_FILE, _MOST_BYTES))
        except (OSError, ValueError, BadFile):
            return frozenset()
        return frozenset(map(str, names)) if isinstance(names, list) else frozenset()

    @cached_property
    def entries(self) -> frozenset[str]:
        """Paths below the cache of the entries that it names."""
        return frozenset(() if self.manifest is None else manifest_entries(self.manifest))

    def forms(self, sizes: Iterable[FormSize]) -> set[str]:
        """Paths below the cache that its prepared forms of those sizes have."""
        if self.manifest is None:
            return set()
        from pipeline.prepared.form import form_key, form_path  # imports what decodes

        keys = ((form_key(self.manifest, size), size) for size in sizes)
        return {str(form_path(Path(FORMS), key, size)) for key, size in keys if key is not None}


class KnownEntries:
    """Entries that staged manifests name; a manifest that did not change is not read again."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[tuple[int, int], frozenset[str]]] = {}

    def of(self, manifest: StagedManifest) -> frozenset[str]:
        """Paths below the cache of the entries that it names."""
        try:
            status = (manifest.folder / HEADER_FILE).stat()
        except OSError:
            return manifest.entries
        mark, known = (status.st_mtime_ns, status.st_ino), self._known.get(manifest.folder)
        if known is None or known[0] != mark:
            known = self._known[manifest.folder] = mark, manifest.entries
        return known[1]

    def retain(self, manifests: Iterable[StagedManifest]) -> None:
        """Forget the entries of all manifests but these."""
        folders = {manifest.folder for manifest in manifests}
        self._known = {folder: known for folder, known in self._known.items() if folder in folders}


def staged_name(dataset: "Dataset") -> str:
    """The name of a dataset's staged manifest in a cache."""
    # The id as well: two homes may share a cache, each with a dataset of that name.
    return f"{dataset.name}-v{dataset.version}-{dataset.content_id[:12]}"


def write_stagers(folder: Path, users: Iterable[str]) -> None:
    """Record the users who have staged a manifest, in place of those recorded before."""
    atomic_write(folder / STAGERS_FILE, json.dumps(sorted(users)), clear=False)


def manifest_entries(manifest: "Manifest") -> Iterator[str]:
    """Path below the cache of each file of a staged manifest."""
    header = manifest.header
    folders = {name: source_folder(of) for name, of in header.datasources.items()}
    for files in (manifest.images(), manifest.labels()):
        for file in files:
            if file is not None and file.source in folders:
                yield f"{folders[file.source]}/{file.key}"


def staged_manifests(cache: Path) -> list[StagedManifest]:
    """The staged manifests of a cache, least recently used first."""
    manifests = []
    for folder in _below(cache / MANIFESTS):
        used = [mtime(folder / name) for name in (USED_FILE, HEADER_FILE)]
        if folder.name.startswith(".") or used[1] is None:
            continue  # being evicted, or written
        pinned = (folder / PINNED_FILE).exists()
        manifests.append(StagedManifest(folder, max(time for time in used if time), pinned))
    return sorted(manifests, key=lambda manifest: (manifest.used, manifest.name))


def cached_entries(cache: Path) -> Iterator[CachedItem]:
    """Every entry, in no order."""
    for folder in source_folders(cache):
        yield from _files(str(folder), len(str(cache)) + 1)


def source_folders(cache: Path) -> list[Path]:
    """The folders of sources, in which entries lie."""
    return [
        folder for folder in _below(cache) if ":" in folder.name and not folder.name.startswith(".")
    ]


def some_entries(cache: Path, paths: Iterable[str]) -> Iterator[CachedItem]:
    """The entries of these paths that are there.

    Args:
        paths: Of entries, below the cache.
    """
    for path in paths:
        with suppress(OSError):
            status = (cache / path).stat()
            yield CachedItem(path, status.st_size, 1, status.st_mtime)


def cached_forms(cache: Path) -> Iterator[CachedItem]:
    """Every prepared form, those that are being made included."""
    folders = _below(cache / FORMS)
    if not folders:
        return
    from pipeline.prepared.form import ABOUT_FILE  # imports what decodes

    for folder in folders:
        files = list(_files(str(folder), len(str(cache)) + 1))
        used = mtime(folder / ABOUT_FILE) or max((file.used for file in files), default=0.0)
        size = sum(file.bytes for file in files)
        yield CachedItem(f"{FORMS}/{folder.name}", size, len(files), used)


def form_sizes(forms: Iterable[CachedItem]) -> set[FormSize]:
    """The sizes that prepared forms have, as their names say."""
    names = {Path(form.path).name.partition("-")[0] for form in forms}
    return {
        form_size(name) for name in names if name == str(FULL) or name.replace("x", "").isdigit()
    }


def space(cache: Path) -> tuple[int, int]:
    """Space of entries and prepared forms: bytes and files."""
    size = files = 0
    for item in chain(cached_forms(cache), cached_entries(cache)):
        size, files = size + item.bytes, files + item.files
    return size, files


def parts_bytes(cache: Path) -> int:
    """Size of the parts of files that are still coming [bytes]."""
    size = 0
    for path in (cache / PARTS).glob("*/*.part"):
        with suppress(OSError):
            size += path.stat().st_size
    return size


def free_bytes(cache: Path) -> int:
    """Free space on the cache's file system, also before its folder is made [bytes].

    Raises:
        StorageError: It does not say.
    """
    try:
        existing = next(folder for folder in (cache, *cache.parents) if folder.exists())
        return shutil.disk_usage(existing).free
    except OSError as error:
        raise StorageError(f"{cache}: {error.strerror}", str(cache)) from error


def _below(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise StorageError(f"{folder}: {error.strerror}", str(folder)) from error


def _files(folder: str, skipped: int) -> Iterator[CachedItem]:
    """The files below a folder; those that go meanwhile are none."""
    try:
        with os.scandir(folder) as listing:
            for entry in listing:
                if entry.is_dir(follow_symlinks=False):
                    yield from _files(entry.path, skipped)
                    continue
                with suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    yield CachedItem(entry.path[skipped:], status.st_size, 1, status.st_mtime)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StorageError(f"{folder}: {error.strerror}", folder) from error


def mtime(path: Path) -> float | None:
    """The time of a file's last change [s]; None where it is not there."""
    try:
        return path.stat().st_mtime
    except OSError:
        return None
