"""Compaction: small files merged, old snapshots expired, files that nobody needs deleted.

Each step is one commit under the write lock, so that others write in between and a kill leaves the
state of the last step. Files go only when they have been out of use for a while: a query that
began before goes on.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from catalog.lake.connection import one_thread
from catalog.lake.metadata.own_tables import (
    Commit,
    commits,
    delete_old_files,
    expire,
    merge_small,
    orphans,
    rewrite_deleted,
    tables,
)
from catalog.store import CatalogStore

AUTHOR = "compact"

IN_USE = timedelta(hours=1)
"""Longest time of a query, and from an answer to the dataset that is made of it."""

_LONGEST_PAUSE = timedelta(days=1)

_FILES_PER_COMMIT = 2
"""Files written in one commit, of at most 512 MB each: seconds of the write lock."""

_DELETED_SHARE = 0.2


@dataclass
class Compaction:
    """Counts of a compaction."""

    expired: tuple[int, ...] = ()
    """Numbers of the snapshots that are no longer there."""
    rewritten: int = 0
    """Files written again because much of them was deleted."""
    merged: int = 0
    """Small files merged into larger ones."""
    deleted: int = 0
    """Files deleted that no snapshot needs."""
    orphans: int = 0
    """Files deleted that belonged to no commit, left by killed writers."""


def compact(
    store: CatalogStore,
    needed: Callable[[], Collection[int]],
    *,
    keep: timedelta | None,
    in_use: timedelta = IN_USE,
    progress: Callable[[str], None] = lambda _step: None,
) -> Compaction:
    """Bring the catalog's files in order while others read and write.

    Args:
        needed: Gives the snapshots that must stay, such as those that datasets name; asked once,
            under the write lock.
        keep: Every state of the catalog within this time can be asked afterwards; every state that
            there is when None.
        in_use: What was the newest state within this time may be in use: nothing of it is taken.
            Zero deletes at once, and queries under way may have to be asked again.
        progress: Told what is about to be done.

    Raises:
        CatalogBusy: Another process held the write lock; the steps done so far stay.
        StorageError: The disk is full; the steps done so far stay.
    """
    done = Compaction()
    if keep is not None:
        progress("expire snapshots")
        with store.writing("snapshots expired", AUTHOR) as connection:
            numbers = outdated(commits(connection), needed(), max(keep, in_use))
            if numbers:
                expire(connection, numbers)
        done.expired = numbers
    with store.reading() as cursor:
        names = tables(cursor)
    for table in names:
        progress(f"merge files of {table}")
        with store.writing(f"deleted rows of {table} taken out", AUTHOR) as connection:
            if table in tables(connection):  # its family may have been dropped meanwhile
                with one_thread(connection):
                    done.rewritten += rewrite_deleted(connection, table, _DELETED_SHARE)
        while merged := _merge(store, table):
            done.merged += merged
    progress("delete files")
    with store.writing("files deleted", AUTHOR) as connection:
        done.deleted = delete_old_files(connection, in_use or None)
    with store.writing("orphans deleted", AUTHOR) as connection:
        strays = orphans(connection, store.location)
        store.location.delete(strays)
        done.orphans = len(strays)
    return done


def outdated(
    snapshots: Sequence[Commit],
    needed: Collection[int],
    keep: timedelta,
    at: datetime | None = None,
) -> tuple[int, ...]:
    """Numbers of the snapshots to expire, oldest first.

    Time without a commit counts as a day at most: where the clock jumps to another year, between
    two commits or after the last, what was made an hour ago is an hour and a day old.

    Args:
        snapshots: The snapshots, newest first.
        needed: Numbers that must stay.
        keep: A snapshot stays while it was the newest one within this time.
        at: The time now, naive UTC.
    """
    later, age, numbers = at or datetime.now(UTC).replace(tzinfo=None), timedelta(0), []
    for newer, commit in pairwise(snapshots):
        # A snapshot was the newest until the next one came.
        age += min(max(later - newer.time, timedelta(0)), _LONGEST_PAUSE)
        later = newer.time
        if age > keep and commit.number not in needed:
            numbers.append(commit.number)
    return tuple(reversed(numbers))


def _merge(store: CatalogStore, table: str) -> int:
    with store.writing(f"files of {table} merged", AUTHOR) as connection:
        if table not in tables(connection):
            return 0
        with one_thread(connection):
            return merge_small(connection, table, _FILES_PER_COMMIT)
