"""Which files of a manifest must be copied where, and whether they fit."""

import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa

from catalog.errors import BadFile, InvalidInput, StorageError
from catalog.storage.beneath import real_place, status_beneath
from pipeline.file_version import kept_key, version_of
from pipeline.manifest import FrameFile, Manifest


@dataclass(frozen=True, slots=True)
class CopyItem:
    """One file to copy.

    Attributes:
        root: Folder of its source, no link on its way.
        key: Where it lies below it.
        target: Where it goes; the name says the version.
        size: Its size as catalogued [bytes].
        version: Which version of it is wanted (pipeline.file_version).
        digest: Of its content, "sha256:<hex>"; None where it is not known.
    """

    root: str
    key: str
    target: Path
    size: int
    version: str
    digest: str | None = None

    @property
    def source(self) -> str:
        """Where it comes from."""
        return f"{self.root}/{self.key}"


@dataclass(frozen=True)
class StagingPlan:
    """What staging a manifest takes.

    Attributes:
        missing: Files to copy.
        files: Files of the manifest, those already in the cache included.
        bytes: Their size [bytes].
        roots: Folder of each source in the cache.
        rows: The manifest's rows, each file with its version.
    """

    missing: tuple[CopyItem, ...]
    files: int
    bytes: int
    roots: dict[str, str]
    rows: pa.Table

    @property
    def missing_bytes(self) -> int:
        """Size of what is to be copied [bytes]."""
        return sum(item.size for item in self.missing)


def plan_staging(manifest: Manifest, cache: Path) -> StagingPlan:
    """What must be copied so that every file of the manifest lies in the cache.

    A file in the cache whose name says the wanted version, and which has the catalogued size, is
    complete: copies are written aside and renamed.

    Args:
        manifest: The files, not staged.
        cache: Where they go.

    Raises:
        BadFile: The manifest names a file outside its source.
        InvalidInput: A source is no folder.
        StorageError: One lies elsewhere by now, or a file whose version the manifest does not say
            is not there.
    """
    header = manifest.header
    roots = {
        name: str(cache / quote(names, safe=":@+ ")) for name, names in header.datasources.items()
    }
    real = {
        name: real_place(Path(root), header.within.get(name, ""))
        for name, root in header.roots.items()
        if "://" not in root
    }
    rows = manifest.frames
    items: dict[Path, CopyItem] = {}
    for kind, files in (("image", manifest.images()), ("label", manifest.labels())):
        versions = []
        for file in files:
            item = _item(file, real, roots) if file else None
            versions.append(item.version if item else None)
            if item:
                items[item.target] = item
        place = rows.column_names.index(f"{kind}_version")
        rows = rows.set_column(place, rows.schema.field(place), pa.array(versions, pa.string()))
    missing = tuple(item for item in items.values() if not _is_there(item))
    total = sum(item.size for item in items.values())
    return StagingPlan(missing, len(items), total, roots, rows)


def check_space(plan: StagingPlan, cache: Path) -> None:
    """Make the cache folder and see that the plan fits.

    Raises:
        StorageError: The folder cannot be made or written, or has too little space.
    """
    probe = cache / f".writable-{uuid.uuid4().hex}"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
        free = shutil.disk_usage(cache).free
    except OSError as error:
        raise StorageError(
            f"cache {cache}: cannot be written: {error.strerror}; give another with --cache",
            str(cache),
        ) from error
    if plan.missing_bytes > free:
        raise StorageError(
            f"cache {cache}: {_size(free)} free, but {_size(plan.missing_bytes)} are to be "
            "copied; free some space or give another cache with --cache",
            str(cache),
        )


def _item(file: FrameFile, real: Mapping[str, str], roots: Mapping[str, str]) -> CopyItem:
    if file.key.startswith("/") or ".." in file.key.split("/"):
        raise BadFile("the manifest names a file outside its source's root", file.key)
    if file.source not in real:
        raise InvalidInput(
            f"source {file.source}: {file.root} is not a folder; it cannot be staged"
        )
    root = real[file.source]
    version = file.version or _version_now(root, file)
    target = Path(roots[file.source], kept_key(file.key, file.size, version))
    return CopyItem(root, file.key, target, file.size, version, file.digest)


def _version_now(root: str, file: FrameFile) -> str:
    """The version that lies in the source, where an earlier format says none."""
    path = f"{root}/{file.key}"
    try:
        return version_of(status_beneath(root, file.key))
    except OSError as error:
        raise StorageError(
            f"{path}: {error.strerror}; the dataset was made by an earlier release, which did not "
            "keep the versions of files, so its source is needed: is it mounted?",
            path,
        ) from error


def _is_there(item: CopyItem) -> bool:
    try:
        return item.target.stat().st_size == item.size
    except OSError:
        return False


def _size(number: int) -> str:
    return f"{number / 1e9:.2f} GB" if number >= 1e8 else f"{number / 1e6:.2f} MB"
