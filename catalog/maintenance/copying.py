"""Copies a catalog, with its whole history, to a team's PostgreSQL and data; and its records.

Parquet files and DuckLake's own tables are copied as they are, so that snapshots keep their
numbers, and a dataset's snapshot is the same there. With the records go the manifests of their
datasets and their models, beside the data. Nothing is left of a copy that fails.
"""

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import insert, select, text
from sqlalchemy.orm import Session

from catalog.errors import AlreadyExists, CatalogDamaged, InvalidInput, StorageError
from catalog.lake.connection import LAKE, METADATA, Lake, snapshot_of
from catalog.lake.cursor import Cursor
from catalog.lake.metadata.own_tables import (
    OF_ONE_PLACE,
    DataFile,
    data_files,
    is_in_use,
    tables,
    tables_in,
)
from catalog.records.artifacts import Artifact, Artifacts
from catalog.records.home_layout import HomeLayout, local_file, names_in, put_file
from catalog.records.store import RecordStore
from catalog.records.tables import Base
from catalog.storage.location import WRITE_LOCK, CatalogLocation
from catalog.storage.postgres import Postgres
from catalog.storage.s3_prefix import S3Prefix
from catalog.storage.to_disk import to_disk
from catalog.store import CatalogStore

_AT_ONCE = 8
_ROWS = 5_000


@dataclass(frozen=True, slots=True)
class Copied:
    """Counts of a copy, found equal afterwards."""

    snapshot: int
    """The newest snapshot."""
    snapshots: int
    """How many there are."""
    rows: dict[str, int]
    """Rows of each table of the newest snapshot."""
    files: int
    """Parquet files."""
    bytes: int
    """Their size [bytes]."""
    records: dict[str, int]
    """Rows of each table of the records; empty where they were not copied."""
    datasets: int = 0
    """Manifests of datasets that were copied with them."""
    models: int = 0
    """Models that were copied with them."""
    missing: tuple[str, ...] = ()
    """Datasets whose manifest could not be found, "name@version"; see framesift catalog check."""


def copy_catalog(
    store: CatalogStore,
    target: CatalogLocation,
    records: tuple[RecordStore, RecordStore] | None = None,
    progress: Callable[[int, int], None] = lambda _done, _files: None,
) -> Copied:
    """Copy a catalog while others read it; writers wait.

    Args:
        target: Where to; its metadata in PostgreSQL. There must be nothing yet.
        records: The records to copy, and the empty ones to copy them to.
        progress: Told how many of how many data files are copied.

    Raises:
        InvalidInput: The target's metadata is not in PostgreSQL.
    """
    database = target.metadata
    if not isinstance(database, Postgres):
        raise InvalidInput(
            f"{database}: a catalog is copied to PostgreSQL, expected postgresql://...; for a copy "
            "in SQLite use framesift catalog backup"
        )
    target.make_folders()
    files_place = _files_place(target, records)
    _refuse_what_is_there(target, database, records, files_place)
    with (
        store.lock(WRITE_LOCK, "the catalog is being copied"),
        store.reading() as cursor,
        target.lock(WRITE_LOCK, 0.0, f"{target.metadata} is being written"),
        _undone_on_failure(target, database, files_place),
    ):
        files = data_files(cursor)
        _copy_files(store.location, target, files, progress)
        _copy_metadata(cursor, target, database)
        copy = CatalogStore(target)
        try:
            rows = _compared(cursor, copy, target, files)
        finally:
            copy.close()
        row = cursor.execute(f"SELECT count(*) FROM {LAKE}.snapshots()").fetchone()
        artifacts = Artifacts.of(records[0]) if records is not None else Artifacts({}, (), ())
        models = [artifact for artifact in artifacts.jobs if artifact.is_model]
        if files_place is not None:
            _copy_artifacts([*artifacts.datasets.values(), *models], files_place)
        return Copied(
            snapshot_of(cursor),
            int(row[0]) if row else 0,
            rows,
            len(files),
            sum(file.size for file in files),
            _copy_records(*records) if records is not None else {},
            len(artifacts.datasets),
            len(models),
            artifacts.missing,
        )


