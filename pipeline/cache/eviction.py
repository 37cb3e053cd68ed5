"""Order and way of evicting the content of a cache.

What was used least recently goes first: an entry was used when the newest manifest that names it
was, and one that none names, when it came. A manifest goes before the first of its entries, so that
no manifest ever names what is gone; its other entries stay as long as there is room, and are hits
when the dataset is staged again.
"""

import os
import shutil
import time
import uuid
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from catalog.errors import StorageError
from catalog.storage.atomic_write import clear_parts
from pipeline.cache.contents import (
    CachedItem,
    KnownEntries,
    StagedManifest,
    cached_entries,
    cached_forms,
    form_sizes,
    mtime,
    some_entries,
    staged_manifests,
)
from pipeline.cache.lease import LEASES, MANIFESTS, HeldLease
from pipeline.cache.statistics import SourceCounts, counting
from pipeline.entry_name import FORMS, HEADER_FILE, is_versioned_key

_EVICTED, _PART = ".evicted", ".part"
_MARK = ".evictions"

_FEW = 10_000
"""Entries that are looked for one by one in what manifests name."""


@dataclass(frozen=True)
class Holding:
    """Holder of content that may not be evicted, and how much it holds."""

    what: str
    bytes: int
    """Of the content in the cache that it holds; what several hold counts for each [bytes]."""


@dataclass(frozen=True)
class EvictionPlan:
    """Plan of an eviction: the manifests, entries and prepared forms to remove."""

    manifests: tuple[StagedManifest, ...]
    items: tuple[CachedItem, ...]
    bytes: int
    files: int
    is_enough: bool
    """Whether no more must go."""


@dataclass(frozen=True)
class UserContents:
    """The content of one user's datasets."""

    free: tuple[StagedManifest, ...]
    """Those that may go, least recently used first."""
    stays: frozenset[str]
    """Paths of what the others name."""
    contents: "CacheContents"

    @property
    def paths(self) -> frozenset[str]:
        """Paths of all of it."""
        return self.without(())

    def without(self, going: Collection[StagedManifest]) -> frozenset[str]:
        """Paths of what is left without some of them."""
        remaining = [self.contents.paths(one) for one in self.free if one not in going]
        return self.stays.union(*remaining)


