"""The same frames in other engines, each asked in its own best way, for query_speed.

Every peer answers `ranges` (platform, datasource, filename), `share` (one number), `classes`
(frames and pixels of every class) and `sample` (fkeys of 5,000 frames, each camera by its share).
"""

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import psycopg

from benchmarks.query_statements import SAMPLE, SHARE, SIX_TABLES
from catalog.lake.extensions import file_of
from tests.postgres_server import PostgresServer

Rows = list[tuple[Any, ...]]

RANGES = (
    "front = 1 AND center = 1 AND car BETWEEN 10000 AND 20000 AND bicycle BETWEEN 3000 AND 5000 "
    "AND pedestrian BETWEEN 5000 AND 6000"
)
SHARE_BY_HAND = (
    "SELECT sum(rd_normal_street) / (count(*) * 1920.0 * 1208 / 100) FROM wide "
    "WHERE rd_normal_street IS NOT NULL"
)


class Peer(ABC):
    """One engine with the frames in it."""

    name: str

    def ranges(self) -> Rows:
        """The redbook's ranges."""
        return self.rows(f"SELECT platform, datasource, filename FROM wide WHERE {RANGES}")

    def share(self) -> Rows:
        """The share of normal street, in percent."""
        return self.rows(SHARE_BY_HAND)

    def classes(self, tags: Sequence[str]) -> Rows:
        """Frames and pixels of each class, in one row."""
        each = ", ".join(
            f'sum(CASE WHEN "{t}" > 0 THEN 1 ELSE 0 END), sum(CAST("{t}" AS BIGINT))' for t in tags
        )
        return self.rows(f"SELECT {each} FROM wide")

    def sample(self) -> Rows:
        """Frames of each camera by its share, at random."""
        return self.rows(
            "SELECT fkey, camera FROM (SELECT fkey, camera, row_number() OVER (PARTITION BY camera "
            f"ORDER BY {self.random}) AS place, count(*) OVER (PARTITION BY camera) AS frames "
            f"FROM wide) AS ranked WHERE place <= round({SAMPLE}.0 * frames / "
            "(SELECT count(*) FROM wide))"
        )

    random = "hash(fkey)"

    @abstractmethod
    def rows(self, statement: str) -> Rows:
        """The rows of a statement."""


class DuckDbWide(Peer):
    """DuckDB, one wide table in memory."""

    name = "DuckDB wide"

    def __init__(self, data: Path) -> None:
        """Copy the frames into memory."""
        self.connection = duckdb.connect()
        self.connection.execute(f"ATTACH '{data}' AS data (READ_ONLY)")
        for table in ("wide", "metaocean"):
            self.connection.execute(f"CREATE TABLE {table} AS FROM data.{table}")
        self.connection.execute("DETACH data")

    def rows(self, statement: str) -> Rows:
        """Rows as Arrow, which is the fastest, and then as Python's."""
        table = self.connection.execute(statement).to_arrow_table()
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


class DuckDbViews(DuckDbWide):
    """DuckDB, the redbook's statements over a view for each tag."""

    name = "DuckDB views"

    def __init__(self, data: Path, tags: Sequence[str]) -> None:
        """Load what DuckDbWide loads, and make the views."""
        super().__init__(data)
        for tag in tags:
            self.connection.execute(
                f'CREATE VIEW "t_{tag}" AS SELECT fkey, CAST("{tag}" AS VARCHAR) AS value FROM wide'
            )

    def ranges(self) -> Rows:
        """The comma join; int() is CAST there."""
        return self.rows(_casts(SIX_TABLES))

    def share(self) -> Rows:
        """The sum over the view."""
        return self.rows(_casts(SHARE))

    def classes(self, tags: Sequence[str]) -> Rows:
        """A statement for each class, as there is a view for each."""
        return [_joined(self.rows(_of_tag(tag))[0] for tag in tags)]


