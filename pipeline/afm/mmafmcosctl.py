"""The command mmafmcosctl of IBM Spectrum Scale: objects of a cloud object storage, by lists.

For filesets without --object-fs: they show nothing of the bucket before it is downloaded, or, with
the metadata, no content.

Source: https://www.ibm.com/docs/en/storage-scale/5.2.1?topic=reference-mmafmcosctl-command and
https://www.ibm.com/docs/en/storage-scale/5.2.3?topic=storage-downloading-objects
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from pipeline.afm.mmafmctl import PrefetchStatistics, Queued, read_statistics, report_queued
from pipeline.afm.target import Fileset
from pipeline.staging.storage_commands.command import running
from pipeline.staging.storage_commands.list_file import check_plain

FAILED_LIST = ".afm/.mmafmcosctl_failedQueuingList"
"""File below a fileset in which a download lists the objects that it could not have."""


class Mmafmcosctl:
    """Runs mmafmcosctl through a prefix."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = tuple(command)

    def download(
        self,
        fileset: Fileset,
        folder: str,
        list_file: Path,
        *,
        threads: int,
        queued: Callable[[Queued], None],
    ) -> None:
        """Queue the objects of a list to be downloaded; AFM goes on with them afterwards.

        Args:
            folder: In the fileset, above all of them.
            list_file: A path of a file a line.
        """
        check_plain(folder, f"mount {folder}", "mount the fileset at another folder")
        arguments = (
            folder, "download", "--object-list", str(list_file), "--threads", str(threads),
            "--enable-failed-object-list",
        )  # fmt: skip
        with self._running(fileset, *arguments) as lines:
            report_queued(lines, queued)

    def statistics(self, fileset: Fileset) -> PrefetchStatistics:
        """State of the last download into a fileset."""
        with self._running(fileset, "--download-stats") as lines:
            printed = list(lines)
        return read_statistics(fileset, printed)

    def evict(self, fileset: Fileset, folder: str, list_file: Path) -> None:
        """Release the blocks of the files of a list; the object storage has their content."""
        check_plain(folder, f"mount {folder}", "mount the fileset at another folder")
        with self._running(fileset, folder, "evict", "--object-list", str(list_file)) as lines:
            for _ in lines:
                pass

    def _running(self, fileset: Fileset, *arguments: str) -> AbstractContextManager[Iterator[str]]:
        argv = [*self._command, fileset.device, fileset.name, *arguments]
        return running(argv, "FRAMESIFT_AFM_COS_COMMAND")
