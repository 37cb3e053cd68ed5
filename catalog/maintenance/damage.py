"""Finds damaged files of a catalog, the snapshots that need them, and the way back.

Works where the catalog itself cannot be opened. Parquet files are read whole: damage in a page
shows when it is decompressed, and neither size nor footer tells.
"""

import glob
import sqlite3
from collections.abc import Callable, Collection, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import duckdb

from catalog.errors import CatalogDamaged
from catalog.lake.connection import METADATA, Lake, translated
from catalog.lake.metadata.own_tables import (
    DataFile,
    commits,
    data_files,
    snapshots_that_need,
)
from catalog.maintenance.findings import Finding, listed
from catalog.storage.location import CatalogLocation
from catalog.storage.postgres import Postgres

_FROM_BACKUP = "restore the catalog from a backup"
_RECORDS_REMEDY = (
    "restore the records from a backup, or move them away and add the sources again: framesift "
    "source add with the same --cluster and --datasource; the catalog's frames stay"
)
_READ_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Damage:
    """Damage of a catalog."""

    findings: list[Finding]
    """It, in words."""
    tables: frozenset[str]
    """Tables whose newest state cannot be read."""
    opens: bool = True
    """Whether DuckLake's metadata can be read."""


def damage(location: CatalogLocation, lock_wait_s: float = 60.0) -> Damage:
    """Findings on a catalog's metadata and data files that are damaged or missing.

    Args:
        lock_wait_s: How long to wait for who writes; the files are read while others write.
    """
    try:
        with translated(location):
            lake = Lake(location, {}, read_only=True)
    except CatalogDamaged as error:
        finding = Finding("damaged_metadata", str(error), _FROM_BACKUP)
        return Damage([finding], frozenset(), opens=False)
    try:
        if isinstance(location.metadata, Path):
            findings = _of_metadata(lake.connection, location.metadata)
            if findings:
                return Damage(findings, frozenset(), opens=False)
        with translated(location):
            return _of_data(lake.connection, location, lock_wait_s)
    finally:
        lake.close()


def damage_of_records(path: Path | Postgres) -> list[Finding]:
    """Findings where the records' SQLite file is damaged or gone."""
    if isinstance(path, Postgres):
        return []
    if not path.is_file():
        what = f"{path}: the records of sources, scans, datasets and users are gone"
        return [Finding("records_gone", what, _RECORDS_REMEDY)]
    with closing(sqlite3.connect(path)) as connection:

        def asked(statement: str) -> list[str]:
            return [str(row[0]) for row in connection.execute(statement).fetchall()]

        wrong, tables = _of_sqlite(asked, sqlite3.DatabaseError)
    if not wrong:
        return []
    return [
        Finding(
            "damaged_records",
            _finding_of(path, tables, wrong),
            _RECORDS_REMEDY,
        )
    ]


def _of_metadata(connection: duckdb.DuckDBPyConnection, path: Path) -> list[Finding]:
    # By DuckDB's own SQLite: two of them in one process do not see each other's locks.
    def asked(statement: str) -> list[str]:
        answer = connection.execute(f"SELECT * FROM sqlite_query('{METADATA}', ?)", [statement])
        return [str(row[0]) for row in answer.fetchall()]

    wrong, tables = _of_sqlite(asked, duckdb.Error)
    if not wrong:
        return []
    what = f"{_finding_of(path, tables, wrong)}; no snapshot can be relied on"
    return [Finding("damaged_metadata", what, _FROM_BACKUP)]


def _of_sqlite(
    query: Callable[[str], list[str]], fails: type[Exception]
) -> tuple[list[str], list[str]]:
    """Faults that SQLite finds in a database, and the tables that cannot be read.

    Args:
        query: Gives the first column of a statement's rows, as texts.
    """
    try:
        wrong = query("PRAGMA integrity_check(3)")
    except fails as error:
        wrong = [str(error)]
    if wrong == ["ok"]:
        return [], []
    tables = []
    with suppress(fails):  # or the list of tables itself is damaged
        for name in query("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"):
            try:
                query(f'SELECT count(*) FROM "{name}" NOT INDEXED')
            except fails:
                tables.append(name)
    return wrong, tables


