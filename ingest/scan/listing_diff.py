"""Compares a source's listing with the catalog: new, changed, removed; two sorted streams merged.

Neither the listing nor the catalog's files are ever held whole, so a source of millions of files
costs no more memory than a small one, and the first new file is known at once.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from catalog.errors import StorageError
from catalog.values import ARCHIVED, File, KnownFile
from ingest.layouts.layout import FrameId, FrameName

Change = Literal["added", "changed", "restated", "unchanged", "removed", "unknown"]


@dataclass(frozen=True, slots=True)
class ScannedFile:
    """One file of the listing or of the catalog, compared with the other."""

    file: File
    """As it is listed; what the catalog knows of it where it was removed, or its folder could not
    be listed.
    """
    change: Change
    """What has become of it since the last scan: "restated" where only its state or tier is
    another, "unknown" where its folder could not be listed.
    """
    name: FrameName | None
    """What its name says; None where it is no frame's file."""
    carries_tags: bool = False
    """See KnownFile."""
    was_archived: bool = False
    """It lay on tape, or in an archive, at the last scan."""

    @property
    def key(self) -> str:
        """The file's key."""
        return self.file.key

    @property
    def frame(self) -> FrameId | None:
        """The frame it belongs to."""
        return None if self.name is None else self.name.frame

    @property
    def is_fresh(self) -> bool:
        """True where it is new or has changed."""
        return self.change in ("added", "changed")


def compare(
    listed: Iterable[File],
    known: Iterable[KnownFile],
    parse: Callable[[str], FrameName | None] = lambda _: None,
    unlisted: Callable[[str], bool] = lambda _: False,
) -> Iterator[ScannedFile]:
    """Every key of either stream once, in order of the keys.

    A file has changed when its size, or its etag, or, where there is no etag, its time of last
    change differs.

    Args:
        listed: The listing, in byte order of the keys.
        known: The catalog's files of the same source, in byte order of the keys.
        parse: What a file's name says: Layout.parse; nothing where nobody asks.
        unlisted: Whether a file lies where nothing could be listed; asked once the listing is past
            it.

    Raises:
        StorageError: The listing is not in order; comparing it would lose files.
    """
    rest = iter(known)
    old = next(rest, None)
    last = None
    for file in listed:
        if last is not None and file.key <= last:
            raise StorageError(
                f"the source's listing is not in order: '{file.key}' came after '{last}'"
            )
        last = file.key
        while old is not None and old.key < file.key:
            yield _absent(old, parse, unlisted)
            old = next(rest, None)
        if old is not None and old.key == file.key:
            change: Change = "changed"
            if _is_same(file, old):
                is_same_state = (file.state, file.tier) == (old.state, old.tier)
                change = "unchanged" if is_same_state else "restated"
            yield ScannedFile(
                file, change, parse(file.key), old.carries_tags, old.state == ARCHIVED
            )
            old = next(rest, None)
        else:
            yield ScannedFile(file, "added", parse(file.key))
    while old is not None:
        yield _absent(old, parse, unlisted)
        old = next(rest, None)


def _absent(
    old: KnownFile, parse: Callable[[str], FrameName | None], unlisted: Callable[[str], bool]
) -> ScannedFile:
    change: Change = "unknown" if unlisted(old.key) else "removed"
    file = File(old.key, old.size, old.mtime, etag=old.etag)
    return ScannedFile(file, change, parse(old.key), old.carries_tags)


def _is_same(file: File, old: KnownFile) -> bool:
    if file.size != old.size:
        return False
    return file.etag == old.etag if file.etag else file.mtime == old.mtime
