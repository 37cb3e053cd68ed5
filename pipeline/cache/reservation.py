"""Reservations of cache space, so that all stagings that share a cache stay within its limits.

Who fetches says first how much is to come (CACHE/.leases/<lease>/reserved), and counts then: what
lies there, what all have reserved, what is free on the disk. One after another, by a link that
names whose turn it is (CACHE/.leases/.turn): else two that come at once would each see the other,
and both give up. Correctness hangs on the order alone, write and then count.
"""

import json
import threading
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from catalog.errors import CacheFull, InUse, NotFound, StorageError
from catalog.storage.atomic_write import atomic_write
from pipeline.cache.beat import Watch
from pipeline.cache.contents import (
    PINNED_FILE,
    KnownEntries,
    StagedManifest,
    free_bytes,
    parts_bytes,
    write_stagers,
)
from pipeline.cache.eviction import (
    CacheContents,
    EvictionOrder,
    EvictionPlan,
    evict,
    holders_of,
)
from pipeline.cache.known_space import KnownSpace
from pipeline.cache.lease import (
    BEAT_FILE,
    LEASES,
    MANIFESTS,
    RESERVED_FILE,
    HeldLease,
    Lease,
    held_leases,
)
from pipeline.cache.limits import Limits, read_limits

_TURN = ".turn"
_LOOK_AGAIN_S = 0.1
_ORDER_LASTS_S = 120.0
"""Time for which one order of eviction is used [s]."""

_TRIES = 3
"""Evictions that may free nothing, as where others had removed what they chose."""


@dataclass(frozen=True)
class ReservationPlan:
    """Plan of reserving space: the evictions that it takes, or the limit that refuses it."""

    fits: bool
    eviction: EvictionPlan | None = None
    """What is evicted for it; None where nothing must be."""
    why: str = ""
    """Which limit does not allow it, where it does not fit."""
    is_known: bool = True
    """Whether everybody who holds content is known to live."""
    holders: tuple[str, ...] = ()
    """What keeps content from going."""
    passed_on: tuple[StagedManifest, ...] = ()
    """Staged manifests that count for their other stagers alone from then on."""


