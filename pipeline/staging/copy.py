"""Copying a plan's files into the cache."""

import os
import shutil
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import count, islice
from pathlib import Path

from catalog.beneath import open_beneath
from catalog.errors import StorageError
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
                shutil.copyfileobj(source, copy, _CHUNK)
                size = copy.tell()
                copy.flush()
                os.fsync(copy.fileno())  # a power cut must not leave a name without its bytes
            if size != item.size:
                raise StorageError(
                    f"{item.source}: has {size:,} bytes, the catalog says {item.size:,}; "
                    "ingest the source again",
                    item.source,
                )
            part.replace(item.target)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        if error.filename == item.source:
            raise StorageError(
                f"{item.source}: {error.strerror}; is the source mounted? If the file is gone, "
                "ingest the source again and make the dataset anew",
                item.source,
            ) from error
        raise StorageError(
            f"{item.target}: {error.strerror} (copying {item.source})", str(item.target)
        ) from error