def _files_place(
    target: CatalogLocation, records: tuple[RecordStore, RecordStore] | None
) -> Path | S3Prefix | None:
    """Where manifests and models go; None where no records are copied, or no place is beside."""
    if records is None or records[0].home_layout is None:
        return None
    return HomeLayout.of(records[0].home_layout.home, target).files


def _copy_artifacts(artifacts: Sequence[Artifact], folder: Path | S3Prefix) -> None:
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(_AT_ONCE) as pool:

        def copy(artifact: Artifact, name: str) -> None:
            with local_file(artifact.location, name, Path(scratch)) as path:
                put_file(path, folder, f"{artifact.team_folder}/{name}")

        copies = [
            pool.submit(copy, artifact, name) for artifact in artifacts for name in artifact.names
        ]
        for one in copies:
            one.result()


def _refuse_what_is_there(
    target: CatalogLocation,
    database: Postgres,
    records: tuple[RecordStore, RecordStore] | None,
    files: Path | S3Prefix | None,
) -> None:
    with database.connected() as connection:
        if is_in_use(connection):
            raise AlreadyExists(
                "catalog", str(database), "copy to an empty database, or use the one there"
            )
    if target.holds_files(""):
        raise AlreadyExists(
            "catalog data", str(target.data), "choose a place that is empty, or empty this one"
        )
    if files is not None and (isinstance(files, S3Prefix) or files.exists()) and names_in(files):
        raise AlreadyExists("datasets", str(files), "choose another place, or empty this one")
    if records is not None:
        with records[1].reading() as session:
            for table in Base.metadata.sorted_tables:
                if session.execute(select(table).limit(1)).first() is not None:
                    raise AlreadyExists(
                        "records", str(records[1].location), "copy to an empty database"
                    )


@contextmanager
def _undone_on_failure(
    target: CatalogLocation, database: Postgres, files: Path | S3Prefix | None
) -> Iterator[None]:
    try:
        yield
    except BaseException:
        for folder in (target.data, files):
            if isinstance(folder, S3Prefix):
                folder.delete_all()
            elif folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
        with database.connected() as connection:
            for name in tables_in(connection):
                connection.execute(f'DROP TABLE public."{name}"')
        raise


# Data files


def _copy_files(
    source: CatalogLocation,
    target: CatalogLocation,
    files: Sequence[DataFile],
    progress: Callable[[int, int], None],
) -> None:
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(_AT_ONCE) as pool:

        def copy(file: DataFile) -> None:
            if isinstance(source.data, Path):
                _put(source.data / file.path, target, file)
                return
            path = Path(scratch, Path(file.path).name)  # DuckLake's names are unique
            source.data.fetch(file.path, path)
            _put(path, target, file)
            path.unlink()

        for done, _ in enumerate(pool.map(copy, files), start=1):
            progress(done, len(files))
    if isinstance(target.data, Path):
        for folder in {folder for file in files for folder in (target.data / file.path).parents}:
            if folder.is_relative_to(target.data):
                to_disk(folder)


def _put(path: Path, target: CatalogLocation, file: DataFile) -> None:
    if not path.is_file():
        raise StorageError(
            f"{path}: missing, and a snapshot needs it; nothing was copied. "
            "See framesift catalog check",
            str(path),
        )
    if isinstance(target.data, S3Prefix):
        target.data.put(file.path, path)
        return
    copy = target.data / file.path
    try:
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        to_disk(copy)
    except OSError as error:
        raise StorageError(
            f"{error.filename}: cannot be written: {error.strerror}; nothing was copied",
            str(error.filename),
        ) from error


def _sizes(target: CatalogLocation) -> dict[str, int]:
    """Size of every file at the target, by its path below the data."""
    if isinstance(target.data, S3Prefix):
        prefix = target.data.prefix
        return {key.removeprefix(prefix): size for key, size in target.data.objects()}
    return {
        path.relative_to(target.data).as_posix(): path.stat().st_size
        for path in target.data.rglob("*")
        if path.is_file()
    }


# Metadata