class Sqlite(Peer):
    """SQLite, one wide table in a file."""

    name = "SQLite wide"
    random = "random()"

    def __init__(self, data: Path, folder: Path) -> None:
        """Write the file."""
        path = folder / "wide.sqlite"
        with duckdb.connect() as connection:
            connection.execute(f"LOAD '{file_of('sqlite_scanner')}'")
            connection.execute(f"ATTACH '{data}' AS data (READ_ONLY)")
            connection.execute(f"ATTACH '{path}' AS copy (TYPE sqlite)")
            connection.execute("CREATE TABLE copy.wide AS FROM data.wide")
        self.connection = sqlite3.connect(path)
        self.connection.execute("PRAGMA mmap_size = 4000000000")

    def rows(self, statement: str) -> Rows:
        """Fetched."""
        return self.connection.execute(statement).fetchall()


class PostgresWide(Peer):
    """PostgreSQL, one wide table."""

    name = "PostgreSQL wide"
    random = "hashtextextended(fkey, 7)"

    def __init__(self, server: PostgresServer, data: Path) -> None:
        """Copy the frames into a database of their own."""
        self.url = server.url(server.new_database())
        with duckdb.connect() as connection:
            connection.execute(f"LOAD '{file_of('postgres_scanner')}'")
            connection.execute(f"ATTACH '{data}' AS data (READ_ONLY)")
            connection.execute(f"ATTACH '{self.url}' AS copy (TYPE postgres)")
            self.load(connection)
        self.connection = psycopg.connect(self.url, autocommit=True)
        self.connection.execute("VACUUM ANALYZE")
        self.connection.execute("SET work_mem = '256MB'")

    def load(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Make the tables in ``copy``."""
        connection.execute("CREATE TABLE copy.wide AS FROM data.wide")

    def rows(self, statement: str) -> Rows:
        """Fetched."""
        return list(self.connection.execute(statement).fetchall())


class PostgresPerTag(PostgresWide):
    """PostgreSQL as Spectrum Discover lays it out: metaocean, and a table of text for each tag."""

    name = "PostgreSQL, a table per tag"

    def __init__(self, server: PostgresServer, data: Path, tags: Sequence[str]) -> None:
        """Load what PostgresWide loads."""
        self.tags = tags
        super().__init__(server, data)

    def load(self, connection: duckdb.DuckDBPyConnection) -> None:
        """A table for each tag, each with an index on fkey."""
        connection.execute("CREATE TABLE copy.metaocean AS FROM data.metaocean")
        tables = ["metaocean"]
        for tag in (*self.tags, "camera"):
            connection.execute(
                f"CREATE TABLE copy.t_{tag} AS SELECT fkey, CAST({tag} AS VARCHAR) AS value "
                "FROM data.wide"
            )
            tables.append(f"t_{tag}")
        with psycopg.connect(self.url, autocommit=True) as plain:
            for table in tables:
                plain.execute(f"CREATE UNIQUE INDEX ON {table} (fkey)")

    def ranges(self) -> Rows:
        """The comma join."""
        return self.rows(_casts(SIX_TABLES))

    def share(self) -> Rows:
        """The sum over the tag's table."""
        return self.rows(_casts(SHARE))

    def classes(self, tags: Sequence[str]) -> Rows:
        """A statement for each class, as there is a table for each."""
        return [_joined(self.rows(_of_tag(tag))[0] for tag in tags)]

    def sample(self) -> Rows:
        """Sample as over one table: a camera is a tag."""
        return self.rows(
            "SELECT fkey, value FROM (SELECT fkey, value, row_number() OVER (PARTITION BY value "
            f"ORDER BY {self.random}) AS place, count(*) OVER (PARTITION BY value) AS frames "
            f"FROM t_camera) AS ranked WHERE place <= round({SAMPLE}.0 * frames / "
            "(SELECT count(*) FROM t_camera))"
        )


def _casts(statement: str) -> str:
    """Db2's int(x) as every other SQL has it; percent as a fraction, not truncated."""
    plain = statement.replace("with ur", "").replace("int(", "(").replace(".value)", ".value::INT)")
    return plain.replace("/100)", "/100.0)")


def _of_tag(tag: str) -> str:
    return (
        "SELECT sum(CASE WHEN CAST(value AS INT) > 0 THEN 1 ELSE 0 END), "
        f'sum(CAST(value AS BIGINT)) FROM "t_{tag}"'
    )


def _joined(rows: Any) -> tuple[Any, ...]:
    return tuple(value for row in rows for value in row)
