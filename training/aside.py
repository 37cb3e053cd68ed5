"""Files that are there whole or not at all, whenever the process is killed."""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from catalog.errors import StorageError


def write_aside(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Have a file written beside ``path`` and, once it is on disk, renamed to it.

    Raises:
        StorageError: The disk refuses.
    """
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise StorageError(f"{path}: cannot be written: {error.strerror}", str(path)) from error


def write_text_aside(path: Path, text: str) -> None:
    """Write a UTF-8 text file aside and rename it.

    Raises:
        StorageError: The disk refuses.
    """
    write_aside(path, lambda file: file.write(text.encode("utf-8")))


def write_json_aside(path: Path, data: Any) -> None:
    """Write strict JSON (no NaN) aside and rename it.

    Raises:
        StorageError: The disk refuses.
        ValueError: A number is not finite.
    """
    write_text_aside(path, json.dumps(data, indent=2, allow_nan=False) + "\n")