class CacheContents:
    """The contents of a cache, and its holders, as they were when this was made."""

    def __init__(
        self,
        cache: Path,
        leases: Iterable[HeldLease],
        only: Collection[str] | None = None,
        known: KnownEntries | None = None,
    ) -> None:
        """Read it.

        Args:
            only: Entries that count, by their paths below the cache; None for all, and all
                prepared forms.
            known: What manifests name, as far as it was read before.
        """
        self.cache, self._known = cache, known or KnownEntries()
        self.leases = tuple(leases)
        self.manifests = tuple(staged_manifests(cache))
        entries = cached_entries(cache) if only is None else some_entries(cache, only)
        self.entries = {item.path: item for item in entries}
        self.forms = tuple(cached_forms(cache)) if only is None else ()
        self._sizes = form_sizes(self.forms)
        self._held: dict[str, frozenset[str]] = {}
        by_name = {manifest.name: manifest for manifest in self.manifests}
        own_manifests = [
            StagedManifest(lease.folder / "manifest", 0.0, pinned=False) for lease in self.leases
        ]
        self._known.retain((*self.manifests, *own_manifests))
        for lease, own in zip(self.leases, own_manifests, strict=True):
            of = [own] if own.folder.is_dir() else []
            of += [by_name[lease.manifest]] if lease.manifest in by_name else []
            self._hold(str(lease), of)
        for manifest in self.manifests:
            if manifest.pinned:
                self._hold(f"{manifest.dataset}, pinned", [manifest])
        leased = {lease.manifest for lease in self.leases}
        self.free = tuple(
            manifest
            for manifest in self.manifests
            if not manifest.pinned and manifest.name not in leased
        )

    def of_user(self, user: str) -> UserContents:
        """The content that a user has staged, or stages now."""
        free = tuple(one for one in self.free if user in one.stagers)
        stays = [
            self.paths(one) for one in self.manifests if user in one.stagers and one not in free
        ]
        stays += [
            self._held[str(one)]
            for one in self.leases
            if not one.holder.job and one.holder.user == user
        ]
        return UserContents(free, frozenset[str]().union(*stays), self)

    def paths(self, manifest: StagedManifest) -> frozenset[str]:
        """Paths of the entries that a manifest names, and of its prepared forms."""
        return self._known.of(manifest) | manifest.forms(self._sizes)

    def size(self, paths: Collection[str]) -> int:
        """Size of these, as far as they are there [bytes]."""
        return sum(item.bytes for item in self.items if item.path in paths)

    @property
    def items(self) -> Iterable[CachedItem]:
        """Every entry and prepared form."""
        return chain(self.entries.values(), self.forms)

    def alone(self, manifests: Collection[StagedManifest]) -> EvictionPlan:
        """Plans to evict these manifests, and all that no holder and no other manifest names."""
        names = {manifest.name for manifest in manifests}
        going = frozenset[str]().union(*map(self.paths, manifests))
        staying = frozenset[str]().union(
            self.held, *(self.paths(one) for one in self.manifests if one.name not in names)
        )
        evicted = tuple(one for one in self.items if one.path in going and one.path not in staying)
        size, files = sum(one.bytes for one in evicted), sum(one.files for one in evicted)
        return EvictionPlan(tuple(manifests), evicted, size, files, is_enough=True)

    def _hold(self, what: str, manifests: Iterable[StagedManifest]) -> None:
        names = frozenset[str]()
        for manifest in manifests:
            names |= self.paths(manifest)
        self._held[what] = self._held.get(what, frozenset()) | names

    @property
    def held(self) -> frozenset[str]:
        """Paths of the entries and prepared forms that stay."""
        return frozenset().union(*self._held.values())

    def holdings(self) -> list[Holding]:
        """The holders of content that may not go, the largest first."""
        holdings = [Holding(what, self.size(paths)) for what, paths in self._held.items()]
        return sorted(holdings, key=lambda holding: -holding.bytes)

    def plan(
        self, size: int, files: int, among: Callable[[CachedItem], bool] = lambda _: True
    ) -> EvictionPlan:
        """The content to evict to make so much room, least recently used first.

        Args:
            size: To be made free [bytes].
            among: Whether an entry or a prepared form may go; what is held never does.
        """
        return self.order(among).take(size, files)

    def order(self, among: Callable[[CachedItem], bool] = lambda _: True) -> "EvictionOrder":
        """All that may go, least recently used first; see `plan`."""
        named = [self._known.of(one) for one in self.free]
        if len(self.entries) < _FEW:
            last = {path: i for path in self.entries for i, of in enumerate(named) if path in of}
        else:
            last = {path: index for index, of in enumerate(named) for path in of}
        held_paths, order = self.held, []
        for candidate in self.items:
            if candidate.path in held_paths or not among(candidate):
                continue
            index = last.get(candidate.path)
            if index is not None:
                order.append((self.free[index].used, candidate))
            elif _is_ours(candidate.path):
                order.append((candidate.used, candidate))
        order.sort(key=lambda item: (item[0], item[1].path))
        candidates = deque(candidate for _, candidate in order)
        goes_with = [
            frozenset(one.forms(self._sizes)) if one.is_in_place else of
            for one, of in zip(self.free, named, strict=True)
        ]
        return EvictionOrder(candidates, tuple(zip(self.free, goes_with, strict=True)))


class EvictionOrder:
    """Evictable content in the order of its eviction, while nobody else holds any of it.

    Attributes:
        made_s: When it was made, by this process's clock [s].
    """

    def __init__(
        self, candidates: deque[CachedItem], free: tuple[tuple[StagedManifest, frozenset[str]], ...]
    ) -> None:
        self._candidates, self._free, self.made_s = candidates, free, time.monotonic()

    def take(self, size: int, files: int) -> EvictionPlan:
        """The first of it that makes so much room, which is taken out."""
        going: list[CachedItem] = []
        freed_bytes = freed_files = 0
        while self._candidates and (freed_bytes < size or freed_files < files):
            going.append(self._candidates.popleft())
            freed_bytes += going[-1].bytes
            freed_files += going[-1].files
        names = {candidate.path for candidate in going}
        manifests = tuple(one for one, of in self._free if not names.isdisjoint(of))
        is_enough = freed_bytes >= size and freed_files >= files
        return EvictionPlan(manifests, tuple(going), freed_bytes, freed_files, is_enough)


