"""The frames that answer a question's conditions, a few columns of each: what samples draw from."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

import duckdb
import numpy as np
import pyarrow as pa

from catalog.errors import UnknownName
from catalog.lake.schema import FILES, FRAME_TAGS
from catalog.lake.sql_guard import SelectOnly, kept
from catalog.memory.wide_names import FKEY_HASH, HASH_OF_FKEY
from catalog.store import LAKE
from query.frames.frames_relation import FramesRelation
from query.frames.sampling import Hashes
from query.frames.selection import Question
from query.question.conditions import question_where
from query.run.run_sql import execute, execute_encoded


@dataclass(frozen=True)
class Candidates:
    """Frames without their names: 8 bytes a frame instead of some 300.

    Attributes:
        rows: One row per frame, in no order: fkey_hash, uint64, and the columns asked for.
    """

    rows: pa.Table

    @property
    def hashes(self) -> Hashes:
        """Each frame's fkey_hash."""
        return cast(Hashes, self.rows[FKEY_HASH].to_numpy())


def candidates(
    cursor: duckdb.DuckDBPyConnection,
    relation: FramesRelation,
    question: Question,
    class_names: Mapping[str, str],
    columns: Sequence[str] = (),
    timeout_s: float = 600.0,
    holding: Sequence[Question] = (),
) -> Candidates:
    """The frames that fulfil a question's conditions; its order, limit and sample are left out.

    Args:
        cursor: Of CatalogStore.reading.
        relation: The cursor's frames.
        question: What is wanted.
        class_names: Class name of each class tag; a range may name either.
        columns: Columns of the relation to fetch besides fkey_hash; texts come as dictionaries.
        timeout_s: When to give up.
        holding: Questions of which is told, in columns named by `holds`, whether a frame fulfils
            their conditions.

    Raises:
        UnknownName: There is no such column, class, camera or scene.
        SqlError: The WHERE body is wrong.
    """
    wanted = _named(relation, columns)
    values: list[object] = []
    for number, of_set in enumerate(holding):
        condition, bound = question_where(of_set, relation, cursor, class_names)
        # A condition on a value that is missing is neither true nor false.
        wanted.append(f"coalesce(({condition}), false) AS {holds(number)}")
        values += bound
    condition, bound = question_where(question, relation, cursor, class_names)
    return Candidates(
        execute_encoded(
            cursor,
            f"WITH frames AS ({relation.sql_for(condition, *wanted)}) "
            f"SELECT {', '.join(wanted)} FROM frames WHERE {condition}",
            timeout_s,
            [*values, *bound],
        )
    )


DUPLICATE = "duplicate"
"""The column with the same mark on frames that are the same: see catalog.frames.duplicates."""


def mark_column(cursor: duckdb.DuckDBPyConnection) -> list[str]:
    """DUPLICATE, where a frame of the snapshot has a mark: reading it takes a join of the files."""
    return [DUPLICATE] if kept(cursor, "duplicates", _has_marks) else []


def _has_marks(cursor: duckdb.DuckDBPyConnection) -> bool:
    statement = f"SELECT 1 FROM {LAKE}.main.{FILES} WHERE {DUPLICATE} IS NOT NULL LIMIT 1"
    return bool(cursor.execute(statement).fetchall())


def once(rows: pa.Table) -> pa.Table:
    """The rows with one of those that have the same mark, the one whose hash is the least.

    Args:
        rows: With fkey_hash, and DUPLICATE where frames have marks.
    """
    if DUPLICATE not in rows.column_names:
        return rows
    marks = rows[DUPLICATE].cast(pa.string())
    marked = np.flatnonzero(np.asarray(marks.is_valid()))
    if not len(marked):
        return rows
    names = np.asarray(marks.take(pa.array(marked)).to_pylist())
    hashes = np.asarray(rows[FKEY_HASH])[marked]
    order = np.lexsort((hashes, names))
    again = marked[order[1:][names[order[1:]] == names[order[:-1]]]]
    keep = np.ones(rows.num_rows, bool)
    keep[again] = False
    return rows.filter(pa.array(keep))


def holds(number: int) -> str:
    """Name of the column that says which candidates fulfil the n-th question, from 0."""
    return f"holds_{number}"


def columns_of(
    cursor: duckdb.DuckDBPyConnection,
    relation: FramesRelation,
    hashes: Hashes,
    columns: Sequence[str],
    timeout_s: float = 600.0,
) -> Candidates:
    """Columns of the frames with those fkey_hash, as `candidates` gives them, in no order.

    Raises:
        UnknownName: There is no such column.
    """
    wanted = ", ".join(_named(relation, columns))
    with only(cursor, relation, hashes, timeout_s) as few:
        return Candidates(
            execute_encoded(
                cursor, f"WITH frames AS ({few.sql}) SELECT {wanted} FROM frames", timeout_s
            )
        )


def _named(relation: FramesRelation, columns: Sequence[str]) -> list[str]:
    for name in columns:
        if name not in relation.columns:
            raise UnknownName("column", name, relation.columns)
    return [relation.encoded(name) for name in dict.fromkeys((FKEY_HASH, *columns))]


@contextmanager
def only(
    cursor: duckdb.DuckDBPyConnection, relation: FramesRelation, hashes: Hashes, timeout_s: float
) -> Iterator[FramesRelation]:
    """The relation with the frames of those fkey_hash alone, for the block.

    Args:
        cursor: Of CatalogStore.reading.
        relation: The cursor's frames.
        hashes: fkey_hash of each frame wanted.
        timeout_s: When to give up.
    """
    rows = pa.table({FKEY_HASH: pa.array(np.asarray(hashes, np.uint64))})
    with cast(SelectOnly, cursor).beside(_CHOSEN, rows):
        if relation.with_label_size:
            yield relation.only(_CHOSEN)
            return
        statement = (
            f"SELECT f.fkey FROM {LAKE}.main.{FRAME_TAGS} AS f "
            f"WHERE {HASH_OF_FKEY} IN (SELECT {FKEY_HASH} FROM {_CHOSEN})"
        )
        fkeys = execute(cursor, statement, timeout_s)
    with cast(SelectOnly, cursor).beside(_CHOSEN_FKEYS, fkeys):
        yield relation.only(_CHOSEN_FKEYS)


_CHOSEN = "chosen_frames"
_CHOSEN_FKEYS = "chosen_fkeys"