def _finding_of(path: Path, tables: Sequence[str], wrong: Sequence[str]) -> str:
    of = f"tables {listed(tables)}" if tables else "pages"
    reason = " ".join(" ".join(wrong).split())[:200]
    return f"{path}: {of} cannot be read: {reason}"


def _of_data(
    connection: duckdb.DuckDBPyConnection, location: CatalogLocation, lock_wait_s: float
) -> Damage:
    # Under the write lock, so that no writer's or compaction's file comes or goes in between.
    with location.quiesced(lock_wait_s, "the catalog is being checked"):
        there = location.parquet_files()
        files = data_files(connection)
        lost = {file.path for file in files if there.get(file.path) != file.size}
        snapshots = snapshots_that_need(connection, lost)
    unreadable = _unreadable(connection, location, [one for one in files if one.path not in lost])
    if unreadable:  # and not compacted away meanwhile
        snapshots |= snapshots_that_need(connection, unreadable)
        unreadable &= snapshots.keys()
    complete = {commit.number for commit in commits(connection)}.difference(*snapshots.values())
    findings = []
    for kind, how, bad in (
        ("missing_file", "missing or of another size", lost),
        ("damaged_file", "cannot be read", unreadable),
    ):
        for newest, whose in ((True, "the newest snapshot"), (False, "older snapshots")):
            some = [one for one in files if one.path in bad and one.newest is newest]
            if some:
                needing = {number for file in some for number in snapshots.get(file.path, ())}
                paths = listed([f"{file.path} ({how})" for file in some])
                what = f"{len(some)} data files of {whose}: {paths}; in {_ranges(needing)}"
                findings.append(Finding(kind, what, _remedy(newest, max(complete, default=None))))
    tables = {one.table for one in files if one.newest and one.path in lost | unreadable}
    return Damage(findings, frozenset(tables))


def _remedy(newest: bool, complete: int | None) -> str:
    if not newest:
        return "restore them from a backup, or let these snapshots go: framesift compact"
    if complete is None:
        return f"{_FROM_BACKUP}, or move it away and ingest again: no snapshot is whole"
    return (
        "restore them or the catalog from a backup, or go back to the newest whole snapshot: "
        f"framesift catalog restore --to-snapshot {complete}"
    )


def _unreadable(
    connection: duckdb.DuckDBPyConnection, location: CatalogLocation, files: Sequence[DataFile]
) -> set[str]:
    """Paths of the files that have a page which cannot be read."""

    def alike(file: DataFile) -> tuple[str, bool]:
        return file.table, file.path.endswith("-delete.parquet")

    unreadable: set[str] = set()
    for _, group in groupby(sorted(files, key=alike), alike):
        paths = [file.path for file in group]
        for start in range(0, len(paths), _READ_AT_ONCE):
            some = paths[start : start + _READ_AT_ONCE]
            if not _reads(connection, location, some):
                unreadable |= {path for path in some if not _reads(connection, location, [path])}
    return unreadable


def _reads(
    connection: duckdb.DuckDBPyConnection, location: CatalogLocation, paths: Sequence[str]
) -> bool:
    root = glob.escape(str(location.data).rstrip("/"))  # DuckDB takes a path for a pattern
    try:
        connection.execute(
            "SELECT bit_xor(hash(t)) FROM read_parquet(?, union_by_name => true) AS t",
            [[f"{root}/{path}" for path in paths]],
        ).fetchall()
    except duckdb.Error as error:
        if isinstance(error, duckdb.IOException) and not isinstance(location.data, Path):
            raise  # S3 is away; a local disk that cannot read a file has lost it
        return False
    return True


def _ranges(numbers: Collection[int]) -> str:
    """Snapshots by number: "snapshots 3 to 5, 9"."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    ranges = [f"{p[0]} to {p[-1]}" if len(p) > 1 else str(p[0]) for p in parts]
    word = "snapshot" if len(numbers) == 1 else "snapshots"
    return f"{word} {', '.join(ranges)}" if ranges else "no snapshot that there is"
