"""Datasets' manifests where they are kept: in the home, or beside a team's data, in S3 too.

Manifests never change, so that what was fetched stays true: it is kept in HOME/cache/manifests.
"""

import hashlib
import json
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from catalog.errors import BadFile, FramesiftError, InvalidInput, StorageError
from catalog.records.artifacts import MANIFEST_FILES, manifest_locations, new_manifest_location
from catalog.records.home_layout import HomeLayout, local_file, put_file
from catalog.records.sources import recorded_sources
from catalog.records.store import RecordStore
from catalog.records.tables import Dataset
from catalog.storage.atomic_write import clear_parts, part_of
from catalog.storage.own_folder import own_folder
from catalog.storage.s3_prefix import S3Prefix
from catalog.storage.spill_folder import user_folder
from pipeline.entry_name import HEADER_FILE
from pipeline.manifest import Manifest, ManifestHeader, StoredManifest
from pipeline.source_locations import SourceLocations


class NewManifest(Protocol):
    """A manifest that is about to be written."""

    @property
    def header(self) -> ManifestHeader:
        """Its header."""

    def write(self, folder: Path) -> object:
        """Write its files into a folder: see Manifest.write."""


def store_manifest(records: RecordStore, manifest: NewManifest) -> str:
    """Keep a new dataset's manifest where datasets lie; its place, as a record has it.

    Leftovers of a creation that was killed before its record was committed are written over.
    """
    home = _home_places(records)
    folder = new_manifest_location(home, manifest.header.name, manifest.header.version)
    if isinstance(folder, Path):
        if isinstance(home.datasets, Path):
            clear_parts(home.datasets.glob("*/v*/*.part"))
        shutil.rmtree(folder, ignore_errors=True)
        manifest.write(folder)
        return str(folder)
    with own_folder(user_folder() / "manifests") as scratch:
        manifest.write(scratch)
        for name in MANIFEST_FILES:  # the header last: with it the manifest is whole
            folder.put(name, scratch / name)
    return str(folder).rstrip("/")


def read_manifest(records: RecordStore, dataset: Dataset) -> Manifest:
    """A dataset's manifest; sources lie where they are recorded now, or did before their removal.

    Raises:
        BadFile: It is missing or damaged, or that of another dataset.
    """
    manifest = open_manifest(records, dataset)
    return manifest if isinstance(manifest, Manifest) else manifest.manifest()


def open_manifest(records: RecordStore, dataset: Dataset) -> StoredManifest | Manifest:
    """`read_manifest` without its rows, which are read portion by portion."""
    manifest = _as_written(records, dataset)
    if manifest.header.id != dataset.content_id:
        raise BadFile(
            f"is not the manifest of dataset {dataset.name}@{dataset.version}", dataset.manifest
        )
    header = manifest.header
    now = SourceLocations.of(
        source
        for source in recorded_sources(records)
        if header.datasources.get(source.name) == f"{source.cluster}:{source.datasource}"
    )
    source_locations = SourceLocations.in_header(header).and_of(now)
    return replace(
        manifest,
        header=replace(header, roots=source_locations.roots, within=source_locations.within),
    )


def manifest_folder(records: RecordStore, dataset: Dataset) -> Path:
    """A folder of this host that holds what `read_manifest` gives, for a job to read."""
    manifest = read_manifest(records, dataset)
    header = manifest.header
    if manifest.folder is not None:
        written = StoredManifest.open(manifest.folder).header
        if (written.roots, written.within) == (header.roots, header.within):
            return manifest.folder
    return placed_manifest(records, dataset, manifest)


def folder_of_new(records: RecordStore, dataset: Dataset) -> Path:
    """The folder of this host where a job finds the manifest of a dataset once it is saved."""
    folder = new_manifest_location(_home_places(records), dataset.name, dataset.version)
    return folder if isinstance(folder, Path) else _fetched(records, dataset)


def folder_of(records: RecordStore, dataset: Dataset, manifest: Manifest, *how: str) -> Path:
    """The folder of `placed_manifest`, whether it is there or not."""
    header = manifest.header
    where = json.dumps([dict(header.roots), dict(header.within), *how], sort_keys=True)
    mark = hashlib.sha256(where.encode()).hexdigest()[:12]
    return _fetched(records, dataset, f"-{mark}")


def placed_manifest(records: RecordStore, dataset: Dataset, manifest: Manifest, *how: str) -> Path:
    """A folder of this host that holds a dataset's manifest with its sources at these places.

    Args:
        how: What else tells manifests with the same places apart.
    """
    folder = folder_of(records, dataset, manifest, *how)
    if not _is_complete(folder, dataset):
        manifest.write(folder)
    return folder


def _as_written(records: RecordStore, dataset: Dataset) -> StoredManifest | Manifest:
    """The manifest as it was written, or the part of it that the records' user sees."""
    if records.user and dataset.id:
        with records.reading() as session:
            unlimited = session.get(Dataset, dataset.id)
        if unlimited is not None and unlimited.content_id != dataset.content_id:
            visible: Manifest = records.seen_manifest(unlimited)
            return visible
    return StoredManifest.open(_folder(records, dataset))


def _folder(records: RecordStore, dataset: Dataset) -> Path:
    """A folder of this host with the manifest as it was written."""
    for location in manifest_locations(records.home_layout, dataset) if records.home_layout else ():
        if isinstance(location, Path):
            if (location / HEADER_FILE).exists():
                return location
            continue
        fetched = _fetched(records, dataset)
        if _is_complete(fetched, dataset):
            return fetched
        with suppress(BadFile):
            return _fetch(location, fetched)
    return Path(dataset.manifest)


def _fetch(prefix: S3Prefix, folder: Path) -> Path:
    """Copy a manifest from S3 into a folder, whole or not at all.

    Raises:
        BadFile: There is none.
        StorageError: S3 does not answer.
    """
    if not any(key.endswith(HEADER_FILE) for key, _ in prefix.objects()):
        raise BadFile("no manifest there", str(prefix))
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with part_of(folder, is_folder=True) as temporary_folder:
            for name in MANIFEST_FILES:
                with local_file(prefix, name, temporary_folder) as path:
                    put_file(path, temporary_folder, name)
            shutil.rmtree(folder, ignore_errors=True)
            with suppress(OSError):  # another process has fetched the same
                temporary_folder.rename(folder)
    except OSError as error:
        raise StorageError(f"{folder}: {error.strerror or error}", str(folder)) from error
    return folder


def _fetched(records: RecordStore, dataset: Dataset, mark: str = "") -> Path:
    name = f"{dataset.name}-v{dataset.version}-{dataset.content_id[:12]}{mark}"
    return _home_places(records).home / "cache" / "manifests" / name


def _is_complete(folder: Path, dataset: Dataset) -> bool:
    try:
        return StoredManifest.open(folder).header.id == dataset.content_id
    except FramesiftError:
        return False


def _home_places(records: RecordStore) -> HomeLayout:
    if records.home_layout is None:
        raise InvalidInput(
            f"{records.location}: these records belong to no home that is known here"
        )
    return records.home_layout
