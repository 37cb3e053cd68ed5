"""Copying a plan's files into the cache."""

import os
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice

from catalog.errors import StorageError
from pipeline.staging.plan import CopyItem, StagingPlan

Progress = Callable[[int, int], None]
"""Called with files and bytes copied so far."""


def copy_files(plan: StagingPlan, workers: int = 4, progress: Progress | None = None) -> None:
    """Copy every missing file of the plan, each aside and then renamed, several at once.

    Raises:
        StorageError: A file vanished, changed its size, or could not be written; what was copied
            before stays and need not be copied again.
    """
    files = copied = 0
    items = iter(plan.missing)
    with ThreadPoolExecutor(workers, thread_name_prefix="stage") as pool:
        pending: dict[Future[None], CopyItem] = {
            pool.submit(_copy, item): item for item in islice(items, 4 * workers)
        }
        try:
            while pending:
                done, _ = wait(pending, return_when=FIRST_COMPLETED)
                for future in done:
                    item = pending.pop(future)
                    future.result()
                    files, copied = files + 1, copied + item.size
                    pending.update({pool.submit(_copy, i): i for i in islice(items, 1)})
                if progress is not None:
                    progress(files, copied)
        finally:
            for future in pending:
                future.cancel()


def _copy(item: CopyItem) -> None:
    # The name is this thread's own, so that two stagings of one file do not meet in it.
    part = item.target.with_name(f"{item.target.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        item.target.parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copyfile(item.source, part)
            size = part.stat().st_size
            if size != item.size:
                raise StorageError(
                    f"{item.source}: has {size:,} bytes, the catalog says {item.size:,}; "
                    "ingest the source again",
                    str(item.source),
                )
            part.replace(item.target)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(
            f"{error.filename or item.target}: {error.strerror} (copying {item.source})",
            str(error.filename or item.target),
        ) from error
