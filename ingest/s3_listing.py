"""List an S3 prefix in the order of its keys: folder by folder, several folders at once."""

import queue
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice

import obstore
from obstore.exceptions import BaseError, InvalidPathError

from ingest.s3_bucket import ObjectEntry, S3Bucket, entry_of_meta, obstore_can_name

SHARDS_AT_ONCE = 8
"""Folders listed at the same time."""

_PAGES_AHEAD = 8
_PAGE_KEYS = 1000
_ENOUGH_SHARDS = 16
_DEEPEST = 3

Page = list[ObjectEntry]


def list_objects(bucket: S3Bucket, prefix: str) -> Iterator[ObjectEntry]:
    """Every object below a prefix in byte order of the key; folder markers ("a/") are left out.

    At most 8 folders are listed ahead, 8 pages of 1,000 keys each, about 32 MB.

    Args:
        bucket: Where.
        prefix: Empty, or ends in a slash.

    Raises:
        StorageError: The server refuses or cannot be reached.
    """
    stop = threading.Event()
    todo = deque(_plan(bucket, prefix))
    ahead: deque[ObjectEntry | _Shard] = deque()
    try:
        while todo or ahead:
            running = sum(isinstance(item, _Shard) for item in ahead)
            while todo and running < SHARDS_AT_ONCE and len(ahead) < _PAGE_KEYS:
                item = todo.popleft()
                if isinstance(item, str):
                    ahead.append(_Shard(bucket, item, stop))
                    running += 1
                else:
                    ahead.append(item)
            first = ahead.popleft()
            if isinstance(first, _Shard):
                yield from first
            else:
                yield first
    finally:
        stop.set()


def _plan(bucket: S3Bucket, prefix: str) -> list[ObjectEntry | str]:
    """The objects and folders that together are the prefix, in order of their keys."""
    plan: list[ObjectEntry | str] = [prefix]
    for _ in range(_DEEPEST):
        shards = [item for item in plan if isinstance(item, str)]
        if len(shards) >= _ENOUGH_SHARDS:
            break
        opened: list[ObjectEntry | str] = []
        for item in plan:
            opened += _open(bucket, item) if isinstance(item, str) else [item]
        if len(opened) == len(plan):
            break
        plan = opened
    return plan


def _open(bucket: S3Bucket, prefix: str) -> list[ObjectEntry | str]:
    objects, folders, more = bucket.page(prefix, delimiter="/", keys=_PAGE_KEYS)
    if more or not folders:
        # Too many to hold, or nothing to divide: it is listed in one stream.
        return [prefix]
    mixed: list[ObjectEntry | str] = [item for item in objects if not item.key.endswith("/")]
    mixed += folders
    return sorted(mixed, key=lambda item: item if isinstance(item, str) else item.key)


class _Shard:
    """One prefix, listed by a thread of its own that waits when it is some pages ahead."""

    def __init__(self, bucket: S3Bucket, prefix: str, stop: threading.Event) -> None:
        self._bucket, self._prefix, self._stop = bucket, prefix, stop
        self._pages: queue.Queue[Page | BaseException | None] = queue.Queue(_PAGES_AHEAD)
        threading.Thread(target=self._fill, name="list-s3", daemon=True).start()

    def _fill(self) -> None:
        try:
            for page in _pages(self._bucket, self._prefix):
                if not self._put(page):
                    return
            self._put(None)
        except BaseException as error:  # raised again where the pages are used
            self._put(error)

    def _put(self, page: Page | BaseException | None) -> bool:
        while not self._stop.is_set():
            try:
                self._pages.put(page, timeout=0.2)
            except queue.Full:
                continue
            return True
        return False

    def __iter__(self) -> Iterator[ObjectEntry]:
        while (page := self._pages.get()) is not None:
            if isinstance(page, BaseException):
                raise page
            yield from page


def _pages(bucket: S3Bucket, prefix: str) -> Iterator[Page]:
    """The pages of one prefix, through obstore; through boto3 where a key is beyond obstore."""
    last = ""
    fast = obstore_can_name(prefix[:-1]) if prefix else not _has_slash_keys(bucket)
    while True:
        if fast and (not last or obstore_can_name(last)):
            for page, odd in _fast_pages(bucket, prefix, last):
                last = page[-1].key if page else last
                yield page
                if odd:
                    break
            else:
                return
        objects, _, more = bucket.page(prefix, last, keys=_PAGE_KEYS)
        last = objects[-1].key if objects else last
        yield [found for found in objects if not found.key.endswith("/")]
        if not more:
            return


def _has_slash_keys(bucket: S3Bucket) -> bool:
    """Whether keys begin with a slash, which obstore would drop."""
    return bool(bucket.page("/", keys=1)[0])


def _fast_pages(bucket: S3Bucket, prefix: str, last: str) -> Iterator[tuple[Page, bool]]:
    """Pages after ``last``; the flag ends them where obstore cannot go on."""
    stream = obstore.list(
        bucket.store, prefix[:-1] or None, offset=last or None, chunk_size=_PAGE_KEYS
    )
    chunks = iter(stream)
    while True:
        try:
            found = list(islice(chunks, 1))
        except InvalidPathError:
            yield [], True
            return
        except (BaseError, OSError) as error:
            raise bucket.trouble(error, prefix) from error
        if not found:
            return
        # A folder's own marker, "a/" below "a/", reads "a": not below it any more.
        entries = [entry_of_meta(meta) for meta in found[0] if meta["path"].startswith(prefix)]
        page, odd = _checked(bucket, entries, last)
        last = page[-1].key if page else last
        yield page, odd
        if odd:
            return


def _checked(bucket: S3Bucket, found: Sequence[ObjectEntry], last: str) -> tuple[Page, bool]:
    """The objects without folder markers, up to the first whose key obstore has changed.

    obstore drops a key's last slash: "a/" reads "a", has no bytes, and no object of that name is
    there.
    """
    page: Page = []
    for entry in found:
        if entry.size == 0 and _is_marker(bucket, entry.key):
            continue
        if entry.key <= last:
            return page, True
        page.append(entry)
        last = entry.key
    return page, False


def _is_marker(bucket: S3Bucket, key: str) -> bool:
    try:
        obstore.head(bucket.store, key)
    except FileNotFoundError:
        return True
    except (BaseError, OSError) as error:
        raise bucket.trouble(error, key) from error
    return False
