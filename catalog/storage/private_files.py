"""Files and folders that nobody else of the machine may read: the records hold hashes and rules.

What is made new is its owner's alone. What is there already is tightened by its owner only, and
never where it was shared on purpose: what the group may write stays the group's, and a POSIX access
control list stays as it is. Read access alone is no sharing: SQLite's readers write, too.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path

_ACL = "system.posix_acl_access"


def make_private_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for their owner alone.

    Raises:
        OSError: One cannot be made.
    """
    for missing in reversed([one for one in (folder, *folder.parents) if not one.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)
    folder.mkdir(exist_ok=True)  # or something else is in its place


def make_private_file(file: Path) -> None:
    """Have an empty file for its owner alone where there is none; else tighten it.

    SQLite gives the files beside a database, -wal and -shm, the mode of the database.

    Raises:
        OSError: It cannot be made.
    """
    try:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        tighten_database(file)


def tighten_database(file: Path) -> None:
    """Tighten a SQLite database, and the files beside it."""
    for one in (file, *(file.with_name(file.name + end) for end in ("-wal", "-shm"))):
        tighten(one)


def tighten(path: Path) -> None:
    """Take away what others may, and what a group may that cannot write."""
    with suppress(OSError):  # it is gone, or on a file system without modes
        status = path.stat()
        mode = stat.S_IMODE(status.st_mode)
        private = mode & (0o7770 if mode & stat.S_IWGRP else 0o7700)
        if status.st_uid == os.geteuid() and private != mode and _ACL not in os.listxattr(path):
            path.chmod(private)
