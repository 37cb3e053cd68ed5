"""A question to a selection: the frames that fulfil its conditions, sampled, in its order."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import duckdb
import numpy as np
import pyarrow as pa

from catalog.errors import InvalidInput, UnknownName
from catalog.lake_tables import FILES
from catalog.store import LAKE, CatalogStore, snapshot_of
from query.candidates import CHOSEN, candidates, chosen
from query.conditions import question_where
from query.frames_relation import FKEY_HASH, FramesRelation, frames_relation
from query.run_sql import execute
from query.sampling import Hashes, first, places
from query.selection import Question, Selection

_COLUMNS = (
    "fkey", "platform", "cluster", "datasource", "path", "filename", "scene", "camera",
    "frame_number", "image_width", "image_height", "image_file", "label_file", "image_size",
    "label_size",
)  # fmt: skip


def select_frames(
    store: CatalogStore,
    question: Question,
    class_names: Mapping[str, str],
    timeout_s: float = 600.0,
    at: int | None = None,
) -> Selection:
    """The frames that answer a question, in its order, then by fkey.

    Args:
        store: The catalog.
        question: What is wanted.
        class_names: Class name of each class tag; a range may name either.
        timeout_s: When to give up.
        at: The snapshot to ask; the newest when None.

    Raises:
        NotFound: There is no snapshot ``at``.
        UnknownName: A class, camera, scene or column that the catalog does not have.
        SqlError: The WHERE body is wrong.
    """
    with store.reading(at) as cursor:
        relation = frames_relation(cursor)
        classes = tuple(tag for tag in class_names if tag in relation.tags)
        with _wanted(cursor, relation, question, class_names, timeout_s) as (condition, values):
            order = [_order(item, relation) for item in question.order]
            statement = _statement(relation, condition, classes, order, question.limit)
            frames = execute(cursor, statement, timeout_s, values)
        return Selection(question, snapshot_of(cursor), frames, classes)


def frames_of(
    cursor: duckdb.DuckDBPyConnection,
    hashes: Hashes,
    class_names: Mapping[str, str],
    timeout_s: float = 600.0,
) -> tuple[pa.Table, tuple[str, ...]]:
    """The frames of those fkey_hash, by fkey, in Selection's columns; and the class tags.

    Args:
        cursor: Of CatalogStore.reading.
        hashes: fkey_hash of each frame wanted.
        class_names: Class name of each class tag.
        timeout_s: When to give up.
    """
    relation = frames_relation(cursor)
    classes = tuple(tag for tag in class_names if tag in relation.tags)
    with chosen(cursor, hashes):
        statement = _statement(relation, _CHOSEN, classes, [], None)
        return execute(cursor, statement, timeout_s), classes


_CHOSEN = f"{FKEY_HASH} IN (SELECT {FKEY_HASH} FROM {CHOSEN})"


@contextmanager
def _wanted(
    cursor: duckdb.DuckDBPyConnection,
    relation: FramesRelation,
    question: Question,
    class_names: Mapping[str, str],
    timeout_s: float,
) -> Iterator[tuple[str, list[object]]]:
    """The condition of what is wanted, and its values; sampled where the question says so."""
    if question.sample is None:
        yield question_where(question, relation, cursor, class_names)
        return
    found = candidates(cursor, relation, question, class_names, timeout_s=timeout_s)
    hashes = found.hashes
    drawn = hashes[first(places(hashes, question.seed), question.sample)]
    with chosen(cursor, np.asarray(drawn)):
        yield _CHOSEN, []


def _statement(
    relation: FramesRelation,
    condition: str,
    classes: tuple[str, ...],
    order: list[str],
    limit: int | None,
) -> str:
    by = ", ".join([*order, "fkey"])
    columns = ", ".join(f'"{name}"' for name in (*_COLUMNS, *classes))
    return (
        f"WITH frames AS ({relation.sql}),"
        f" wanted AS (SELECT * FROM frames WHERE {condition}),"
        " sized AS (SELECT w.*, l.size AS label_size FROM wanted AS w"
        f" JOIN {LAKE}.main.{FILES} AS l"
        " ON l.fkey = w.cluster || ':' || w.datasource || ':' || w.label_file)"
        f" SELECT {columns} FROM sized ORDER BY {by}"
        + (f" LIMIT {limit}" if limit is not None else "")
    )


def _order(item: str, relation: FramesRelation) -> str:
    name, _, direction = item.strip().partition(" ")
    if name.lower() not in relation.columns:
        raise UnknownName("column", name, relation.columns, "It is given in the order.")
    if direction.strip().lower() not in ("", "asc", "desc"):
        raise InvalidInput(f"order '{item}': expected a name, and 'desc' for falling order")
    return f'"{name.lower()}" {direction.strip().upper() or "ASC"} NULLS LAST'
