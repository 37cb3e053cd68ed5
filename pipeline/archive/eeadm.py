"""The command `eeadm recall` of IBM Spectrum Archive: files from tape, those of one tape together.

It runs on a node of the archive; `FRAMESIFT_RECALL_COMMAND` is the command and what leads to it.

Source: https://www.ibm.com/docs/en/storage-archive-ee/1.3.5?topic=commands-eeadm-recall
"""

from collections.abc import Sequence
from pathlib import Path

from pipeline.staging.storage_commands.command import running
from pipeline.staging.storage_commands.list_file import list_file

SETTING = "FRAMESIFT_RECALL_COMMAND"


def recall(command: Sequence[str], lists: Path, paths: Sequence[str]) -> None:
    """Recall files from tape by one list; the command ends when they are on disk.

    Args:
        command: `eeadm recall`, and what leads to it.
        lists: Folder of list files, which this machine and the archive's node have.
        paths: The files, as both have them; without line breaks.

    Raises:
        StorageError: The command is not there or fails.
    """
    with list_file(lists, paths) as listed, running([*command, str(listed)], SETTING) as lines:
        for _ in lines:
            pass
