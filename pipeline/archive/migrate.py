"""Sends a dataset's files back to tape, when a job is done with them."""

from collections.abc import Container, Iterator
from contextlib import suppress
from dataclasses import dataclass

from catalog.errors import FramesiftError, InvalidInput, StorageError
from catalog.records.store import RecordStore
from catalog.records.tables import Dataset
from catalog.values import File
from ingest.sources.local_folder import LocalFolder
from pipeline.archive.eeadm import migrate
from pipeline.archive.recall import ArchiveAccess
from pipeline.manifest import Manifest
from pipeline.manifest_store import read_manifest
from pipeline.staging.opened_sources import OpenedSources
from pipeline.staging.storage_commands.list_file import needs_escapes


@dataclass(frozen=True)
class Migrated:
    """The outcome of a migration."""

    files: int
    """Files that are on tape alone now."""
    bytes: int
    in_use: int
    """Files that stay on disk: they are in use, or no list can hold their names."""
    remaining: int
    cause: str = ""
    """What its command said where it failed."""


def check_migration(access: ArchiveAccess) -> None:
    """Refuse a migration where nothing does it.

    Raises:
        InvalidInput: There is no command.
    """
    if not access.migrate:
        raise InvalidInput(
            "migrate: FRAMESIFT_MIGRATE_COMMAND is not set; expected what migrates files to tape "
            "by a list, such as 'eeadm migrate {list} -p POOL'"
        )


def migrate_dataset(
    records: RecordStore, dataset: Dataset, access: ArchiveAccess, in_use: Container[str] = ()
) -> Migrated:
    """Have the archive migrate a dataset's files that lie on disk in folders of this machine."""
    check_migration(access)
    manifest = read_manifest(records, dataset)
    resident = {path: (files, file) for path, files, file in _resident(records, manifest)}
    listed = [path for path in resident if path not in in_use and not needs_escapes([path])]
    cause = ""
    if listed:
        try:
            migrate(access.migrate, access.lists, listed)
        except StorageError as error:  # it may have migrated some
            cause = str(error)
    migrated_bytes = [
        file.size
        for path in listed
        for files, file in (resident[path],)
        if any(not now.size_consumed for now in files.list(file.key))
    ]
    remaining = len(listed) - len(migrated_bytes)
    return Migrated(
        len(migrated_bytes), sum(migrated_bytes), len(resident) - len(listed), remaining, cause
    )


def _resident(records: RecordStore, manifest: Manifest) -> Iterator[tuple[str, LocalFolder, File]]:
    """Path of each file that lies on disk, with its folder and its listing; each once."""
    sources = OpenedSources(records, manifest.header)
    keys = {
        (file.source, file.key): None for file in (*manifest.images(), *manifest.labels()) if file
    }
    for source, key in keys:
        with suppress(FramesiftError):  # what cannot be looked at is not migrated
            files = sources.files(source)
            if isinstance(files, LocalFolder):
                for file in files.list(key):
                    if file.size_consumed and not file.is_archived:
                        yield f"{files.root}/{key}", files, file
