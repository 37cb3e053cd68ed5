"""A question's frames by fkey, some ten thousand at a time, so that memory stays bounded."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa

from catalog.lake.catalog import Catalog
from catalog.lake.frames_relation import FramesRelation
from catalog.lake.snapshot import Snapshot
from catalog.lake.wide_names import FKEY_HASH, LABEL_SIZE
from catalog.text.quoting import literal
from query.frames.file_versions import LABEL_HASH_SQL, with_label_sizes_and_versions
from query.frames.select_frames import chosen_rows, further_columns
from query.frames.selection import Selection
from query.question.conditions import relation_for
from query.question.of_model import asking
from query.question.question import Question
from query.run.run_sql import execute

_COLUMNS = (
    "fkey", "cluster", "datasource", "scene", "camera", "frame_number", "image_file", "label_file",
    "image_size", LABEL_SIZE,
)  # fmt: skip

PORTION_ROWS = 131_072
"""Frames of a portion, more or less: 0.1 GB with 38 classes."""

_SAMPLED = 1_024
"""One frame of so many says where portions begin."""


@dataclass(frozen=True)
class FramePortions:
    """The frames that answer a question, by fkey; each portion is asked for when it is read."""

    question: Question
    """What was asked, with the snapshot that it was asked of."""
    snapshot: int
    classes: tuple[str, ...]
    """The class tags, in class order."""
    sources: tuple[tuple[str, str], ...]
    """Cluster and datasource of every source of the frames, in order."""
    _begins: tuple[str, ...]
    """The fkeys at which portions begin, without the first."""
    _cursor: Snapshot
    _relation: FramesRelation
    _columns: tuple[str, ...]
    _condition: str
    _values: list[object]

    def __iter__(self) -> Iterator[Selection]:
        """The portions, with their files' versions, as long as the snapshot is read."""
        left = self.question.limit
        for first, end in pairwise((None, *self._begins, None)):
            bounds = [f"fkey >= {literal(first)}"] if first is not None else []
            bounds += [f"fkey < {literal(end)}"] if end is not None else []
            condition = " AND ".join([f"({self._condition})", *bounds])
            rows = self._rows(condition, left)
            if left is not None:
                left -= len(rows)
            rows = with_label_sizes_and_versions(self._cursor, rows)
            if rows.num_rows:
                yield Selection(self.question, self.snapshot, rows, self.classes)
            if left == 0:
                return

    def _rows(self, condition: str, limit: int | None) -> pa.Table:
        """Frames by fkey, with the sizes of their labels only where each lies beside its frame."""
        sized = LABEL_SIZE in self._relation.columns
        if sized:
            condition = f"({condition}) AND {self._relation.has_label}"
        names = [name for name in self._columns if name != LABEL_SIZE or sized]
        listed = ", ".join([*(f'"{name}"' for name in names), LABEL_HASH_SQL])
        return execute(
            self._cursor,
            f"WITH frames AS ({self._relation.sql_for(condition, 'fkey', listed)}) SELECT {listed} "
            f"FROM frames WHERE {condition} ORDER BY fkey"
            + (f" LIMIT {limit}" if limit is not None else ""),
            self._values,
        )


@contextmanager
def frame_portions(
    store: Catalog,
    question: Question,
    at: int | None,
    columns: Sequence[str],
    optional: Sequence[str] = (),
) -> Iterator[FramePortions]:
    """The frames that answer a question without an order, in portions, with their fkey_hash.

    Args:
        columns: Tags and columns of the file that a selection does not have by itself.
        optional: Those of them that are left out where the catalog has none.
    """
    with asking(store, question, at) as (snapshot, plain):
        relation = relation_for(snapshot, plain)
        classes = tuple(snapshot.classes)
        more = (*further_columns(relation, columns, (*_COLUMNS, *classes), optional), FKEY_HASH)
        with chosen_rows(snapshot, relation, plain) as (asked_of, condition, values):
            sources, begins = _extent(snapshot, asked_of, condition, values, question.limit)
            yield FramePortions(
                question.model_copy(update={"snapshot": snapshot.number}),
                snapshot.number,
                classes,
                sources,
                begins,
                snapshot,
                asked_of,
                tuple(dict.fromkeys((*_COLUMNS, *classes, *more))),
                condition,
                values,
            )


def _extent(
    snapshot: Snapshot,
    relation: FramesRelation,
    condition: str,
    values: list[object],
    limit: int | None,
) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """The sources of the frames, in order, and the fkeys at which portions begin."""
    last = f" ORDER BY fkey LIMIT {limit}" if limit is not None else ""
    some = f"SELECT cluster, datasource, fkey FROM frames WHERE {condition}{last}"
    sampled = f"list(fkey) FILTER (hash(fkey) % {_SAMPLED} = 0)"
    rows = execute(
        snapshot,
        f"WITH frames AS ({relation.sql_for(some)}) SELECT cluster, datasource, {sampled} "
        f"FROM ({some}) GROUP BY ALL ORDER BY cluster, datasource",
        values,
    )
    clusters, datasources, samples = (column.to_pylist() for column in rows.columns)
    fkeys = sorted(fkey for sample in samples for fkey in sample or ())
    step = PORTION_ROWS // _SAMPLED
    return tuple(zip(clusters, datasources, strict=True)), tuple(fkeys[step::step])
