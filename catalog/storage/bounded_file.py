"""Files that others may have made, read without more memory or time than they are worth."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from catalog.errors import BadFile

_T = TypeVar("_T")


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


def read_description(path: Path, most_bytes: int, made: Callable[[Any], _T]) -> _T | None:
    """What a JSON file describes; None where there is no such file.

    Args:
        path: The file.
        most_bytes: That it may have.
        made: Makes it of the file's content; raises ValueError, TypeError or KeyError of another's.

    Raises:
        BadFile: It is damaged, or describes something else.
    """
    if not path.exists():
        return None
    try:
        return made(parsed_json(read_bounded(path, most_bytes)))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise BadFile(f"is damaged: {error}", str(path)) from error


def parsed_json(content: bytes) -> Any:
    """The JSON value in UTF-8 text.

    Raises:
        ValueError: It is none, or nested too deeply.
    """
    try:
        return json.loads(content.decode("utf-8"))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