class Reservation:
    """Reservation of cache space held by one lease. Its methods are safe to use from threads."""

    def __init__(self, cache: Path, lease: Lease) -> None:
        """Reserve nothing yet.

        Args:
            lease: Holds the reservation, which ends with it.
        """
        self._cache, self._lease = cache, lease
        self._lock = threading.RLock()
        self._watch = Watch()
        self._space, self._entries = KnownSpace(cache), KnownEntries()
        self._order: tuple[frozenset[tuple[str, float, str]], EvictionOrder] | None = None
        self._bytes = self._files = 0
        self._written = 0.0

    def extend(self, size: int, files: int) -> None:
        """Reserve more space, by evicting what was used least recently and is evictable.

        Where nothing is to come, a cache above its limits whose content may not go stays as it is.

        Args:
            size: More that is to come than was reserved before [bytes].
        """
        with self._lock, self._turn():
            self._reserve(size, files)
            try:
                self._share(size)
                self._make(size, files)
            except BaseException:
                self._reserve(-size, -files)
                raise

    def settle(self) -> None:
        """Wait for running evictions to end, which may not have seen this lease."""
        with self._lock, self._turn():
            pass

    def arrived(self, size: int, files: int) -> None:
        """Release what lies in the cache by now, or is not coming."""
        with self._lock:
            self._bytes, self._files = max(0, self._bytes - size), max(0, self._files - files)
            # Late is no harm: what came is counted twice until then.
            if time.monotonic() - self._written > 1.0 or not self._bytes:
                with suppress(StorageError):
                    self._write()

    def preview(self, size: int, files: int) -> ReservationPlan:
        """The plan that `extend` would carry out, the user's share included."""
        share = self._of_share(size, size)
        if share is not None and not share.fits:
            return share
        if share is None or share.eviction is None:
            plan = self._plan(size, files)
            return plan if plan.fits or size or files else ReservationPlan(True)
        plan = self._plan(size, files, share.eviction)
        if not plan.fits:
            return plan if size or files else share
        return replace(plan, eviction=_joined(share.eviction, plan.eviction))

    def evict(self, entries: Iterable[str]) -> int:
        """Remove entries that this lease needs no more; bytes that are free now.

        Those that a pin or another lease holds stay, but for leases that are windows. Manifests in
        ``.manifests`` that name the others go, the lease's own one included: a job that reads
        through a window reads the lease's ``own_manifest``.

        Args:
            entries: Paths below the cache.
        """
        paths = set(entries)
        with self._lock, self._turn():
            contents = CacheContents(self._cache, self._keeping(), paths, self._entries)
            plan = contents.plan(1 << 62, 1 << 62)
            return evict(self._cache, plan, self._held_by_others)[0]

    def evict_datasets(self, names: Collection[str]) -> tuple[int, int]:
        """Remove staged manifests and what no other one names; bytes and files that are free now.

        Raises:
            NotFound: There is none of one of these names.
            InUse: A running job or a staging uses one of them, or it is pinned; all stay.
        """
        with self._lock, self._turn():
            contents = CacheContents(self._cache, self._other_leases())
            manifests = [one for one in contents.manifests if one.name in names]
            if missing := {*names}.difference(one.name for one in manifests):
                raise NotFound("staged dataset", min(missing), "it is not in the cache")
            for one in manifests:
                used = [lease for lease in contents.leases if lease.manifest == one.name]
                if used or one.pinned:
                    why = f"it is pinned: framesift cache unpin {one.dataset}"
                    if used:
                        why = f"{used[0]}; wait until it ends, or cancel it"
                    raise InUse("staged dataset", one.dataset, why)
            return evict(self._cache, contents.alone(manifests), self._held_by_others)

    def trim(self) -> int:
        """Evict down to the soft limits what is free; bytes that are free now."""
        limits = read_limits(self._cache)
        if limits.soft_bytes is None and limits.soft_files is None:
            return 0
        with self._lock, self._turn():
            size, files = self._space.count()
            over_bytes, over_files = _over(size, limits.soft_bytes), _over(files, limits.soft_files)
            if not over_bytes and not over_files:
                return 0
            contents = CacheContents(self._cache, self._leases(), known=self._entries)
            return evict(self._cache, contents.plan(over_bytes, over_files), self._held)[0]

    def _share(self, size: int) -> None:
        """Keep what one user's datasets take within the user's share: the oldest of them go.

        One that others have staged, too, stays, and is theirs from now on.
        """
        plan, user = self._of_share(size, 0), self._lease.holder.user
        if plan is None:
            return
        if not plan.fits:
            raise CacheFull(
                f"cache {self._cache}: {plan.why}: wait for jobs to end, unpin a dataset "
                "(framesift cache unpin), or have an admin raise the limit (framesift cache limit "
                "--user)",
                str(self._cache),
                plan.holders,
            )
        for manifest in plan.passed_on:
            write_stagers(manifest.folder, manifest.stagers - {user})
        if plan.eviction is not None:
            evict(self._cache, plan.eviction, self._held)

    def _of_share(self, size: int, more: int) -> ReservationPlan | None:
        """The plan of keeping within the user's share; None where there is none.

        Args:
            size: To be fetched [bytes].
            more: What of it is not reserved yet [bytes].
        """
        user, limit = self._lease.holder.user, read_limits(self._cache).user_bytes
        if not user or limit is None:
            return None
        contents = CacheContents(self._cache, self._leases(), known=self._entries)
        own = [lease for lease in contents.leases if lease.holder.user == user]
        used = contents.of_user(user)
        coming = more + sum(lease.reserved_bytes for lease in own)
        over = contents.size(used.paths) + coming - limit
        going: list[StagedManifest] = []
        for manifest in used.free:
            if over <= 0:
                break
            going.append(manifest)
            over = contents.size(used.without(going)) + coming - limit
        if over > 0:
            mine = contents.size(used.paths) - contents.size(used.without(used.free))
            why = (
                f"limited to {_size(limit)} for the datasets of one user, but {_size(size)} are to "
                f"be fetched for {user}, who may evict no more than {_size(mine)}"
            )
            return ReservationPlan(False, None, why, holders=tuple(map(str, own)))
        alone = [manifest for manifest in going if manifest.stagers == {user}]
        passed_on = tuple(manifest for manifest in going if manifest.stagers != {user})
        return ReservationPlan(True, contents.alone(alone) if alone else None, passed_on=passed_on)

    def _make(self, size: int, files: int) -> None:
        in_vain = 0
        while in_vain < _TRIES:
            plan = self._plan(0, 0)
            if plan.fits and plan.eviction is None:
                return
            if plan.eviction is not None and plan.fits:
                evicted = evict(self._cache, plan.eviction, self._held)
                in_vain = 0 if any(evicted) else in_vain + 1
            elif not (size or files):
                return
            elif plan.is_known:
                break
            else:
                time.sleep(_LOOK_AGAIN_S)  # a dead host's lease ends soon
        raise self._full(plan, size, files)

    def _plan(self, size: int, files: int, evicted: EvictionPlan | None = None) -> ReservationPlan:
        """Content to evict so that everything that is reserved has room, and so much more.

        Args:
            size: More than is reserved [bytes].
            evicted: What counts as evicted already.
        """
        leases = self._leases()  # before the counting: what comes meanwhile counts twice, not never
        limits = read_limits(self._cache)
        reserved_bytes = size + sum(lease.reserved_bytes for lease in leases)
        reserved_files = files + sum(lease.reserved_files for lease in leases)
        if evicted is not None:
            reserved_bytes -= evicted.bytes
            reserved_files -= evicted.files
        lack_bytes, lack_files, why = self._lacks(limits, reserved_bytes, reserved_files)
        if not lack_bytes and not lack_files:
            return ReservationPlan(True)
        marks = holders_of(self._cache, leases)
        if evicted is None and (known := self._from_order(marks, lack_bytes, lack_files)):
            return ReservationPlan(True, known)
        contents = CacheContents(self._cache, leases, known=self._entries)
        paths = frozenset[str]() if evicted is None else {one.path for one in evicted.items}
        order = contents.order(lambda one: one.path not in paths)
        plan = order.take(lack_bytes, lack_files)
        if plan.is_enough:
            self._order = (marks, order) if evicted is None else None
            return ReservationPlan(True, plan)
        own = {str(lease) for lease in leases if lease.folder == self._lease.folder}
        itself = f"{self._lease.holder.dataset} itself"
        holders = [
            f"{itself if one.what in own else one.what} ({_size(one.bytes)})"
            for one in contents.holdings()
            if one.bytes
        ]
        other_leases = [lease for lease in leases if lease.folder != self._lease.folder]
        holders += [
            f"{lease}, {_size(lease.reserved_bytes)} to come"
            for lease in other_leases
            if lease.reserved_bytes
        ]
        is_known = all(lease.is_known for lease in other_leases)
        return ReservationPlan(False, plan, why, is_known, tuple(holders))

    def _from_order(
        self, holders: frozenset[tuple[str, float, str]], size: int, files: int
    ) -> EvictionPlan | None:
        """The content to evict by the order that the last eviction left; None where it is unknown.

        To make an order of a million entries takes ten seconds of CPU, and a staging beside a job
        makes room for 128 frames at a time.
        """
        if self._order is None:
            return None
        known, order = self._order
        if not holders <= known or time.monotonic() - order.made_s > _ORDER_LASTS_S:
            self._order = None
            return None
        plan = order.take(size, files)
        return plan if plan.is_enough else None

    def _lacks(self, limits: Limits, size: int, files: int) -> tuple[int, int, str]:
        """Bytes and files that are too many, and the limit that says so."""
        # What has come of files that are still coming takes space and is reserved, too.
        free = parts_bytes(self._cache) + free_bytes(self._cache)
        lack_bytes, lack_files = max(0, size + limits.free_bytes - free), 0
        why = f"{_size(free)} free" if lack_bytes else ""
        if lack_bytes and limits.free_bytes:
            why += f", of which {_size(limits.free_bytes)} must stay free"
        if limits.hard_bytes is not None or limits.hard_files is not None:
            there_bytes, there_files = self._space.count()
            over = _over(there_bytes + size, limits.hard_bytes)
            if over > lack_bytes:
                lack_bytes, why = over, f"limited to {_size(limits.hard_bytes or 0)}"
            lack_files = _over(there_files + files, limits.hard_files)
            if lack_files:
                why = f"limited to {limits.hard_files:,} files"
        return lack_bytes, lack_files, why

    def _full(self, plan: ReservationPlan, size: int, files: int) -> CacheFull:
        demand = f"{_size(size)} in {files:,} files are to be fetched"
        holders = "; ".join(plan.holders)
        advice = (
            f"what may not go: {holders}; wait for jobs to end, unpin a dataset (framesift cache "
            "unpin), raise the limit (framesift cache limit), or give another cache with --cache"
            if holders
            else "free some space, raise the limit (framesift cache limit), or give another cache "
            "with --cache"
        )
        message = f"cache {self._cache}: {plan.why}, but {demand}; {advice}"
        return CacheFull(message, str(self._cache), plan.holders)

    def _reserve(self, size: int, files: int) -> None:
        self._bytes, self._files = self._bytes + size, self._files + files
        self._write()

    def _write(self) -> None:
        self._written = time.monotonic()
        record = json.dumps({"bytes": self._bytes, "files": self._files})
        atomic_write(self._lease.folder / RESERVED_FILE, record, fsync=False, clear=False)

    def _leases(self) -> list[HeldLease]:
        return held_leases(self._cache, self._watch)

    def _other_leases(self) -> list[HeldLease]:
        return [lease for lease in self._leases() if lease.folder != self._lease.folder]

    def _keeping(self) -> list[HeldLease]:
        """Others whose holders do not fetch again what goes."""
        return [lease for lease in self._other_leases() if not lease.is_window]

    def _held(self) -> Collection[str]:
        return {lease.manifest for lease in self._leases()} | _pinned(self._cache)

    def _held_by_others(self) -> Collection[str]:
        return {lease.manifest for lease in self._keeping()} | _pinned(self._cache)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Nobody else makes room meanwhile, as long as this process lives and moves.

        Raises:
            StorageError: The cache cannot be written.
        """
        link = self._cache / LEASES / _TURN
        name = self._lease.folder.name
        try:
            while True:
                try:
                    link.symlink_to(name)
                    break
                except FileExistsError:
                    self._free_turn(link)
        except OSError as error:
            raise StorageError(f"{link}: {error.strerror}", str(link)) from error
        try:
            yield
        finally:
            with suppress(OSError):
                if link.readlink().name == name:
                    link.unlink()

    def _free_turn(self, link: Path) -> None:
        with suppress(FileNotFoundError):
            holder = link.readlink().name
            if self._watch.is_dead(self._cache / LEASES / holder / BEAT_FILE):
                link.unlink()
            else:
                time.sleep(_LOOK_AGAIN_S)


def _pinned(cache: Path) -> set[str]:
    return {file.parent.name for file in (cache / MANIFESTS).glob(f"*/{PINNED_FILE}")}


def _joined(first: EvictionPlan, other: EvictionPlan | None) -> EvictionPlan:
    """Both evictions, which have no entry in common."""
    if other is None:
        return first
    manifests = {one.name: one for one in (*first.manifests, *other.manifests)}
    return EvictionPlan(
        tuple(manifests.values()),
        (*first.items, *other.items),
        first.bytes + other.bytes,
        first.files + other.files,
        other.is_enough,
    )


def _over(number: int, limit: int | None) -> int:
    return 0 if limit is None else max(0, number - limit)


def _size(number: int) -> str:
    return f"{number / 1e9:.2f} GB" if number >= 1e8 else f"{number / 1e6:.2f} MB"
