"""Files of a model's folder, which somebody else may have made."""

import errno
import os
from pathlib import Path
from typing import BinaryIO

from catalog.errors import BadFile
from catalog.storage.beneath import open_beneath


def opened_folder_file(folder: Path, name: str) -> BinaryIO:
    """A regular file, opened for reading; the folder may be a link itself.

    Raises:
        FileNotFoundError: It is not there.
        BadFile: It cannot be opened, is no regular file, or is a link that leads out of the folder.
    """
    try:
        return open_beneath(os.path.realpath(folder), name)
    except FileNotFoundError:
        raise
    except OSError as error:
        reason = error.strerror or "cannot be read"
        if error.errno == errno.EXDEV:
            reason = "is a link that leads out of the model's folder"
        raise BadFile(reason, str(folder / name)) from error


def read_folder_file(folder: Path, name: str, most_bytes: int) -> bytes:
    """A file's content.

    Raises:
        BadFile: It is missing, larger than ``most_bytes``, or as `opened_folder_file` says.
    """
    path = folder / name
    try:
        with opened_folder_file(folder, name) as file:
            content = file.read(most_bytes + 1)
    except OSError as error:
        raise BadFile(error.strerror or "cannot be read", str(path)) from error
    if len(content) > most_bytes:
        raise BadFile(f"is larger than the {most_bytes:,} bytes that it has at most", str(path))
    return content
