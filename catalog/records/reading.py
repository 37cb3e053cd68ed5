"""Reads records for short commands without SQLAlchemy, whose import takes half of such a command.

`RecordStore` reads the same by the same conditions. Only records of the newest schema are read
here; where anything is otherwise the store answers, which also says what is wrong.
"""

import json
import re
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from catalog.records.home_layout import HomeLayout
from catalog.records.revision import NEWEST
from catalog.storage.postgres import Postgres
from catalog.values import NOBODY, Owner, account_of

if TYPE_CHECKING:
    from catalog.records.kinds import Kind
    from catalog.records.tables import Dataset

BUSY_S = 30
_Record = TypeVar("_Record")
Value = str | int | float | None


class Records(Protocol):
    """Records that can be read: a `RecordStore`, or a `RecordReader`."""

    @property
    def owner(self) -> Owner:
        """The user limited to collections whose records these are; nobody for all records."""

    @property
    def user(self) -> str:
        """The owner's name."""

    @property
    def as_seen(self) -> "Callable[[Dataset], Dataset | None]":
        """Gives a dataset as that user sees it; None where the user sees no frame of it."""

    def select(
        self,
        kind: "Kind[_Record]",
        where: str = "",
        /,
        *,
        order: str = "",
        limit: int | None = None,
        **values: Value,
    ) -> list[_Record]:
        """Records of a kind.

        Args:
            where: A condition in SQL, with ``:name`` for each of the values.
            order: An ORDER BY body.
        """

    def rows(self, statement: str, /, **values: Value) -> list[tuple[Any, ...]]:
        """Rows of a SELECT of names and numbers.

        Args:
            statement: SQL, with ``:name`` for each of the values.
        """


def is_older(database: Path) -> bool:
    """Return whether records are of an older schema; False where there are none to be read."""
    uri = f"{database.absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_S)) as connection:
            revision = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.Error:
        return False
    return revision is not None and revision[0] < NEWEST


class RecordReader:
    """The records of a home, of which only some are read, and none is changed."""

    owner = NOBODY
    user = ""

    def __init__(
        self,
        database: Path | Postgres,
        home_layout: HomeLayout | None,
        store: Callable[[], Records],
    ) -> None:
        """Open nothing yet.

        Args:
            home_layout: See `RecordStore`.
            store: Opens the store, which answers what cannot be read here.
        """
        self._database, self._home_layout, self._store = database, home_layout, store

    @property
    def as_seen(self) -> "Callable[[Dataset], Dataset | None]":
        """Each dataset as it is."""
        return lambda dataset: dataset

    def select(
        self,
        kind: "Kind[_Record]",
        where: str = "",
        /,
        *,
        order: str = "",
        limit: int | None = None,
        **values: Value,
    ) -> list[_Record]:
        """Records of a kind: see `Records`. They have what the kind's class has but for methods."""
        end = f" WHERE {where}" if where else ""
        end += f" ORDER BY {order}" if order else ""
        end += f" LIMIT {limit:d}" if limit is not None else ""
        try:
            with self._rows.transaction():
                rows = self._read(kind.table, end, values)
        except (sqlite3.Error, _OtherwiseError):
            return self._store().select(kind, where, order=order, limit=limit, **values)
        return cast("list[_Record]", rows)

    def rows(self, statement: str, /, **values: Value) -> list[tuple[Any, ...]]:
        """Rows of a SELECT: see `Records`."""
        try:
            with self._rows.transaction():
                return self._rows.execute(statement, values).fetchall()
        except (sqlite3.Error, _OtherwiseError):
            return self._store().rows(statement, **values)

    @cached_property
    def _rows(self) -> "_SqliteRows | _PostgresRows":
        rows = _SqliteRows if isinstance(self._database, Path) else _PostgresRows
        return rows(self._database)  # type: ignore[arg-type]  # that of its kind

    def _read(self, table: str, end: str, values: Mapping[str, Value]) -> list[SimpleNamespace]:
        more = _JOINED.get(table, "")
        rows = self._rows.fetch(f"SELECT {table}.*{more} FROM {table}{end}", table, values)
        records = [SimpleNamespace(**self._full(table, row)) for row in rows]
        if table == "users":
            for record in records:
                record.account = account_of(record.id, record.created)
        if table == "jobs" and records:
            tasks: dict[int, list[SimpleNamespace]] = {record.id: [] for record in records}
            ids = ", ".join(map(str, tasks))
            for task in self._read("tasks", f" WHERE job_id IN ({ids}) ORDER BY position", {}):
                tasks[task.job_id].append(task)
            for record in records:
                record.tasks = tasks[record.id]
        return records

    def _full(self, table: str, row: dict[str, Any]) -> dict[str, Any]:
        """A row whose paths are as everywhere else."""
        if self._home_layout is not None:
            for column in PATH_COLUMNS.get(table, ()):
                row[column] = self._home_layout.mapped(row[column], self._home_layout.full)
        return row


