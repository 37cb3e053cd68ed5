"""Manifests of folders that are read as they are, in a cache: prepared forms lie beside them.

A lease on such a manifest holds the forms of its frames; its files it does not name as the cache's.
"""

from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from catalog.errors import FramesiftError
from catalog.records.jobs import recorded_jobs
from catalog.records.store import RecordStore
from pipeline.cache.contents import staged_name
from pipeline.cache.lease import MANIFESTS
from pipeline.entry_name import HEADER_FILE, IN_PLACE
from pipeline.job_state import UNFINISHED
from pipeline.jobs.job_input import JobInput
from pipeline.manifest import Manifest
from pipeline.staging.plan import make_cache


def in_cache(frames: JobInput, cache: Path) -> JobInput:
    """The same frames, of folders of this machine, by a manifest in a cache."""
    folder = cache / MANIFESTS / f"{staged_name(frames.dataset)}{IN_PLACE}"
    write = partial(_write, frames.whole, cache, folder)
    return replace(frames, manifest=folder, writes=(*frames.writes, write))


def _write(manifest: Manifest, cache: Path, folder: Path) -> None:
    if not (folder / HEADER_FILE).exists():
        make_cache(cache)
        manifest.write(folder)


def paths_in_use(records: RecordStore, own: str) -> set[str]:
    """Paths of files that jobs which have not ended read where they lie, or where they are staged.

    Args:
        records: Of the jobs.
        own: Name of a job that does not count.
    """
    paths: set[str] = set()
    for job in recorded_jobs(records, states=UNFINISHED):
        folder = job.paths.get("manifest")
        if folder and job.name != own:
            with suppress(FramesiftError):  # it was removed, and is read no longer
                manifest = Manifest.read(Path(folder))
                files = (*manifest.images(), *manifest.labels())
                paths.update(file.path for file in files if file)
    return paths
