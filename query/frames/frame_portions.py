"""A question's frames by fkey, some ten thousand at a time, so that memory stays bounded."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from catalog.lake.catalog import Catalog
from catalog.lake.frames_relation import FramesRelation
from catalog.lake.schema import FILES
from catalog.lake.snapshot import Snapshot
from catalog.lake.wide_names import LABEL_SIZE
from catalog.text.quoting import literal
from query.frames.file_versions import HASHES_SQL, with_label_sizes_and_versions
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

PORTION_ROWS = 36_864
"""Frames of a portion, more or less: with 38 classes 21 MB. A dataset of 1,000,000 frames takes
0.46 GB; with 20,480 it takes 40 to 50 MB less and a tenth more CPU.
"""

_SAMPLED = 256
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
            del rows  # before the next is read
            if left == 0:
                return

    def _rows(self, condition: str, limit: int | None) -> pa.Table:
        """Frames by fkey, with the sizes of their labels only where each lies beside its frame."""
        sized = LABEL_SIZE in self._relation.columns
        if sized:
            condition = f"({condition}) AND {self._relation.has_label}"
        names = [name for name in self._columns if name != LABEL_SIZE or sized]
        listed = ", ".join([*(f'"{name}"' for name in names), HASHES_SQL])
        first = f" ORDER BY fkey LIMIT {limit}" if limit is not None else ""
        rows = execute(
            self._cursor,
            f"WITH frames AS ({self._relation.sql_for(condition, 'fkey', listed)}) SELECT {listed} "
            f"FROM frames WHERE {condition}{first}",
            self._values,
        )
        # Of a whole portion Arrow makes the order in a fifth of DuckDB's time.
        return rows if first else rows.take(pc.sort_indices(rows["fkey"]))


@contextmanager
def frame_portions(
    store: Catalog,
    question: Question,
    at: int | None,
    columns: Sequence[str],
    optional: Sequence[str] = (),
) -> Iterator[FramePortions]:
    """The frames that answer a question without an order, in portions.

    Args:
        columns: Tags and columns of the file that a selection does not have by itself.
        optional: Those of them that are left out where the catalog has none.
    """
    with asking(store, question, at, portions=True) as (snapshot, plain):
        relation = relation_for(snapshot, plain)
        classes = tuple(snapshot.classes)
        more = further_columns(relation, columns, (*_COLUMNS, *classes), optional)
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
    some = f"SELECT fkey FROM frames WHERE {condition}{last}"
    # Names alone: a join with the files of all frames took 0.2 GB more.
    sampled = f"list(fkey) FILTER (hash(fkey) % {_SAMPLED} = 0)"
    of_all = execute(
        snapshot,
        f"WITH frames AS ({relation.sql_for(some)}) SELECT max(fkey), {sampled} FROM ({some})",
        values,
    )
    greatest, fkeys = (column[0].as_py() for column in of_all.columns)
    if greatest is None:
        return (), ()
    fkeys = sorted(fkeys or ())
    step = PORTION_ROWS // _SAMPLED
    condition = f"({condition}) AND fkey <= {literal(greatest)}"
    sources = _sources(snapshot, relation, condition, values, [*fkeys, greatest])
    return sources, tuple(fkeys[step::step])


def _sources(
    snapshot: Snapshot,
    relation: FramesRelation,
    condition: str,
    values: list[object],
    fkeys: Sequence[str],
) -> tuple[tuple[str, str], ...]:
    """The sources of frames, in order.

    Args:
        fkeys: Some of the frames'. They lie within the names of one source, mostly, which is so
            known without a look at its frames.
    """
    names = execute(
        snapshot,
        f"SELECT cluster, datasource, min(fkey) AS low, max(fkey) AS high FROM main.{FILES} "
        "GROUP BY ALL ORDER BY cluster, datasource",
    ).to_pylist()
    within = [[name for name in names if name["low"] <= one <= name["high"]] for one in fkeys]
    known = {id(of_one[0]) for of_one in within if len(of_one) == 1}
    return tuple(
        (name["cluster"], name["datasource"])
        for name in names
        if id(name) in known or _has_frame(snapshot, relation, condition, values, name)
    )


def _has_frame(
    snapshot: Snapshot,
    relation: FramesRelation,
    condition: str,
    values: list[object],
    source: Mapping[str, str],
) -> bool:
    """Return whether one of the frames is of a source."""
    bounds = (literal(source[end]) for end in ("low", "high"))
    statement = (
        f"SELECT 1 FROM frames WHERE {condition} AND fkey BETWEEN {' AND '.join(bounds)} "
        f"AND cluster = {literal(source['cluster'])} "
        f"AND datasource = {literal(source['datasource'])} LIMIT 1"
    )
    sql = f"WITH frames AS ({relation.sql_for(statement)}) {statement}"
    return len(execute(snapshot, sql, values)) > 0