class _OtherwiseError(Exception):
    """These records are for the store."""


class _SqliteRows:
    """Rows of a SQLite file."""

    def __init__(self, path: Path) -> None:
        uri = f"{path.absolute().as_uri()}?mode=ro"
        self._connection = sqlite3.connect(uri, uri=True, timeout=BUSY_S, isolation_level=None)
        revision = self._connection.execute("SELECT version_num FROM alembic_version").fetchone()
        if revision != (NEWEST,):
            raise _OtherwiseError
        self._types: dict[str, dict[str, str]] = {}

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN")
        try:
            yield
        finally:
            self._connection.execute("ROLLBACK")

    def execute(self, statement: str, values: Mapping[str, Value]) -> sqlite3.Cursor:
        return self._connection.execute(statement, values)

    def fetch(
        self, statement: str, table: str, values: Mapping[str, Value]
    ) -> Iterator[dict[str, Any]]:
        cursor = self.execute(statement, values)
        names, types = [column[0] for column in cursor.description], self._types_of(table)
        read = [_SQLITE_TYPES.get(types.get(name, ""), _as_it_is) for name in names]
        for row in cursor:
            yield {
                name: None if value is None else convert(value)
                for name, convert, value in zip(names, read, row, strict=True)
            }

    def _types_of(self, table: str) -> dict[str, str]:
        if table not in self._types:
            columns = self._connection.execute(f"PRAGMA table_info({table})")
            self._types[table] = {column[1]: column[2] for column in columns}
        return self._types[table]


class _PostgresRows:
    """Rows of a PostgreSQL database."""

    def __init__(self, database: Postgres) -> None:
        import psycopg

        self._errors = psycopg.Error
        try:
            self._connection = psycopg.connect(**database.keywords)
            self._connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            self._connection.read_only = True
            with self._connection.transaction():
                row = self._connection.execute("SELECT version_num FROM alembic_version").fetchone()
        except psycopg.Error:
            raise _OtherwiseError from None  # the store says it, without the password
        if row != (NEWEST,):
            raise _OtherwiseError

    @contextmanager
    def transaction(self) -> Iterator[None]:
        try:
            with self._connection.transaction():
                yield
        except self._errors:
            raise _OtherwiseError from None

    def execute(self, statement: str, values: Mapping[str, Value]) -> Any:
        return self._connection.execute(cast("Any", _NAMED.sub(r"%(\1)s", statement)), values)

    def fetch(
        self, statement: str, _table: str, values: Mapping[str, Value]
    ) -> Iterator[dict[str, Any]]:
        cursor = self.execute(statement, values)
        names = [column.name for column in cursor.description or ()]
        for row in cursor:
            yield dict(zip(names, row, strict=True))


_NAMED = re.compile(r"(?<!:):(\w+)")


def _as_it_is(value: Any) -> Any:
    return value


_SQLITE_TYPES: Mapping[str, Callable[[Any], Any]] = {
    "DATETIME": datetime.fromisoformat,
    "JSON": json.loads,
    "BOOLEAN": bool,
}
"""By the type with which a column was declared, what makes its value of what SQLite keeps."""

DATASET_OF_JOB = (
    "(SELECT datasets.name || '@' || datasets.version FROM datasets "
    "WHERE datasets.id = jobs.dataset_id) AS dataset"
)
"""The column "name@version" of a job's dataset, which the table has not."""

_JOINED = {"jobs": f", {DATASET_OF_JOB}"}
"""Columns that a table's class has besides the table's own."""

PATH_COLUMNS: Mapping[str, Sequence[str]] = {
    "datasets": ("manifest",),
    "stagings": ("cache", "manifest"),
    "jobs": ("request", "paths"),
    "tasks": ("request",),
}
"""Columns whose texts are paths, relative to the home's folders: `PathText` and `PathsJson`."""


def all_of(*conditions: str) -> str:
    """The condition that each of these holds; empty ones are left out."""
    return " AND ".join(filter(None, conditions))


def holds(column: str, text: str) -> tuple[str, str]:
    """The condition that a column holds ``:holding``, in whatever case, and that value."""
    escaped = "".join(f"/{one}" if one in "/%_" else one for one in text.lower())
    return f"lower({column}) LIKE :holding ESCAPE '/'", f"%{escaped}%"


def ids_in(column: str, ids: Collection[int]) -> str:
    """The condition that a number is one of these."""
    return f"{column} IN ({', '.join(map(str, ids))})" if ids else "1 = 0"
