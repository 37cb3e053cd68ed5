"""A question to a selection: the frames that fulfil its conditions, sampled, in its order."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from catalog.errors import UnknownName
from catalog.lake.catalog import Catalog
from catalog.lake.frames_relation import FramesRelation
from catalog.lake.schema import FILES
from catalog.lake.snapshot import Snapshot
from catalog.lake.wide_names import FKEY_HASH, LABEL_SIZE
from query.frames.candidates import candidates, mark_column, once, only
from query.frames.file_versions import label_fkeys, within
from query.frames.sampling import Hashes, first, random_keys
from query.frames.selection import Selection
from query.question.conditions import question_where, relation_for, vocabulary_of
from query.question.of_model import asking
from query.question.question import Question
from query.question.question_sql import OrderItem, order_items
from query.run.run_sql import execute

_COLUMNS = (
    "fkey", "platform", "cluster", "datasource", "path", "filename", "scene", "camera",
    "frame_number", "image_width", "image_height", "image_file", "label_file", "image_size",
    "label_size",
)  # fmt: skip


def select_frames(
    store: Catalog,
    question: Question,
    at: int | None = None,
    columns: Sequence[str] = (),
) -> Selection:
    """The frames that answer a question, in its order, then by fkey.

    Args:
        columns: Tags and columns of the file that a selection does not have by itself.
    """
    with asking(store, question, at) as (snapshot, plain):
        relation = relation_for(snapshot, plain)
        classes = tuple(snapshot.classes)
        more = _more(columns, relation, classes)
        with chosen_rows(snapshot, relation, plain) as chosen:
            asked_of, condition, values = chosen
            items = order_items(plain, vocabulary_of(snapshot))
            order = [_order(item) for item in items]
            fetch = FrameFetch(snapshot, asked_of, classes, more)
            frames = fetch.frames(condition, values, order, question.limit)
        resolved = question.model_copy(update={"snapshot": snapshot.number})
        return Selection(resolved, snapshot.number, frames, classes)


def frames_of(snapshot: Snapshot, hashes: Hashes) -> tuple[pa.Table, tuple[str, ...]]:
    """The frames of those fkey_hash, by fkey, in Selection's columns; and the class tags."""
    relation = snapshot.every_frame
    classes = tuple(snapshot.classes)
    with only(snapshot, relation, hashes) as few:
        return FrameFetch(snapshot, few, classes).frames("true", []), classes


def further_columns(
    relation: FramesRelation,
    columns: Sequence[str],
    own: Collection[str],
    optional: Collection[str] = (),
) -> tuple[str, ...]:
    """Those of some columns that are not among a selection's own.

    Args:
        optional: Columns that are left out where frames have none.

    Raises:
        UnknownName: Frames have no such column.
    """
    further = dict.fromkeys(name for name in columns if name not in own)
    for name in further:
        if name not in relation.columns and name not in (*_COLUMNS, *optional):
            raise UnknownName("column", name, relation.columns)
    return tuple(name for name in further if name in relation.columns)


def _more(
    columns: Sequence[str], relation: FramesRelation, classes: tuple[str, ...]
) -> tuple[str, ...]:
    """The columns that are asked for beside those of every selection."""
    known = [name for name in relation.columns if name != FKEY_HASH]
    names = dict.fromkeys(name.strip().lower() for name in columns if name.strip())
    for name in names:
        if name not in known and name not in _COLUMNS:
            raise UnknownName("column", name[:80], [*_COLUMNS, *known])
    return tuple(name for name in names if name not in _COLUMNS and name not in classes)


@contextmanager
def chosen_rows(
    snapshot: Snapshot,
    relation: FramesRelation,
    question: Question,
) -> Iterator[tuple[FramesRelation, str, list[object]]]:
    """Frames, the condition of what is wanted of them, and its values; sampled where asked for."""
    if question.sample is None:
        yield relation, *question_where(question, relation, snapshot)
        return
    chosen = candidates(snapshot, relation, question, mark_column(snapshot))
    hashes = np.asarray(once(chosen.rows)[FKEY_HASH])
    drawn = hashes[first(random_keys(hashes, question.seed), question.sample)]
    with only(snapshot, relation, np.asarray(drawn)) as few:
        yield few, "true", []


