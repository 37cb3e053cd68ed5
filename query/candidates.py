"""The frames that answer a question's conditions, a few columns of each: what samples draw from."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import cast

import duckdb
import numpy as np
import pyarrow as pa

from catalog.errors import UnknownName
from catalog.select_only import SelectOnly
from query.conditions import question_where
from query.frames_relation import FKEY_HASH, FramesRelation
from query.run_sql import execute
from query.sampling import Hashes
from query.selection import Question

CHOSEN = "chosen_frames"
"""Name of the table of hashes that `chosen` lays beside the catalog."""


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
) -> Candidates:
    """The frames that fulfil a question's conditions; its order, limit and sample are left out.

    Args:
        cursor: Of CatalogStore.reading.
        relation: The cursor's frames.
        question: What is wanted.
        class_names: Class name of each class tag; a range may name either.
        columns: Columns of the relation to fetch besides fkey_hash.
        timeout_s: When to give up.

    Raises:
        UnknownName: There is no such column, class, camera or scene.
        SqlError: The WHERE body is wrong.
    """
    for name in columns:
        if name not in relation.columns:
            raise UnknownName("column", name, relation.columns)
    condition, values = question_where(question, relation, cursor, class_names)
    wanted = ", ".join(f'"{name}"' for name in dict.fromkeys((FKEY_HASH, *columns)))
    return Candidates(
        execute(
            cursor,
            f"WITH frames AS ({relation.sql}) SELECT {wanted} FROM frames WHERE {condition}",
            timeout_s,
            values,
        )
    )


def chosen(cursor: duckdb.DuckDBPyConnection, hashes: Hashes) -> AbstractContextManager[None]:
    """Lay the hashes beside the catalog, as the column fkey_hash of the table CHOSEN."""
    rows = pa.table({FKEY_HASH: pa.array(np.asarray(hashes, np.uint64))})
    return cast(SelectOnly, cursor).beside(CHOSEN, rows)
