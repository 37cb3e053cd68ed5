"""The command mmafmctl of IBM Spectrum Scale: prefetching and evicting listed files.

It runs on a node of the storage cluster, as root; a prefix such as `ssh root@node` leads there.

Source: https://www.ibm.com/docs/en/storage-scale/5.2.0?topic=reference-mmafmctl-command and
https://www.ibm.com/docs/en/storage-scale/5.2.0?topic=features-prefetch
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from catalog.errors import StorageError
from pipeline.afm.target import Fileset
from pipeline.staging.storage_commands.command import running

FAILED_LIST = ".afm/.prefetchedfailed.list"
"""File below a fileset in which a prefetch lists the files that it could not fetch."""

MOST_THREADS = 255
"""That a prefetch may have."""

# Queued, (Total), Failed, TotalData (approx in Bytes)
_QUEUED = re.compile(r"\s*(\d+)\s+\(\s*(\d+)\s*\)\s+(\d+)\s+(\d+)\s*")
_COLUMN = re.compile(r"Async\s+Read\s*\(([^)]*)\)")


@dataclass(frozen=True, slots=True)
class PrefetchOptions:
    """Options of prefetches that a site needs."""

    gateway: str = ""
    """Node that they run on: "local", "all" or its name; AFM's choice where empty."""
    force: bool = False
    """Fetch whatever AFM's own restrictions are."""


@dataclass(frozen=True, slots=True)
class Queued:
    """Files that a prefetch has queued so far."""

    queued: int
    total: int
    failed: int
    bytes: int
    """Of the queued files, about [bytes]."""


@dataclass(frozen=True, slots=True)
class PrefetchStatistics:
    """State of the last prefetch of a fileset."""

    pending: int
    """Files that are queued and not there yet."""
    failed: int
    cached: int
    """Files that were there before."""
    total: int
    bytes: int
    """Fetched so far [bytes]."""


_NAMES = {
    "pending": "pending",
    "failed": "failed",
    "already cached": "cached",
    "total": "total",
    "data in bytes": "bytes",
}


class Mmafmctl:
    """Runs mmafmctl through a prefix."""

    def __init__(
        self,
        command: Sequence[str],
        options: PrefetchOptions = PrefetchOptions(),
    ) -> None:
        self._command, self._options = tuple(command), options

    def check(self, fileset: Fileset) -> None:
        """Ask for the state of a fileset, which only one that is there has."""
        device = fileset.device
        advice = f"expected an AFM fileset: mmlsfileset {device} --afm -L lists those of {device}"
        with self._running([device, "getstate", "-j", fileset.name], advice) as lines:
            for _ in lines:
                pass

    def prefetch(
        self,
        fileset: Fileset,
        list_file: Path,
        *,
        threads: int,
        is_escaped: bool,
        queued: Callable[[Queued], None],
    ) -> None:
        """Queue the files of a list to be fetched; AFM goes on with them afterwards.

        Args:
            list_file: A path of a file a line.
            is_escaped: Whether the list is escaped as policies do it.
        """
        arguments = [
            fileset.device, "prefetch", "-j", fileset.name, "--enable-failed-file-list",
            "--list-file", str(list_file), *(["--policy"] if is_escaped else []),
            *(["--force"] if self._options.force else []),
            *(["--gateway", self._options.gateway] if self._options.gateway else []),
            "--prefetch-threads", str(min(threads, MOST_THREADS)),
        ]  # fmt: skip
        with self._running(arguments) as lines:
            report_queued(lines, queued)

    def statistics(self, fileset: Fileset) -> PrefetchStatistics:
        """State of the last prefetch of a fileset."""
        with self._running([fileset.device, "prefetch", "-j", fileset.name]) as lines:
            printed = list(lines)
        return read_statistics(fileset, printed)

    def evict(self, fileset: Fileset, list_file: Path) -> None:
        """Release the blocks of the files of a list; home has their content."""
        arguments = [fileset.device, "evict", "-j", fileset.name, "--list-file", str(list_file)]
        with self._running(arguments) as lines:
            for _ in lines:
                pass

    def _running(
        self, arguments: Sequence[str], advice: str = ""
    ) -> AbstractContextManager[Iterator[str]]:
        return running([*self._command, *arguments], "FRAMESIFT_AFM_COMMAND", advice)


def report_queued(lines: Iterator[str], queued: Callable[[Queued], None]) -> None:
    """Report the progress of the queueing, as a command prints it."""
    for line in lines:
        if match := _QUEUED.fullmatch(line):
            queued(Queued(*(int(number) for number in match.groups())))


def read_statistics(fileset: Fileset, printed: Sequence[str]) -> PrefetchStatistics:
    """The statistics in what the command prints: a heading, and a line for the fileset.

    Columns are told by their headings: releases have added some.
    """
    columns: list[str] = []
    for line in printed:
        columns = [name.lower() for name in _COLUMN.findall(line)] or columns
        cells = line.split()
        if columns and cells and cells[0] == fileset.name:
            # A heading without parentheses stands for the fileset's name alone.
            numbers = dict(zip(columns, cells[1:], strict=False))
            try:
                return PrefetchStatistics(
                    **{field: int(numbers[column]) for column, field in _NAMES.items()}
                )
            except (KeyError, ValueError):
                break
    raise StorageError(
        f"{fileset}: AFM printed no statistics of a prefetch: {' '.join(printed)[:300]}",
        str(fileset),
    )
