"""Manifests of folders that are read as they are, in a cache: prepared forms lie beside them.

A lease on such a manifest holds the forms of its frames; its files it does not name as the cache's.
"""

from dataclasses import replace
from pathlib import Path

from pipeline.cache.entry_name import IN_PLACE
from pipeline.cache.lease import MANIFESTS
from pipeline.jobs.job_input import JobInput
from pipeline.manifest import HEADER_FILE
from pipeline.staging.plan import make_cache
from pipeline.staging.stage import staged_name


def in_cache(frames: JobInput, cache: Path, *, writes: bool = True) -> JobInput:
    """The same frames by a manifest in a cache, which has them in place.

    Args:
        frames: Of folders of this machine.
        cache: Folder of the cache.
        writes: Whether it is written there; else it is only said where it would lie.

    Raises:
        StorageError: It cannot be written.
    """
    folder = cache / MANIFESTS / f"{staged_name(frames.dataset)}{IN_PLACE}"
    if writes and not (folder / HEADER_FILE).exists():
        make_cache(cache)
        frames.whole.write(folder)
    return replace(frames, manifest=folder)
