"""Space in a cache by dataset and by source, the leases on it, and space that no dataset names."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from pipeline.cache.beat import Watch
from pipeline.cache.contents import StagedManifest, free_bytes
from pipeline.cache.eviction import CacheContents
from pipeline.cache.lease import HeldLease, held_leases
from pipeline.cache.limits import Limits, read_limits


@dataclass(frozen=True)
class Space:
    """Space in a cache."""

    bytes: int = 0
    files: int = 0


@dataclass(frozen=True)
class DatasetSpace:
    """Space that a staged dataset takes."""

    manifest: StagedManifest
    space: Space
    """Of its entries; what several datasets name counts for each."""
    alone: Space
    """Of its entries that no other staged dataset names."""
    prepared: Space
    leases: tuple[HeldLease, ...]


@dataclass(frozen=True)
class CacheStatus:
    """Space in a cache, and the leases on it."""

    space: Space
    free_bytes: int
    limits: Limits
    datasets: tuple[DatasetSpace, ...]
    """Staged datasets, the one used last first."""
    sources: dict[str, Space]
    """Space of the entries of each source, by "cluster:datasource", largest first."""
    prepared: Space
    unnamed: Space
    """Space of entries that no staged dataset names: of earlier stagings, or coming."""
    leases: tuple[HeldLease, ...]


def cache_status(cache: Path) -> CacheStatus:
    """Measures a cache now; what changes meanwhile may be counted or not."""
    leases = tuple(lease for lease in held_leases(cache, Watch()) if lease.manifest)
    contents = CacheContents(cache, leases)
    entries = {path: entry.bytes for path, entry in contents.entries.items()}
    forms = {form.path: form for form in contents.forms}
    names = Counter(path for one in contents.manifests for path in one.entries)
    datasets = []
    for one in reversed(contents.manifests):
        there = [path for path in one.entries if path in entries]
        own_forms = [forms[path] for path in contents.paths(one) if path in forms]
        datasets.append(
            DatasetSpace(
                one,
                _space(entries[path] for path in there),
                _space(entries[path] for path in there if names[path] == 1),
                Space(sum(form.bytes for form in own_forms), sum(form.files for form in own_forms)),
                tuple(lease for lease in leases if lease.manifest == one.name),
            )
        )
    sizes: dict[str, list[int]] = {}
    for path, size in entries.items():
        sizes.setdefault(unquote(path.partition("/")[0]), []).append(size)
    sources = {name: _space(source_sizes) for name, source_sizes in sizes.items()}
    prepared = Space(sum(f.bytes for f in contents.forms), sum(f.files for f in contents.forms))
    entered = _space(entries.values())
    return CacheStatus(
        Space(entered.bytes + prepared.bytes, entered.files + prepared.files),
        free_bytes(cache),
        read_limits(cache),
        tuple(datasets),
        dict(sorted(sources.items(), key=lambda item: -item[1].bytes)),
        prepared,
        _space(size for path, size in entries.items() if not names[path]),
        leases,
    )


def _space(sizes: Iterable[int]) -> Space:
    all_sizes = list(sizes)
    return Space(sum(all_sizes), len(all_sizes))