def holders_of(cache: Path, leases: Iterable[HeldLease]) -> frozenset[tuple[str, float, str]]:
    """Marks of all that may name content; one more, or another one, may name what was free."""
    marks = set()
    for lease in leases:
        own = mtime(lease.folder / "manifest" / HEADER_FILE) or 0.0
        marks.add((lease.folder.name, own, lease.manifest))
    for manifest in staged_manifests(cache):
        written = mtime(manifest.folder / HEADER_FILE) or 0.0
        marks.add((manifest.name, written, "pinned" if manifest.pinned else ""))
    return frozenset(marks)


def evict(
    cache: Path, plan: EvictionPlan, is_held: Callable[[], Collection[str]]
) -> tuple[int, int]:
    """Remove a plan's content; bytes and files that were removed.

    A process that is killed meanwhile leaves entries that no manifest names, which is no harm.

    Args:
        is_held: Names of the manifests that are leased or pinned by now.

    Raises:
        StorageError: The cache cannot be written.
    """
    stays: set[str] = set()
    folders: set[str] = set()
    evicted: dict[str, SourceCounts] = defaultdict(SourceCounts)
    try:
        clear_evicted(cache, is_held)
        _mark_eviction(cache)
        for manifest in plan.manifests:
            if not _move_and_remove(manifest, is_held):
                stays |= manifest.entries
        for item in plan.items:
            if item.path in stays:
                continue
            if _remove(cache / item.path):
                counts = evicted[item.path.partition("/")[0]]
                counts.evicted_bytes += item.bytes
                counts.evicted_files += item.files
                folders.add(os.path.dirname(item.path))  # noqa: PTH120 (a million: a tenth)
        _remove_empty(cache, folders)
    except OSError as error:
        path = str(error.filename or cache)
        raise StorageError(f"{path}: {error.strerror} (evicting)", path) from error
    finally:
        with counting(cache) as statistics:
            for source, counts in evicted.items():
                statistics.count(source, counts)
    return (
        sum(counts.evicted_bytes for counts in evicted.values()),
        sum(counts.evicted_files for counts in evicted.values()),
    )


def _is_ours(path: str) -> bool:
    """True for content that may go unless a manifest names it: no foreign or unfinished file."""
    return is_versioned_key(path) or (path.startswith(f"{FORMS}/") and not path.endswith(_PART))


def clear_evicted(cache: Path, is_held: Callable[[], Collection[str]]) -> None:
    """Remove leftovers of killed processes; to be called by the process that has the turn."""
    clear_parts((cache / FORMS).glob(f"*{_PART}"))
    for evicted in (cache / MANIFESTS).glob(f".*{_EVICTED}"):
        name = evicted.name[1:].rpartition(".")[0].rpartition(".")[0]
        if name in is_held() and not (cache / MANIFESTS / name).exists():
            evicted.rename(cache / MANIFESTS / name)
        else:
            shutil.rmtree(evicted, ignore_errors=True)


def evictions(cache: Path) -> str:
    """A text that each eviction changes when it begins."""
    try:
        return (cache / LEASES / _MARK).read_text()
    except OSError:
        return ""


def _mark_eviction(cache: Path) -> None:
    (cache / LEASES).mkdir(parents=True, exist_ok=True)
    (cache / LEASES / _MARK).write_text(uuid.uuid4().hex)


def _move_and_remove(manifest: StagedManifest, is_held: Callable[[], Collection[str]]) -> bool:
    """Remove a manifest, unless somebody has started to use it; True where it was removed."""
    evicted = manifest.folder.with_name(f".{manifest.name}.{uuid.uuid4().hex}{_EVICTED}")
    try:
        manifest.folder.rename(evicted)
    except FileNotFoundError:
        return True
    # A job takes its lease and then looks for the manifest; so one of the two sees the other.
    if manifest.name in is_held() or (evicted / "pinned").exists():
        evicted.rename(manifest.folder)
        return False
    shutil.rmtree(evicted, ignore_errors=True)
    return True


def _remove_empty(cache: Path, folders: Iterable[str]) -> None:
    """Remove folders that are empty by now, but for those of sources; so as others fill them."""
    for folder in folders:
        path = Path(folder)
        while len(path.parts) > 1:
            try:
                (cache / path).rmdir()
            except OSError:  # something lies there, or came just now
                break
            path = path.parent


def _remove(path: Path) -> bool:
    if path.is_dir():
        # By one step: nobody opens half of a form.
        evicted = path.with_name(f".{uuid.uuid4().hex}{_EVICTED}")
        with suppress(FileNotFoundError):
            path.rename(evicted)
            shutil.rmtree(evicted, ignore_errors=True)
            return True
        return False
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True
