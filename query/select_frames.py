"""A question to a selection: the frames that fulfil its conditions, sampled, in its order."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import duckdb
import numpy as np
import pyarrow as pa

from catalog.lake_tables import FILES
from catalog.store import LAKE, CatalogStore, snapshot_of
from catalog.wide_tables import FKEY_HASH
from query.candidates import CHOSEN, candidates, chosen
from query.conditions import question_where, vocabulary_of
from query.frames_relation import FramesRelation, frames_relation
from query.question_sql import OrderItem, order_items
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
        at: The snapshot to ask where the question names none; the newest when None.

    Raises:
        NotFound: There is no such snapshot.
        UnknownName: A class, tag, camera, scene or column that the catalog does not have.
        InvalidInput: A value or operator does not fit its tag, or ``at`` not the question.
        SqlError: The WHERE body is wrong.
    """
    with store.reading(question.asked_of(at)) as cursor:
        relation = frames_relation(cursor)
        classes = tuple(tag for tag in class_names if tag in relation.tags)
        with _wanted(cursor, relation, question, class_names, timeout_s) as (condition, values):
            items = order_items(question, vocabulary_of(relation, class_names))
            order = [_order(item) for item in items]
            statement = _statement(relation, condition, classes, order, question.limit)
            frames = execute(cursor, statement, timeout_s, values)
        snapshot = snapshot_of(cursor)
        asked = question.model_copy(update={"snapshot": snapshot})
        return Selection(asked, snapshot, frames, classes)


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
    by = f"ORDER BY {', '.join([*order, 'fkey'])}"
    columns = ", ".join(f'"{name}"' for name in (*_COLUMNS, *classes))
    if relation.with_label_size:
        condition = f"({condition}) AND label_size IS NOT NULL"
        sized = "SELECT * FROM wanted"
    else:
        sized = (
            f"SELECT w.*, l.size AS label_size FROM wanted AS w JOIN {LAKE}.main.{FILES} AS l"
            " ON l.fkey = w.cluster || ':' || w.datasource || ':' || w.label_file"
        )
    first = f"{by} LIMIT {limit}" if limit is not None else ""
    return (
        f"WITH frames AS ({relation.sql}),"
        f" wanted AS (SELECT * FROM frames WHERE {condition} {first}), sized AS ({sized})"
        f" SELECT {columns} FROM sized {by}"
    )


def _order(item: OrderItem) -> str:
    return f'"{item.column.name}" {"DESC" if item.falling else "ASC"} NULLS LAST'
