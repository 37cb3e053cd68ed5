"""A backup of catalog and records: one folder or tar file that is a whole home again.

    backup.json           what it is: snapshot, size and SHA-256 of every file
    catalog/              metadata in SQLite, and every data file that a snapshot needs
    records/              sources, scans, datasets, jobs in SQLite
    datasets/             the datasets' manifests
    jobs/                 of each job its model and its report

Metadata and records are copied under the write lock; data files and manifests never change, and are
copied while others write. Wherever the catalog lies, the backup is SQLite and files.
"""

import json
import shutil
import sqlite3
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import duckdb
from sqlalchemy import insert, select

from catalog.errors import AlreadyExists, BadFile, CatalogDamaged, StorageError
from catalog.lake.connection import METADATA, snapshot_of
from catalog.lake.metadata.own_tables import OF_ONE_PLACE, DataFile, data_files
from catalog.maintenance.backup_files import (
    Digests,
    cleared,
    disk,
    unpack,
    writing_backup,
)
from catalog.records.artifacts import Artifacts
from catalog.records.home_layout import local_file
from catalog.records.store import RecordStore
from catalog.records.tables import Base
from catalog.storage.location import CatalogLocation
from catalog.storage.private_files import make_private_folder
from catalog.storage.to_disk import to_disk, tree_to_disk
from catalog.store import CatalogStore

FORMAT = 2

_HEADER = "backup.json"
_METADATA = "catalog/catalog.sqlite"
_DATA = "catalog/data"
_RECORDS = "records/records.sqlite"
_ROWS = 5_000
_PARTS = ("datasets", "jobs", "records", "catalog")
"""Folders of a home that a backup has; the catalog last: with it a restored home is whole."""


@dataclass(frozen=True, slots=True)
class Backup:
    """The contents of a backup."""

    snapshot: int
    """The newest snapshot in it."""
    made: datetime
    """When, naive UTC."""
    files: int
    """Number of files."""
    bytes: int
    """Their size [bytes]."""
    datasets: int = 0
    """Datasets whose manifest is in it."""
    models: int = 0
    """Models in it."""
    missing: tuple[str, ...] = ()
    """Datasets whose manifest could not be found, "name@version"; see framesift catalog check."""


def back_up(
    store: CatalogStore,
    records: RecordStore,
    target: Path,
    progress: Callable[[int, int], None] = lambda _done, _files: None,
) -> Backup:
    """Write a backup while others read and write.

    Args:
        target: The folder to make, or the file where its name ends in ".tar".
        progress: Told how many of how many data files are copied.

    Raises:
        AlreadyExists: There is something at ``target``.
    """
    if target.exists():
        raise AlreadyExists("backup", str(target), "choose another name or move it away")
    scratch = target.with_name(f"{target.name}.scratch")
    made_at = datetime.now(UTC).replace(tzinfo=None, microsecond=0)
    with disk(target), cleared(scratch), writing_backup(target) as backup:
        make_private_folder(scratch)
        with store.quiesced("the catalog is being backed up"), store.inspecting() as cursor:
            snapshot = snapshot_of(cursor)
            needed = data_files(cursor)
            _copy_metadata(cursor, scratch / _METADATA)
            _copy_records(records, scratch / _RECORDS)
        for name in (_METADATA, _RECORDS):
            backup.add(name, scratch / name)
        for done, file in enumerate(needed):
            progress(done, len(needed))
            with _data_file(store, file, scratch) as path:
                backup.add(f"{_DATA}/{file.path}", path)
        artifacts = Artifacts.of(records)
        for artifact in (*artifacts.datasets.values(), *artifacts.jobs):
            for name in artifact.names:
                with local_file(artifact.location, name, scratch) as path:
                    backup.add(f"{artifact.folder}/{name}", path)
        header = {
            "format": FORMAT,
            "framesift": version("framesift"),
            "snapshot": snapshot,
            "made": made_at.isoformat(),
            "datasets": len(artifacts.datasets),
            "models": len([artifact for artifact in artifacts.jobs if artifact.is_model]),
            "missing": list(artifacts.missing),
            "files": dict(backup.files),
        }
        (scratch / _HEADER).write_text(json.dumps(header, indent=1), encoding="utf-8")
        backup.add(_HEADER, scratch / _HEADER)
    return _summary(header)


def restore(source: Path, home: Path) -> Backup:
    """Put a backup's catalog and records into a home that has none.

    Args:
        source: What `back_up` made.
        home: The home's folder.

    Raises:
        AlreadyExists: The home has a catalog or records; nothing is overwritten.
        BadFile: The backup is none, lacks a file, or one is not as it was written.
    """
    for name in _PARTS:
        if (home / name).exists():
            raise AlreadyExists(name, str(home / name), "move it away before restoring")
    restoring = home / "restoring"
    with disk(home), cleared(restoring):
        make_private_folder(restoring)
        unpacked = unpack(source, restoring)
        header = _header(restoring, source)
        _verify({name: tuple(entry) for name, entry in header["files"].items()}, unpacked, source)
        (restoring / "catalog" / "data").mkdir(parents=True, exist_ok=True)
        # Migrates records of an older schema, before the catalog's format is looked at.
        RecordStore(restoring / _RECORDS).engine.dispose()
        _read_beside_a_writer(restoring / _METADATA)
        restored = CatalogStore(CatalogLocation.in_folder(restoring / "catalog"))
        snapshot = restored.snapshot()
        restored.close()
        if snapshot != header["snapshot"]:
            raise BadFile(f"holds snapshot {snapshot}, not {header['snapshot']}", str(source))
        tree_to_disk(restoring)  # a rename must not come before what it names
        for name in _PARTS:
            if (restoring / name).exists():
                (restoring / name).rename(home / name)
        to_disk(home)
    return _summary(header)


