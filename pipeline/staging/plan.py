"""Which files of a manifest must be copied where, and whether they fit."""

import shutil
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from catalog.beneath import real_place
from catalog.errors import BadFile, InvalidInput, StorageError
from pipeline.manifest import Manifest


@dataclass(frozen=True, slots=True)
class CopyItem:
    """One file to copy.

    Attributes:
        root: Folder of its source, no link on its way.
        key: Where it lies below it.
        target: Where it goes.
        size: Its size as catalogued [bytes].
    """

    root: str
    key: str
    target: Path
    size: int

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
    """

    missing: tuple[CopyItem, ...]
    files: int
    bytes: int
    roots: dict[str, str]

    @property
    def missing_bytes(self) -> int:
        """Size of what is to be copied [bytes]."""
        return sum(item.size for item in self.missing)


def plan_staging(
    manifest: Manifest, cache: Path, within: Mapping[str, str] | None = None
) -> StagingPlan:
    """What must be copied so that every file of the manifest lies in the cache.

    A file in the cache with the catalogued size is complete: copies are written aside and renamed.

    Args:
        manifest: The files.
        cache: Where they go.
        within: Folder that each source must lie below, by name; empty or missing for anywhere.

    Raises:
        BadFile: The manifest names a file outside its source.
        InvalidInput: A source is no folder.
        StorageError: One lies elsewhere by now.
    """
    roots = {name: str(cache / folder) for name, folder in _folders(manifest).items()}
    items = list(_items(manifest, roots, within or {}))
    missing = tuple(item for item in items if not _is_there(item))
    return StagingPlan(missing, len(items), sum(item.size for item in items), roots)


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


def _folders(manifest: Manifest) -> dict[str, str]:
    """Folder name of each source: its cluster and datasource, which are unique."""
    folders: dict[str, str] = {}
    frames = manifest.frames
    for name, fkey, image in zip(
        frames["source"].to_pylist(),
        frames["fkey"].to_pylist(),
        frames["image"].to_pylist(),
        strict=True,
    ):
        if name not in folders:
            folders[name] = quote(fkey.removesuffix(image).removesuffix(":"), safe=":@+ ")
    return folders


def _items(
    manifest: Manifest, roots: dict[str, str], within: Mapping[str, str]
) -> Iterator[CopyItem]:
    frames = manifest.frames
    sources = frames["source"].to_pylist()
    real = {
        name: real_place(Path(root), within.get(name, ""))
        for name, root in manifest.header.roots.items()
    }
    for kind in ("image", "label"):
        keys, sizes = frames[kind].to_pylist(), frames[f"{kind}_size"].to_pylist()
        for source, key, size in zip(sources, keys, sizes, strict=True):
            if key.startswith("/") or ".." in key.split("/"):
                raise BadFile("the manifest names a file outside its source's root", key)
            root = manifest.header.roots[source]
            if "://" in root:
                raise InvalidInput(f"source {source}: {root} is not a folder; it cannot be staged")
            yield CopyItem(real[source], key, Path(roots[source], key), size)


def _is_there(item: CopyItem) -> bool:
    try:
        return item.target.stat().st_size == item.size
    except OSError:
        return False


def _size(number: int) -> str:
    return f"{number / 1e9:.2f} GB" if number >= 1e8 else f"{number / 1e6:.2f} MB"
