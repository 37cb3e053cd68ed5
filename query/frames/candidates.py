"""The frames that answer a question's conditions, a few columns of each: what samples draw from."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import cast

import numpy as np
import pyarrow as pa

from catalog.errors import UnknownName
from catalog.lake.frames_relation import FramesRelation
from catalog.lake.schema import FILES
from catalog.lake.snapshot import Snapshot
from catalog.lake.wide_names import FKEY_HASH
from query.db2.errors import in_db2s_words
from query.frames.sampling import Hashes, first, random_keys
from query.question.conditions import question_where
from query.question.of_model import in_names_of
from query.question.question import Question
from query.run.run_sql import execute_encoded


@dataclass(frozen=True)
class Candidates:
    """Frames without their names: 8 bytes a frame instead of some 300."""

    rows: pa.Table
    """One row per frame, in no order: fkey_hash, uint64, and the columns asked for."""

    @property
    def hashes(self) -> Hashes:
        """Each frame's fkey_hash."""
        return cast(Hashes, self.rows[FKEY_HASH].to_numpy())


def candidates(
    snapshot: Snapshot,
    relation: FramesRelation,
    question: Question,
    columns: Sequence[str] = (),
    holding: Sequence[Question] = (),
) -> Candidates:
    """The frames that fulfil a question's conditions; its order, limit and sample are left out.

    Args:
        columns: Columns of the relation to fetch besides fkey_hash; texts come as dictionaries.
        holding: Questions of which is told, in columns named by `holds`, whether a frame fulfils
            their conditions.
    """
    selected = _named(relation, columns)
    values: list[object] = []
    for number, of_set in enumerate(holding):
        condition, bound = question_where(in_names_of(snapshot, of_set), relation, snapshot)
        # A condition on a value that is missing is neither true nor false.
        selected.append(f"coalesce(({condition}), false) AS {holds(number)}")
        values += bound
    condition, bound = question_where(question, relation, snapshot)
    return Candidates(
        execute_encoded(
            snapshot,
            f"WITH frames AS ({relation.sql_for(condition, *selected)}) "
            f"SELECT {', '.join(selected)} FROM frames WHERE {condition}",
            [*values, *bound],
        )
    )


DUPLICATE = "duplicate"
"""The column with the same mark on frames that are the same: see catalog.frames.duplicates."""


def mark_column(snapshot: Snapshot) -> list[str]:
    """DUPLICATE, where a frame of the snapshot has a mark: reading it takes a join of the files."""
    statement = f"SELECT 1 FROM main.{FILES} WHERE {DUPLICATE} IS NOT NULL LIMIT 1"
    has_marks = snapshot.once("duplicates", lambda: bool(snapshot.execute(statement).fetchall()))
    return [DUPLICATE] if has_marks else []


def drawn(snapshot: Snapshot, relation: FramesRelation, question: Question, frames: int) -> Hashes:
    """The fkey_hash of so many frames at random of those that fulfil a question's conditions.

    Of frames with the same mark of duplicates one takes part.
    """
    chosen = Candidates(once(candidates(snapshot, relation, question, mark_column(snapshot)).rows))
    return chosen.hashes[first(random_keys(chosen.hashes, question.seed), frames)]


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
    snapshot: Snapshot, relation: FramesRelation, hashes: Hashes, columns: Sequence[str]
) -> Candidates:
    """Columns of the frames with those fkey_hash, as `candidates` gives them, in no order."""
    selected = ", ".join(_named(relation, columns))
    with only(snapshot, relation, hashes) as few:
        return Candidates(
            execute_encoded(snapshot, f"WITH frames AS ({few.sql}) SELECT {selected} FROM frames")
        )


def _named(relation: FramesRelation, columns: Sequence[str]) -> list[str]:
    for name in columns:
        if name not in relation.columns:
            raise UnknownName("column", name, relation.columns)
    return [relation.encoded(name) for name in dict.fromkeys((FKEY_HASH, *columns))]


@contextmanager
def only(snapshot: Snapshot, relation: FramesRelation, hashes: Hashes) -> Iterator[FramesRelation]:
    """The relation with the frames of those fkey_hash alone, for the block."""
    with ExitStack() as stack:
        with in_db2s_words():
            few = stack.enter_context(relation.only(snapshot, hashes))
        yield few
