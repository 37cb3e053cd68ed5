"""What a user's program makes in its folder {job}, read by those who do not trust it.

No link is followed out of the job's folder, no pipe is waited for, and nothing is read without end.
"""

import os
from pathlib import Path
from typing import Any, BinaryIO

from catalog.errors import BadFile
from catalog.storage.beneath import open_beneath
from catalog.storage.bounded_file import parsed_json
from pipeline.jobs.program.paths import ProgramPaths

_MOST_BYTES = 64 << 20


def opened_output(folder: Path, name: str) -> BinaryIO:
    """A regular file of a program's folder, opened for reading.

    Args:
        folder: The job's.
        name: The file's, in {job}.

    Raises:
        OSError: It is not there, is no regular file, or lies behind a link out of the job's folder.
    """
    output = ProgramPaths(folder).output
    return open_beneath(os.path.realpath(folder), f"{output.relative_to(folder)}/{name}")


def output_document(folder: Path, name: str, most_bytes: int = _MOST_BYTES) -> dict[str, Any]:
    """The JSON object in a file of a program's folder; empty where there is none.

    Raises:
        BadFile: The file is there, and holds none, or is larger than ``most_bytes``.
    """
    path = str(ProgramPaths(folder).output / name)
    try:
        with opened_output(folder, name) as file:
            content = file.read(most_bytes + 1)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise BadFile(error.strerror or "cannot be read", path) from error
    if len(content) > most_bytes:
        raise BadFile(f"is larger than the {most_bytes:,} bytes that it may have", path)
    try:
        data = parsed_json(content)
    except ValueError as error:
        raise BadFile(f"is no JSON: {error}", path) from error
    if not isinstance(data, dict):
        raise BadFile("is no JSON object", path)
    return data
