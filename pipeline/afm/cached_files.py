"""Cached files of an AFM fileset: their blocks tell, wherever the fileset is mounted.

A file that is not cached has size and times of home's, and no block. Data of small files may lie
in the inode, and take none either: of these nothing is told.

Source: https://www.ibm.com/docs/en/storage-scale/5.2.0?topic=reference-mmafmlocal-command
"""

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from catalog.storage.file_version import fits, version_of, version_text
from ingest.sources.local_folder import is_stub
from pipeline.afm import mmafmcosctl, mmafmctl
from pipeline.manifest import FrameFile

_Found = TypeVar("_Found")

_AT_ONCE, _EACH = 16, 512
"""Threads that look, and files that each looks at in one go."""


def without_blocks(files: Iterable[FrameFile]) -> list[FrameFile]:
    """The files that may have to be fetched: they take no block, or cannot be read."""

    def looked(some: Sequence[FrameFile]) -> list[FrameFile]:
        uncached = []
        for file in some:
            try:
                status = os.stat(file.path)  # noqa: PTH116 (a path object for each of a million)
            except OSError:
                uncached.append(file)
                continue
            if status.st_blocks == 0 and status.st_size:
                uncached.append(file)
        return uncached

    return _by_many(looked, files)


def faults(files: Iterable[FrameFile]) -> list[tuple[FrameFile, str]]:
    """The files that differ from the dataset's, or are not cached; and why."""

    def looked(some: Sequence[FrameFile]) -> list[tuple[FrameFile, str]]:
        return [(file, fault) for file in some if (fault := _fault(file))]

    return _by_many(looked, files)


def _fault(file: FrameFile) -> str:
    try:
        status = os.stat(file.path)  # noqa: PTH116 (as above)
    except OSError as error:
        return f"{error.strerror} at its mount"
    if not fits(status, file.size, file.version):
        return (
            "has changed since the dataset was made: it has "
            f"{version_text(status.st_size, version_of(status))}; the dataset's has "
            f"{version_text(file.size, file.version)}"
        )
    return "is not cached" if is_stub(status) else ""


def failed_list(folder: str) -> set[str]:
    """The paths that the last prefetch of the fileset around a folder could not have.

    Empty where there is no such list, or it is root's alone.
    """
    for above in (Path(folder), *Path(folder).parents):
        with suppress(OSError):
            if (above / ".afm").is_dir():
                return _lines(above / mmafmctl.FAILED_LIST) | _lines(
                    above / mmafmcosctl.FAILED_LIST
                )
    return set()


def _lines(path: Path) -> set[str]:
    try:
        text = path.read_text(errors="surrogateescape")
    except OSError:
        return set()
    return {line.strip() for line in text.splitlines() if line.strip()}


def _by_many(
    look: Callable[[Sequence[FrameFile]], list[_Found]], files: Iterable[FrameFile]
) -> list[_Found]:
    """Results of many threads: a look at a network's file is waiting."""
    listed = list(files)
    parts = [listed[at : at + _EACH] for at in range(0, len(listed), _EACH)]
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="afm") as pool:
        return [result for some in pool.map(look, parts) for result in some]