def _copy_metadata(cursor: Cursor, target: CatalogLocation, database: Postgres) -> None:
    """DuckLake's tables as they are, in one transaction, into those that DuckLake made there."""
    Lake(target, {}, read_only=False).close()
    with database.connected() as connection, connection.transaction():
        for name in tables_in(connection):
            if name in OF_ONE_PLACE:  # the new data's place is its own
                continue
            connection.execute(f'DELETE FROM public."{name}"')
            columns = [
                str(row[0])
                for row in connection.execute(
                    "SELECT column_name FROM information_schema.columns "
                    "WHERE table_schema = 'public' AND table_name = %s ORDER BY ordinal_position",
                    [name],
                )
            ]
            listed = ", ".join(f'"{column}"' for column in columns)
            rows = cursor.execute(f'SELECT {listed} FROM {METADATA}."{name}"')
            put = f'COPY public."{name}" ({listed}) FROM STDIN'
            with connection.cursor().copy(put) as copy:
                while some := rows.fetchmany(_ROWS):
                    for row in some:
                        copy.write_row(row)


# Comparison


def _compared(
    cursor: Cursor,
    copy: CatalogStore,
    target: CatalogLocation,
    files: Sequence[DataFile],
) -> dict[str, int]:
    """Rows of each table, which has the same count and digest in both.

    Raises:
        CatalogDamaged: Something differs.
    """
    expected = {file.path: file.size for file in files}
    if _sizes(target) != expected:
        raise CatalogDamaged(f"{target.data}: its files differ from what was copied; copy again")
    rows = {}
    with copy.reading() as copied:
        if snapshot_of(copied) != snapshot_of(cursor) or tables(copied) != tables(cursor):
            raise CatalogDamaged(f"{target.metadata}: its tables differ from the original's")
        for table in tables(cursor):
            before, after = _digest(cursor, table), _digest(copied, table)
            if before != after:
                raise CatalogDamaged(
                    f"{target.metadata}: table {table} has {after[0]:,} rows, the original "
                    f"{before[0]:,}, or other values; the copy was removed"
                )
            rows[table] = before[0]
    return rows


def _digest(cursor: Cursor, table: str) -> tuple[int, str]:
    """Number of rows and a digest of their values, in whatever order."""
    row = cursor.execute(
        f"SELECT count(*), coalesce(sum(hash(t)::HUGEINT), 0)::VARCHAR || ' ' || "
        f'coalesce(bit_xor(hash(t)), 0)::VARCHAR FROM {LAKE}.main."{table}" AS t'
    ).fetchone()
    return (int(row[0]), str(row[1])) if row else (0, "")


# Records


def _copy_records(source: RecordStore, target: RecordStore) -> dict[str, int]:
    """Every record with its number, in one transaction; rows of each table."""
    copied = {}
    # In the same folders, so that paths are copied as the database has them.
    target = RecordStore(target.location, home_layout=source.home_layout)
    with source.reading() as session, target.session() as new:
        for table in Base.metadata.sorted_tables:
            rows = session.execute(select(table)).mappings()
            while some := rows.fetchmany(_ROWS):
                new.execute(insert(table), [dict(row) for row in some])
            before, after = _record_digest(session, table), _record_digest(new, table)
            if before != after:
                raise CatalogDamaged(f"{target.location}: {table.name} differ from the original")
            copied[table.name] = before[0]
        if isinstance(target.location, Postgres):
            _continue_numbers(new)
    return copied


def _record_digest(session: Session, table: Any) -> tuple[int, str]:
    rows = session.execute(select(table).order_by(*table.primary_key)).all()
    digest = hashlib.sha256()
    for row in rows:
        digest.update(repr(tuple(row)).encode("utf-8", "surrogatepass"))
    return len(rows), digest.hexdigest()


def _continue_numbers(session: Session) -> None:
    """Let PostgreSQL number new rows after the copied ones."""
    for table in Base.metadata.sorted_tables:
        if table.autoincrement_column is not None:
            session.execute(
                text(
                    f"SELECT setval(pg_get_serial_sequence('{table.name}', 'id'), "
                    f"(SELECT coalesce(max(id), 0) + 1 FROM {table.name}), false)"
                )
            )
