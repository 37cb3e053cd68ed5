"""Checks that the datasets and models that the records name are there, and whole."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from catalog.errors import BadFile
from catalog.maintenance.check import Finding
from catalog.records.artifacts import MODEL_FILE, manifest_location, manifest_of
from catalog.records.datasets import recorded_datasets
from catalog.records.home_layout import local_file, put_file
from catalog.records.jobs import recorded_jobs
from catalog.records.store import RecordStore
from catalog.records.tables import Dataset
from pipeline.manifest_rows import FRAMES_SCHEMA
from pipeline.manifest_store import open_manifest


def check_artifacts(records: RecordStore, *, repair: bool = False) -> list[Finding]:
    """Findings on what is missing, damaged, or not where a team's other hosts look for it.

    Args:
        repair: Copy manifests that lie in this home only to where the team's datasets lie.
    """
    findings = [*_datasets(records, repair), *_models(records)]
    pa.default_memory_pool().release_unused()  # 60 MB that Arrow keeps of a million frames
    return findings


def _datasets(records: RecordStore, repair: bool) -> Iterator[Finding]:
    for dataset in recorded_datasets(records):
        name = f"dataset {dataset.name}@{dataset.version}"
        rebuild = f"framesift dataset rebuild {dataset.name}@{dataset.version}, or a backup"
        try:
            for _ in open_manifest(records, dataset).portions(FRAMES_SCHEMA.names):
                pass
        except BadFile as error:
            there = manifest_of(records.home_layout, dataset) if records.home_layout else None
            kind = "missing_manifest" if there is None else "damaged_manifest"
            reason = "its manifest is not there" if there is None else str(error)
            yield Finding(kind, f"{name}: {reason}", rebuild)
            continue
        yield from _elsewhere(records, dataset, name, repair)


def _elsewhere(
    records: RecordStore, dataset: Dataset, name: str, repair: bool
) -> Iterator[Finding]:
    """A manifest in the home of a catalog whose datasets lie beside a team's data."""
    home_layout = records.home_layout
    artifact = manifest_of(home_layout, dataset) if home_layout else None
    if home_layout is None or home_layout.files is None or artifact is None:
        return
    own = manifest_location(home_layout, dataset)
    if artifact.location == own:
        return
    if repair:
        with tempfile.TemporaryDirectory() as scratch:
            for file in artifact.names:
                with local_file(artifact.location, file, Path(scratch)) as path:
                    put_file(path, own, file)
    what = f"{name}: its manifest lies in {artifact.location}, where other hosts do not find it"
    yield Finding("manifest_elsewhere", what, "framesift catalog check --repair", repair)


def _models(records: RecordStore) -> Iterator[Finding]:
    for job in recorded_jobs(records, kind="train", states=["done"]):
        folder = Path(job.paths.get("model_dir", ""))
        if not (folder / MODEL_FILE).is_file():
            what = f"job {job.name}: its model is not in {folder}"
            yield Finding("missing_model", what, "restore it from a backup, or train again")
