"""A preflight as a job: what its ranks run."""

from collections.abc import Mapping
from functools import partial
from typing import Literal

from catalog.errors import InvalidInput, StorageError
from catalog.records.store import RecordStore
from catalog.records.tables import Dataset
from pipeline.jobs.request import PYTHON, JobPaths, Stage, write_json
from pipeline.jobs.resources import asked_resources
from pipeline.jobs.work import JobHome, Work
from pipeline.manifest import Manifest
from pipeline.manifest_store import read_manifest
from pipeline.runs.preflight_order import HOROVOD, Preflight
from pipeline.staging.mounted import mounted_manifest, mounts_of
from pipeline.staging.stage import newest_manifest

_READS = "reads.json"
_MOST_FILES = 4096


def preflight_packages(order: Preflight) -> tuple[str, ...]:
    """The packages that its ranks import."""
    if order.through != HOROVOD:
        return ("torch",)
    return ("tensorflow", "horovod")


def preflight_work(
    home: JobHome, order: Preflight, dataset: Dataset | None, paths: JobPaths
) -> Work:
    """The work of a preflight; see pipeline.jobs.plan.work_of.

    Raises:
        BadFile: The dataset's manifest is damaged.
    """
    command = [
        PYTHON, "-P", "-m", "training.preflight.main", str(paths.folder),
        "--ranks", str(order.ranks), "--through", order.through,
        "--largest_mib", str(order.largest_mib),
    ]  # fmt: skip
    reads: dict[str, list[str] | str] = {}
    leased: dict[str, str] = {}
    if dataset is not None:
        named = f"{dataset.name}@{dataset.version}"
        staged = Manifest.read(newest_manifest(home.records, dataset))
        if staged.header.staged:
            reads["cache"] = _files(staged)
            leased[str(staged.folder)] = named
        else:
            reads["cache"] = f"{named} is not staged (framesift stage {named})"
        reads["source"] = _at_sources(home.records, dataset, home.queue.in_container)
        command += ["--reads", str(paths.folder / _READS)]
    if order.path is not None:
        command += ["--path", order.path]
    if order.synthetic:
        command += ["--synthetic"]
        for name in ("batch_size", "steps"):
            if getattr(order, name) is not None:
                command += [f"--{name}", str(getattr(order, name))]
    launcher: Literal["horovod", "ranks"] = "horovod" if order.through == HOROVOD else "ranks"
    settings = {
        name: getattr(order, name)
        for name in ("ranks", "through", "largest_mib", "path", "batch_size", "steps")
        if getattr(order, name) is not None
    }
    return Work(
        (Stage("preflight", (tuple(command),), ranks=order.ranks, launcher=launcher),),
        asked_resources(order, preflight_packages(order)),
        settings=settings | ({"synthetic": True} if order.synthetic else {}),
        reads=leased,
        writes=() if dataset is None else (partial(_write, paths, reads),),
    )


def _at_sources(records: RecordStore, dataset: Dataset, in_container: bool) -> list[str] | str:
    """The dataset's files where its sources are mounted; why there are none, where one is not."""
    try:
        unstaged = read_manifest(records, dataset)
        mounts = mounts_of(records, unstaged.header)
        return _files(mounted_manifest(unstaged, mounts, in_container=in_container))
    except (InvalidInput, StorageError) as error:
        return str(error)


def _files(manifest: Manifest) -> list[str]:
    """Paths of images and labels, spread over the dataset."""
    paths = [file.path for file in (*manifest.images(), *manifest.labels()) if file is not None]
    step = -(-len(paths) // _MOST_FILES)
    return paths[:: max(1, step)]


def _write(paths: JobPaths, reads: Mapping[str, list[str] | str]) -> None:
    """Say which files ranks read of each place, or why none."""
    paths.folder.mkdir(parents=True, exist_ok=True)
    write_json(paths.folder / _READS, reads)
