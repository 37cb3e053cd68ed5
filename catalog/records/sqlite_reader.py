"""Reads the records' SQLite file for short commands, without SQLAlchemy.

To import that takes a quarter of such a command. Only records of the newest schema are read; where
anything is otherwise, None comes back and RecordStore answers, which also says what is wrong.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from catalog.records.revision import NEWEST
from catalog.storage.postgres import Postgres

_BUSY_S = 30


def class_names(database: Path | Postgres) -> dict[str, str] | None:
    """Class name of each class tag, in class order, as recorded_class_names."""
    rows = _rows(
        database,
        "SELECT tag, title FROM tag_definitions WHERE family = 'class_pixels' ORDER BY position",
    )
    return None if rows is None else {str(tag): str(title) for tag, title in rows}


def named_rules(database: Path | Postgres) -> tuple[tuple[str, str], ...] | None:
    """Name and rule of every collection, in the order in which they were made."""
    rows = _rows(database, "SELECT name, rule FROM collections ORDER BY id")
    return None if rows is None else tuple((str(name), str(rule)) for name, rule in rows)


def counts(database: Path | Postgres) -> tuple[int, int, int] | None:
    """Numbers of sources, versions of datasets, and jobs."""
    rows = _rows(
        database,
        "SELECT (SELECT count(*) FROM sources), (SELECT count(*) FROM datasets), "
        "(SELECT count(*) FROM jobs)",
    )
    if rows is None:
        return None
    sources, datasets, jobs = rows[0]
    return int(sources), int(datasets), int(jobs)


def _rows(database: Path | Postgres, statement: str) -> Sequence[Any] | None:
    if not isinstance(database, Path):
        return None
    uri = f"{database.absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_S)) as connection:
            revision = connection.execute("SELECT version_num FROM alembic_version").fetchone()
            return connection.execute(statement).fetchall() if revision == (NEWEST,) else None
    except sqlite3.Error:
        return None
