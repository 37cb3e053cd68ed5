"""The catalog as plain files for other engines: one wide table, a row per file.

The columns of metaocean, then every tag with its own type: a frame is a row whose `scene` is not
null. The rows are streamed: what their joins do not hold in memory is spilled.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from catalog.errors import AlreadyExists, InvalidInput, not_installed
from catalog.lake.connection import LAKE
from catalog.lake.cursor import Cursor
from catalog.lake.layouts import with_collection
from catalog.lake.schema import FILES, FILES_COLUMNS
from catalog.lake.views import tag_columns
from catalog.maintenance.backup_files import cleared, disk
from catalog.storage.atomic_write import atomic_path
from catalog.store import CatalogStore

PART_ROWS = 500_000
"""Rows of a Parquet file: about 0.3 GB in memory with 44 tags."""

_BATCH_ROWS = 50_000

_WIDER = {"TINYINT": "INTEGER", "SMALLINT": "INTEGER"}
"""Iceberg's smallest integer has 32 bits."""

_NO_PATH_IN_A_URI = "?#%*[\\"

_NAMESPACE, _TABLE = "framesift", "files"


@dataclass(frozen=True, slots=True)
class Export:
    """Counts of an export."""

    snapshot: int
    """The catalog snapshot."""
    rows: int
    """Number of rows."""
    columns: int
    """Number of columns."""
    opened_by: str
    """What an engine opens: the folder, or Iceberg's metadata file."""


def export_parquet(store: CatalogStore, folder: Path, at: int | None = None) -> Export:
    """Write the wide table as Parquet files part-00000.parquet... into a new folder.

    Args:
        folder: The folder to make; it has its name when it is whole.
        at: The snapshot; the newest when None.
    """
    with (
        _new(folder),
        _wide(store, at) as wide,
        atomic_path(folder, is_folder=True, parents=True) as partial,
    ):
        rows = 0
        for number, table in enumerate(wide.parts()):
            pq.write_table(table, partial / f"part-{number:05}.parquet", compression="zstd")
            rows += table.num_rows
    return Export(wide.snapshot, rows, len(wide.columns), str(folder))


def export_iceberg(store: CatalogStore, folder: Path, at: int | None = None) -> Export:
    """Write the wide table as an Apache Iceberg table into a new folder, in one Iceberg snapshot.

    It is the table framesift.files of an SQLite catalog, catalog.db in the folder; an engine
    without one opens its metadata file. Iceberg names files by their absolute paths: the folder
    cannot be moved.

    Raises:
        InvalidInput: pyiceberg is not installed, or the folder's path means something in a URI.
        AlreadyExists: There is something at ``folder``.
        NotFound: There is no snapshot ``at``.
        StorageError: It cannot be written.
    """
    try:
        from pyiceberg.catalog.sql import SqlCatalog
    except ImportError as error:
        raise not_installed("Iceberg", "iceberg") from error
    path = str(folder.absolute())
    if odd := next((sign for sign in path if sign in _NO_PATH_IN_A_URI), None):
        raise InvalidInput(
            f"{path}: its path has a {odd!r}, which means something else in the URIs by which "
            "Iceberg names files; choose a folder without"
        )
    with _new(folder), _wide(store, at) as wide, _undone(folder):
        folder.mkdir(parents=True)
        uri = f"sqlite:///{path}/catalog.db"
        root = f"file://{path}"
        catalog = SqlCatalog(_NAMESPACE, uri=uri, warehouse=root)
        try:
            catalog.create_namespace(_NAMESPACE)
            table = catalog.create_table(
                f"{_NAMESPACE}.{_TABLE}",
                wide.schema(),
                location=f"{root}/{_TABLE}",
                properties={"framesift.snapshot": str(wide.snapshot)},
            )
            rows = 0
            with table.transaction() as transaction:
                for batch in wide.parts():
                    transaction.append(batch)
                    rows += batch.num_rows
            opened_by = table.metadata_location.removeprefix("file://")
        finally:
            catalog.close()
    return Export(wide.snapshot, rows, len(wide.columns), opened_by)


@dataclass(frozen=True)
class _Wide:
    """The wide table of one snapshot, inside a read transaction."""

    cursor: Cursor
    snapshot: int
    columns: tuple[str, ...]
    tables: tuple[str, ...]
    collection: str

    def parts(self) -> Iterator[pa.Table]:
        """Its rows, in no order; one part at least."""
        reader = self.cursor.execute(self._statement()).to_arrow_reader(_BATCH_ROWS)
        batches: list[pa.RecordBatch] = []
        first = True
        for batch in reader:
            batches.append(batch)
            if sum(one.num_rows for one in batches) >= PART_ROWS:
                yield pa.Table.from_batches(batches, reader.schema)
                batches, first = [], False
        if batches or first:
            yield pa.Table.from_batches(batches, reader.schema)

    def schema(self) -> pa.Schema:
        """Its columns."""
        return self.cursor.execute(f"{self._statement()} LIMIT 0").to_arrow_table().schema

    def _statement(self) -> str:
        joins = "".join(
            f" LEFT JOIN {LAKE}.main.{table} AS {table} ON {table}.fkey = f.fkey"
            for table in self.tables
        )
        files = with_collection(f"{LAKE}.main.{FILES}", self.collection)
        return f"SELECT {', '.join(self.columns)} FROM {files} AS f{joins}"


@contextmanager
def _wide(store: CatalogStore, at: int | None) -> Iterator[_Wide]:
    with store.reading(at) as cursor:
        tags = tag_columns(cursor)
        columns = [_column("f", name, kind) for name, kind in FILES_COLUMNS.items()]
        columns += [_column(tag.table, tag.tag, tag.type) for tag in tags]
        tables = dict.fromkeys(tag.table for tag in tags)
        yield _Wide(cursor, cursor.number, tuple(columns), tuple(tables), cursor.collection)


def _column(table: str, name: str, kind: str) -> str:
    return f'CAST({table}."{name}" AS {_WIDER.get(kind, kind)}) AS "{name}"'


@contextmanager
def _new(folder: Path) -> Iterator[None]:
    """Refuse what exists; turn the disk's errors into ours."""
    if folder.exists():
        raise AlreadyExists("folder", str(folder), "choose another name or move it away")
    with disk(folder):
        yield


@contextmanager
def _undone(folder: Path) -> Iterator[None]:
    """Remove the folder when the block fails."""
    try:
        yield
    except BaseException:
        with cleared(folder):
            raise
