"""Space in a cache by source, measured now and then: a walk over a million files takes seconds.

CACHE/.statistics/space   what was measured last, for all processes that ask; its time is when
"""

import json
import os
import time
from contextlib import suppress
from itertools import chain
from pathlib import Path

from catalog.errors import BadFile, StorageError
from catalog.storage.atomic_write import atomic_path
from catalog.storage.bounded_file import parsed_json, read_bounded
from pipeline.cache.contents import cached_entries, cached_forms
from pipeline.cache.statistics import FOLDER

MEASURED_EVERY_S = 15.0
_REST = 20.0
"""Times that a measurement took, until the next one."""
_MOST_BYTES = 1 << 24

Space = dict[str, tuple[int, int]]
"""Bytes and files of each source's folder, and of the folder of prepared forms."""


def measured_space(cache: Path) -> Space:
    """Space in a cache, at most `MEASURED_EVERY_S` old or 20 times what a measurement takes."""
    file = cache / FOLDER / "space"
    known = _known(file)
    if known is not None:
        return known
    began, space = time.monotonic(), Space()
    for item in chain(cached_forms(cache), cached_entries(cache)):
        folder = item.path.partition("/")[0]
        size, files = space.get(folder, (0, 0))
        space[folder] = size + item.bytes, files + item.files
    if space:
        _store(file, space, time.monotonic() - began)
    return space


def _known(file: Path) -> Space | None:
    try:
        record = parsed_json(read_bounded(file, _MOST_BYTES))
        lasts_s = max(MEASURED_EVERY_S, _REST * float(record["took_s"]))
        if not 0 <= time.time() - file.stat().st_mtime < lasts_s:
            return None
        return {str(name): (int(size), int(files)) for name, (size, files) in record["of"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, BadFile):
        return None


def _store(file: Path, space: Space, took_s: float) -> None:
    now = time.time()
    with suppress(OSError, StorageError):  # it is measured again
        file.parent.mkdir(exist_ok=True)
        with atomic_path(file, fsync=False) as temporary_path:
            temporary_path.write_text(json.dumps({"took_s": took_s, "of": space}))
            os.utime(temporary_path, (now, now))  # by this host's clock, and not the file server's