def _read_beside_a_writer(metadata: Path) -> None:
    """Give SQLite the journal of every catalog; a backup's has another, for one file alone.

    The first writer would change it, which SQLite refuses while a reader has the catalog open:
    a scan could not begin.
    """
    try:
        with closing(sqlite3.connect(metadata)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
    except sqlite3.Error as error:
        raise CatalogDamaged(f"{metadata}: {error}") from error


def _header(folder: Path, source: Path) -> dict[str, Any]:
    try:
        header: dict[str, Any] = json.loads((folder / _HEADER).read_bytes())
        known = header["format"] == FORMAT
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadFile(f"no backup: it has no {_HEADER} that can be read", str(source)) from error
    if not known:
        raise BadFile(
            f"a backup of format {header['format']}, expected {FORMAT}; restore it with the "
            "version of Framesift that wrote it",
            str(source),
        )
    return header


def _verify(written: Digests, unpacked: Digests, source: Path) -> None:
    for name, entry in written.items():
        if name not in unpacked:
            raise BadFile(f"lacks {name}", str(source))
        if unpacked[name] != entry:
            raise BadFile(f"{name} in it is not as it was written", str(source))
    unknown = sorted(unpacked.keys() - written.keys() - {_HEADER})
    if unknown:
        raise BadFile(f"holds {unknown[0]}, which does not belong to it", str(source))


def _summary(header: dict[str, Any]) -> Backup:
    files = header["files"]
    made_at = datetime.fromisoformat(header["made"])
    size = sum(size for size, _ in files.values())
    counts = header["datasets"], header["models"], tuple(header["missing"])
    return Backup(header["snapshot"], made_at, len(files), size, *counts)


# Metadata and records


def _copy_metadata(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """DuckLake's own tables as they are, into an SQLite file that DuckLake itself has made."""
    empty = CatalogStore(CatalogLocation.in_folder(path.parent))
    empty.close()
    shutil.rmtree(path.parent / "data")
    with closing(sqlite3.connect(path, isolation_level=None)) as copy:
        copy.execute("PRAGMA journal_mode = DELETE")  # one file, nothing beside it
        copy.execute("BEGIN")
        names = [
            row[0] for row in copy.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        for name in sorted(set(names) - OF_ONE_PLACE):
            columns = [row[1] for row in copy.execute(f'PRAGMA table_info("{name}")')]
            listed = ", ".join(f'"{column}"' for column in columns)
            copy.execute(f'DELETE FROM "{name}"')
            connection.execute(f'SELECT {listed} FROM {METADATA}."{name}"')
            put = f'INSERT INTO "{name}" VALUES ({", ".join("?" * len(columns))})'
            while rows := connection.fetchmany(_ROWS):
                copy.executemany(put, [[_for_sqlite(value) for value in row] for row in rows])
        copy.execute("COMMIT")


def _for_sqlite(value: object) -> object:
    """A value as DuckLake writes it into SQLite, whatever database it came from."""
    if isinstance(value, datetime):
        moment = value.astimezone(UTC) if value.tzinfo else value
        return f"{moment.replace(tzinfo=None).isoformat(' ', 'microseconds')}+00"
    if isinstance(value, uuid.UUID):
        return str(value)
    return int(value) if isinstance(value, bool) else value


def _copy_records(records: RecordStore, path: Path) -> None:
    copy = RecordStore(path, home_layout=records.home_layout)  # so that paths stay as they are
    with records.reading() as session, copy.session() as copied:
        for table in Base.metadata.sorted_tables:
            rows = session.execute(select(table)).mappings()
            while some := rows.fetchmany(_ROWS):
                copied.execute(insert(table), [dict(row) for row in some])
    copy.engine.dispose()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")


@contextmanager
def _data_file(store: CatalogStore, file: DataFile, scratch: Path) -> Iterator[Path]:
    """A data file as a local one."""
    data = store.location.data
    path = data / file.path if isinstance(data, Path) else data.fetch(file.path, scratch / "data")
    size = path.stat().st_size if path.is_file() else None
    if size != file.size:
        raise StorageError(
            f"{file.path}: {'missing' if size is None else f'{size} bytes, not {file.size}'}; "
            "compaction deleted it meanwhile, then run the backup again; or it is lost: "
            "framesift catalog check",
            file.path,
        )
    yield path
    if path.is_relative_to(scratch):
        path.unlink()
