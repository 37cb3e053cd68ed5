"""Datasets renamed, described and removed; their frames never change."""

import shutil
from pathlib import Path

from sqlalchemy import or_, select

from catalog.errors import AlreadyExists, InUse
from catalog.records.artifacts import manifest_locations
from catalog.records.datasets import own_dataset, recorded_datasets
from catalog.records.store import RecordStore
from catalog.records.tables import Dataset, Job
from catalog.values import now
from pipeline.datasets.datasets import name_of_new
from pipeline.job_state import FINISHED


def rename_dataset(records: RecordStore, name: str, new_name: str) -> Dataset:
    """Give every version of a dataset another name; its manifests stay where they are.

    Args:
        name: NAME, or NAME@VERSION.
        new_name: As `pipeline.datasets.datasets.name_of_new` takes it.

    Returns:
        The version that was named.

    Raises:
        AlreadyExists: A dataset has it, or had it.
    """
    dataset = own_dataset(records, name)
    _own_versions(records, dataset.name)
    saved = name_of_new(records, new_name)
    if saved == dataset.name:
        return dataset
    with records.session() as session:
        has_name = or_(Dataset.name == saved, Dataset.first_name == saved)
        if session.scalar(select(Dataset.id).where(has_name).limit(1)) is not None:
            raise AlreadyExists("dataset", saved, "a dataset has this name, or had it")
        for version in session.scalars(select(Dataset).where(Dataset.name == dataset.name)):
            version.first_name = version.first_name or version.name
            version.name = saved
    return own_dataset(records, f"{saved}@{dataset.version}")


def describe_dataset(records: RecordStore, name: str, description: str) -> Dataset:
    """Keep what a user says of a dataset's version; empty text takes it away."""
    dataset = own_dataset(records, name)
    with records.session() as session:
        recorded = session.get_one(Dataset, dataset.id)
        recorded.description = description
    return own_dataset(records, f"{dataset.name}@{dataset.version}")


def remove_dataset(records: RecordStore, name: str) -> list[str]:
    """Remove every version of NAME, or NAME@VERSION alone; what was removed, NAME@VERSION each.

    Its manifest goes; what is staged of it stays in the cache until it is evicted. Jobs keep their
    results and go on to say what they read. Its versions' numbers are not given again.

    Raises:
        InUse: A job that has not ended reads it.
    """
    dataset = own_dataset(records, name)
    versions = [dataset]
    if "@" not in name.rpartition("~")[2]:
        versions = _own_versions(records, dataset.name)
    with records.session() as session:
        ids = [version.id for version in versions]
        reading = select(Job.name).where(Job.dataset_id.in_(ids), Job.state.not_in(FINISHED))
        if (job := session.scalar(reading.limit(1))) is not None:
            raise InUse("dataset", name, f"job {job} reads it; cancel the job, or wait for its end")
        for recorded in session.scalars(select(Dataset).where(Dataset.id.in_(ids))):
            recorded.removed = now()
    for version in versions:
        _remove_manifest(records, version)
    return [f"{version.name}@{version.version}" for version in versions]


def _own_versions(records: RecordStore, name: str) -> list[Dataset]:
    return [
        own_dataset(records, f"{one.name}@{one.version}")
        for one in recorded_datasets(records, name)
    ]


def _remove_manifest(records: RecordStore, dataset: Dataset) -> None:
    paths = manifest_locations(records.home_layout, dataset) if records.home_layout else []
    for path in paths or [Path(dataset.manifest)]:
        if isinstance(path, Path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.delete_all()
