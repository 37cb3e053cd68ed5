"""List an S3 prefix in the order of its keys: folder by folder, several folders at once."""

import queue
import threading
from collections import deque
from collections.abc import Iterator

from ingest.sources.s3.s3_bucket import S3Bucket
from ingest.sources.s3.s3_page import ObjectEntry

SHARDS_AT_ONCE = 8
"""Folders listed at the same time."""

_PAGES_AHEAD = 8
_PAGE_KEYS = 1000
_ENOUGH_SHARDS = 16
_DEEPEST = 3


def list_objects(bucket: S3Bucket, prefix: str) -> Iterator[ObjectEntry]:
    """Every object below a prefix in byte order of the key; folder markers ("a/") are left out.

    At most 8 folders are listed ahead, 8 pages of 1,000 keys each, about 32 MB.

    Args:
        prefix: Empty, or ends in a slash.
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
        self._pages: queue.Queue[list[ObjectEntry] | BaseException | None] = queue.Queue(
            _PAGES_AHEAD
        )
        threading.Thread(target=self._fill, name="list-s3", daemon=True).start()

    def _fill(self) -> None:
        try:
            for page in _pages(self._bucket, self._prefix):
                if not self._put(page):
                    return
            self._put(None)
        except BaseException as error:  # raised again where the pages are used
            self._put(error)

    def _put(self, page: list[ObjectEntry] | BaseException | None) -> bool:
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


def _pages(bucket: S3Bucket, prefix: str) -> Iterator[list[ObjectEntry]]:
    """The pages of one prefix, without folder markers."""
    last, more = "", True
    while more:
        objects, _, more = bucket.page(prefix, last, keys=_PAGE_KEYS)
        last = objects[-1].key if objects else last
        yield [entry for entry in objects if not entry.key.endswith("/")]
