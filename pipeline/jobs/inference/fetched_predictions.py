"""Brings predictions from a server to a job's folder: its programs get no keys, as of a staging."""

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path

from catalog.errors import BadFile
from catalog.storage.atomic_write import atomic_path, clear_parts
from catalog.values import File
from ingest.sources.schemes import open_source
from ingest.sources.source_files import SourceFiles
from ingest.sources.source_options import SourceOptions
from pipeline.jobs.request import JobPaths

_THREADS = 16
"""Requests at once: the files are small, and a server answers each after its own wait."""

_KINDS = (".png", ".npz")


@dataclass(frozen=True)
class Fetched:
    """What came of it."""

    files: int
    """Predictions, and what says how sure they are."""
    copied: int
    """Those of them that an earlier attempt had not brought."""


def fetched_folder(paths: JobPaths, below: str) -> Path:
    """The folder of a job that predictions of a server are brought to."""
    return paths.folder / "fetched" / below


def fetch_predictions(place: str, options: SourceOptions, folder: Path) -> Fetched:
    """Make a folder hold the predictions at a place, with the times that the server has.

    Args:
        place: A URI of a folder or archive.
        options: How it is reached.
        folder: To which they come, under their names.

    Raises:
        InvalidInput: The place cannot be opened so.
        StorageError: The server fails.
        BadFile: A file changed while it was read, or is too large.
    """
    files = open_source(place, options)
    clear_parts(folder.rglob(f"*.{'[0-9a-f]' * 32}.part"))
    listed = [file for file in files.list() if file.key.lower().endswith(_KINDS)]
    remaining = {folder / file.key for file in listed}
    for path in folder.rglob("*"):  # of an earlier attempt
        if path not in remaining and path.is_file():
            path.unlink()
    with ThreadPoolExecutor(_THREADS) as pool:
        copied = sum(pool.map(lambda file: _copied(files, file, folder), listed))
    return Fetched(len(listed), copied)


def _copied(files: SourceFiles, file: File, folder: Path) -> bool:
    """Copy a file; False where it is there already."""
    path, changed_s = folder / file.key, file.mtime.replace(tzinfo=UTC).timestamp()
    with suppress(OSError):
        status = path.stat()
        if (status.st_size, status.st_mtime) == (file.size, changed_s):
            return False
    content = files.read(file.key)
    if len(content) != file.size:
        raise BadFile(
            f"changed while it was fetched: {len(content):,} bytes, not {file.size:,}",
            f"{files.root}/{file.key}",
        )
    with atomic_path(path, fsync=False, parents=True, clear=False) as partial_path:
        partial_path.write_bytes(content)
        os.utime(partial_path, (changed_s, changed_s))
    return True
