"""Pins: datasets in a cache that are never evicted, until somebody unpins them.

A pin is a file in the folder of the staged manifest: CACHE/.manifests/<name>/pinned.
"""

from pathlib import Path

from catalog.errors import NotFound, StorageError
from pipeline.cache.contents import PINNED_FILE
from pipeline.cache.lease import MANIFESTS


def pin(cache: Path, name: str, dataset: str) -> None:
    """Keep a staged manifest and what it names.

    Args:
        dataset: NAME@VERSION, for messages.

    Raises:
        NotFound: It is not in the cache, or has just been evicted.
        StorageError: The cache cannot be written.
    """
    folder = cache / MANIFESTS / name
    try:
        (folder / PINNED_FILE).touch()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFound("staged dataset", dataset, f"framesift stage {dataset}") from error
    except OSError as error:
        raise StorageError(f"{folder}: cannot be pinned: {error.strerror}", str(folder)) from error


def unpin(cache: Path, name: str) -> None:
    """Let a staged manifest be evicted again; one that is not pinned stays as it is.

    Raises:
        StorageError: The cache cannot be written.
    """
    folder = cache / MANIFESTS / name
    try:
        (folder / PINNED_FILE).unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(
            f"{folder}: cannot be unpinned: {error.strerror}", str(folder)
        ) from error
