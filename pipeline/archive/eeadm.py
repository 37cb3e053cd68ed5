"""The command `eeadm` of IBM Spectrum Archive: files from tape and back to it, by lists.

It runs on a node of the archive; settings have the commands and what leads to them.

Source: https://www.ibm.com/docs/en/storage-archive-ee/1.3.5?topic=commands-eeadm-recall and
https://www.ibm.com/docs/en/storage-archive-ee/1.3.5?topic=tape-managing-file-migration; lists of
plain paths are what the proof of concept handed to both.
"""

from collections.abc import Sequence
from pathlib import Path

from pipeline.staging.storage_commands.command import running
from pipeline.staging.storage_commands.list_file import list_file

_LIST = "{list}"


def recall(command: Sequence[str], lists: Path, paths: Sequence[str]) -> None:
    """Recall files from tape by one list; the command ends when they are on disk.

    Args:
        lists: Folder of list files, which this machine and the archive's node have.
        paths: The files, as both have them; without line breaks.
    """
    _run(command, lists, paths, "FRAMESIFT_RECALL_COMMAND")


def migrate(command: Sequence[str], lists: Path, paths: Sequence[str]) -> None:
    """Migrate files to tape by one list; the command ends when they are there.

    Args:
        command: `eeadm migrate` with its pool, and what leads to it; "{list}" stands for the list,
            which comes last where it does not.
        lists: Folder of list files, which this machine and the archive's node have.
        paths: The files, as both have them; without line breaks.
    """
    _run(command, lists, paths, "FRAMESIFT_MIGRATE_COMMAND")


def _run(command: Sequence[str], lists: Path, paths: Sequence[str], setting: str) -> None:
    is_named = any(_LIST in word for word in command)
    with list_file(lists, paths) as listed:
        words = [word.replace(_LIST, str(listed)) for word in command]
        with running(words if is_named else [*words, str(listed)], setting) as lines:
            for _ in lines:
                pass
