"""Copying a plan's files into the cache."""

import hashlib
import os
import shutil
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import count, islice
from pathlib import Path

from catalog.errors import StorageError
from catalog.storage.beneath import open_beneath
from pipeline.file_version import fits, shown, version_of
from pipeline.staging.parts import part_folder
from pipeline.staging.plan import CopyItem, StagingPlan

_CHUNK = 2**20
"""Bytes copied at once."""

Progress = Callable[[int, int], None]
"""Called with files and bytes copied so far."""


def copy_files(
    plan: StagingPlan, cache: Path, workers: int = 4, progress: Progress | None = None
) -> None:
    """Copy every missing file of the plan, each aside and then renamed, several at once.

    Raises:
        StorageError: A file vanished, changed its size, or could not be written; what was copied
            before stays and need not be copied again.
    """
    with part_folder(cache) as parts:
        _copy_all(plan, parts, workers, progress)


def _copy_all(plan: StagingPlan, parts: Path, workers: int, progress: Progress | None) -> None:
    files = copied = 0
    items = iter(plan.missing)
    numbers = count()

    def start(item: CopyItem) -> Future[None]:
        return pool.submit(_copy, item, parts / f"{next(numbers)}.part")

    with ThreadPoolExecutor(workers, thread_name_prefix="stage") as pool:
        pending = {start(item): item for item in islice(items, 4 * workers)}
        try:
            while pending:
                done, _ = wait(pending, return_when=FIRST_COMPLETED)
                for future in done:
                    item = pending.pop(future)
                    future.result()
                    files, copied = files + 1, copied + item.size
                    pending.update({start(item): item for item in islice(items, 1)})
                if progress is not None:
                    progress(files, copied)
        finally:
            for future in pending:
                future.cancel()


def _copy(item: CopyItem, part: Path) -> None:
    try:
        item.target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open_beneath(item.root, item.key) as source, part.open("wb") as copy:
                before = os.fstat(source.fileno())
                shutil.copyfileobj(source, copy, _CHUNK)
                after = os.fstat(source.fileno())
                copy.flush()
                os.fsync(copy.fileno())  # a power cut must not leave a name without its bytes
            if version_of(after) != version_of(before):
                raise StorageError(
                    f"{item.source}: was written while it was copied; stage again when whoever "
                    "writes it has ended",
                    item.source,
                )
            if not fits(after, item.size, item.version) and not _is_same(part, item):
                raise StorageError(
                    f"{item.source}: has changed since the dataset was made: it has "
                    f"{shown(after.st_size, version_of(after))}; the dataset's has "
                    f"{shown(item.size, item.version)}. Put that one back, or make a dataset of "
                    "what is there now: framesift ingest, then framesift dataset create",
                    item.source,
                )
            part.replace(item.target)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        if error.filename == item.source:
            raise StorageError(
                f"{item.source}: {error.strerror}; is the source mounted? If the file is gone, "
                "make a dataset of what is there now: framesift ingest, then framesift dataset "
                "create",
                item.source,
            ) from error
        raise StorageError(
            f"{item.target}: {error.strerror} (copying {item.source})", str(item.target)
        ) from error


def _is_same(part: Path, item: CopyItem) -> bool:
    """Whether a copy has the content that is wanted, whatever the file's time says."""
    if item.digest is None:
        return False
    with part.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}" == item.digest
