"""Files that others may have made, read without more memory or time than they are worth."""

import json
import os
import stat
from pathlib import Path
from typing import Any

from catalog.errors import BadFile


def read_bounded(path: Path, most_bytes: int) -> bytes:
    """A regular file's content; a pipe or a device in its place is not waited for.

    Raises:
        BadFile: It is larger than ``most_bytes``, or no regular file.
        OSError: It cannot be read.
    """
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:  # noqa: PTH123 (a descriptor)
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise BadFile("is no regular file", str(path))
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise BadFile(f"is larger than the {most_bytes:,} bytes that it may have", str(path))
    return content


def parsed_json(content: bytes) -> Any:
    """The JSON value in UTF-8 text.

    Raises:
        ValueError: It is none, or nested too deeply.
    """
    try:
        return json.loads(content.decode("utf-8"))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
