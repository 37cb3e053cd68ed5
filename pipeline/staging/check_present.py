"""The files of a plan that are in the cache already, read again; the damaged ones are fetched."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from catalog.errors import StorageError
from pipeline.cache.checksums import Checksums, recorded_checksums
from pipeline.cache.verify import READ_AT_ONCE, Verifier
from pipeline.staging.plan import StagingPlan, WantedFile
from pipeline.staging.progress import Progress


def without_damaged(
    plan: StagingPlan,
    cache: Path,
    checksums: Checksums,
    workers: int,
    progress: Callable[[Progress], None],
) -> tuple[StagingPlan, list[str]]:
    """The plan with what is damaged in the cache among the missing; and those entries' paths.

    A damaged entry is removed at once: nobody shall read it while another comes. One without a
    checksum gets one where its content says that it is whole.

    Args:
        plan: With the files that are there.
        checksums: Where new ones are recorded.

    Raises:
        StorageError: The cache cannot be read or written.
    """
    damaged: list[WantedFile] = []
    files = size = 0
    try:
        recorded, verifier = recorded_checksums(cache), Verifier()

        def check(item: WantedFile) -> bool:
            path, entry = plan.target(item), plan.entry(item)
            known = recorded.get(entry, set())
            fault, checksum = verifier.fault_of(path, item.size, known, item.digest)
            if fault:
                path.unlink(missing_ok=True)
            elif not known:
                checksums.record(entry, checksum, item.size)
            return not fault

        with ThreadPoolExecutor(max(workers, READ_AT_ONCE), thread_name_prefix="verify") as pool:
            try:
                checked = pool.map(check, plan.present)
                for item, is_intact in zip(plan.present, checked, strict=True):
                    if is_intact:
                        files, size = files + 1, size + item.size
                    else:
                        damaged.append(item)
                    progress(Progress(files, plan.files, size, plan.bytes, present=files))
            except BaseException:
                # Cancelled, for one: the pool would read all the others before it ends.
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    except OSError as error:
        failed_path = str(error.filename or cache)
        raise StorageError(
            f"{failed_path}: {error.strerror} (verifying the cache)", failed_path
        ) from error
    paths = [str(plan.target(item)) for item in damaged]
    return replace(plan, missing=(*plan.missing, *damaged)), paths