@dataclass(frozen=True)
class FrameFetch:
    """Fetches rows in Selection's columns."""

    snapshot: Snapshot
    relation: FramesRelation
    classes: tuple[str, ...]
    more: tuple[str, ...] = ()
    own: tuple[str, ...] = _COLUMNS
    """Columns beside the classes and those; LABEL_SIZE among them."""
    computed: tuple[str, ...] = ()
    """Values of frames, each with its name, as SELECT has them."""

    def frames(
        self,
        condition: str,
        values: list[object],
        order: Sequence[str] = (),
        limit: int | None = None,
    ) -> pa.Table:
        """The frames for which the condition holds."""
        return self.sized(self.unsized(condition, values, order, limit))

    def unsized(
        self,
        condition: str,
        values: list[object],
        order: Sequence[str] = (),
        limit: int | None = None,
    ) -> pa.Table:
        """`frames`, with the sizes of their labels only where each lies beside its frame."""
        sized = LABEL_SIZE in self.relation.columns
        if sized:
            condition = f"({condition}) AND {self.relation.has_label}"
        all_columns = (*self.own, *self.classes, *self.more)
        columns = [n for n in dict.fromkeys(all_columns) if n != LABEL_SIZE or sized]
        by = ", ".join([*order, "fkey"])
        listed = ", ".join([*map(_quoted, columns), *self.computed])
        return execute(
            self.snapshot,
            f"WITH frames AS ({self.relation.sql_for(condition, by, listed)}) SELECT {listed} "
            f"FROM frames WHERE {condition} ORDER BY {by}"
            + (f" LIMIT {limit}" if limit is not None else ""),
            values,
        )

    def sized(self, frames: pa.Table) -> pa.Table:
        """The frames with the sizes of their labels; without those whose label is not there."""
        if LABEL_SIZE in frames.column_names:
            return frames
        # A statement of its own, in which DuckDB knows how few the labels are: else it may lay all
        # files of the catalog into the join's hash table.
        named = frames.select(["cluster", "datasource", "label_file"])
        named = named.add_column(0, "place", pa.array(np.arange(len(frames))))
        with self._labels(named) as (labels, values):
            sizes = execute(
                self.snapshot,
                f"WITH labels(place, cluster, datasource, label_file) AS ({labels}), "
                "named AS (SELECT place, cluster || ':' || datasource || ':' || label_file AS fkey "
                "FROM labels WHERE label_file IS NOT NULL) "
                f"SELECT place, size FROM named JOIN main.{FILES} USING (fkey) "
                f"WHERE {within(label_fkeys(frames))} UNION ALL "
                "SELECT place, NULL FROM labels WHERE label_file IS NULL ORDER BY place",
                values,
            )
        if len(sizes) < len(frames):
            frames = frames.take(sizes["place"])
        sized = frames.append_column(LABEL_SIZE, sizes["size"])
        return sized.select([*self.own, *self.classes, *self.more])

    @contextmanager
    def _labels(self, named: pa.Table) -> Iterator[tuple[str, list[object]]]:
        """A statement that gives the rows, and the values bound in it."""
        if len(named) <= _BOUND:
            yield (
                f"SELECT {', '.join(['unnest(?)'] * len(named.columns))}",
                [column.to_pylist() for column in named.columns],
            )
            return
        with self.snapshot.with_table(_LABELS, named):
            yield f"FROM {_LABELS}", []


_LABELS = "chosen_labels"

_BOUND = 1_000
"""So many rows are bound as values: for a table DuckDB imports pyarrow.dataset, which takes a tenth
of a short command."""


def _quoted(name: str) -> str:
    return f'"{name}"'


def _order(item: OrderItem) -> str:
    return f'"{item.column.name}" {"DESC" if item.falling else "ASC"} NULLS LAST'
