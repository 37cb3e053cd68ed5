"""The frames that statistics are of: a question's, a dataset's, a snapshot's, or all."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import duckdb
import pyarrow as pa

from catalog.errors import InvalidInput
from catalog.lake.catalog import Catalog
from catalog.lake.frames_relation import FramesRelation
from catalog.lake.schema import LABELLED
from catalog.lake.snapshot import Snapshot
from query.question.question import Question

POPULATION = "population"
"""Name of the relation with the population's frames in `Population.ask`."""

_Value = TypeVar("_Value")

_LISTED = "listed_frames"
_BESIDE = "frames_beside"


@dataclass(frozen=True)
class Frames:
    """The frames that are counted; they fulfil everything given."""

    question: Question = field(default_factory=Question)
    """Its conditions and its snapshot; order, limit and sample play no part."""
    fkeys: pa.ChunkedArray | None = None
    """Only these frames; all when None."""
    at: int | None = None
    """The snapshot to ask; the question's, or else the newest, when None."""


@dataclass(frozen=True)
class Population:
    """The frames, ready to be asked about, all within one snapshot."""

    relation: FramesRelation
    snapshot: int
    _asked: Snapshot
    _condition: str
    _values: tuple[object, ...]

    @property
    def classes(self) -> Mapping[str, str]:
        """Class name of each class tag of the snapshot, in class order."""
        return self._asked.classes

    @property
    def classes_and_groups(self) -> Mapping[str, str]:
        """`classes`, and behind them the class groups: see Snapshot."""
        return self._asked.classes_and_groups

    @property
    def group_tags(self) -> tuple[str, ...]:
        """The tags of class groups."""
        return tuple(self._asked.groups)

    @property
    def pixel_tags(self) -> tuple[str, ...]:
        """Tags that are numbers of pixels: see Snapshot."""
        return self._asked.pixel_tags

    def ask(self, body: str, values: tuple[object, ...] = ()) -> list[dict[str, Any]]:
        """The rows of `table`."""
        rows: list[dict[str, Any]] = self.table(body, values).to_pylist()
        return rows

    def table(self, body: str, values: tuple[object, ...] = ()) -> pa.Table:
        """The rows of a statement over the relation POPULATION.

        Args:
            body: What follows ``WITH frames AS (...), population AS (...)``, tags in double quotes.
            values: Bound to its question marks.
        """
        statement = (
            f"WITH frames AS ({self.relation.sql_for(self._condition, body)}), "
            f"{POPULATION} AS (SELECT * FROM frames WHERE {self._condition}) {body}"
        )
        try:
            return self._asked.table(statement, [*self._values, *values])
        except duckdb.Error:
            from query.db2.errors import in_db2s_words

            with in_db2s_words():
                raise

    def once(self, name: str, find: Callable[[], _Value]) -> _Value:
        """The value of ``find``; of all frames, all readers of the snapshot share it."""
        return self._asked.once(name, find) if self._condition == "true" else find()

    @contextmanager
    def with_fkeys(self, fkeys: pa.ChunkedArray) -> Iterator[str]:
        """Lay frames' names beside the population, as the column fkey of a table; its name."""
        with self._asked.with_table(_BESIDE, pa.table({"fkey": fkeys})):
            yield _BESIDE


def refuse_unlabelled(members: Population, question: Question, what: str) -> None:
    """Refuse frames without a label.

    Args:
        what: What needs labels, such as "class statistics".

    Raises:
        InvalidInput: There are such frames.
    """
    if not question.decides_on_labels:
        return
    (row,) = members.ask(f'SELECT count(*) AS frames FROM {POPULATION} WHERE "{LABELLED}" = 0')
    if row["frames"]:
        raise InvalidInput(
            f"{what} are of labels, and {row['frames']:,} of the question's frames have none; "
            f"ask for {LABELLED} = 1, or leave {LABELLED} out of the question"
        )


@contextmanager
def population(
    store: Catalog,
    frames: Frames,
) -> Iterator[Population]:
    """Open the frames for questions."""
    with _questioned(store, frames) as members:
        if frames.fkeys is None:
            yield members
            return
        condition = f"({members._condition}) AND fkey IN (SELECT fkey FROM {_LISTED})"
        with members._asked.with_table(_LISTED, pa.table({"fkey": frames.fkeys})):
            yield replace(members, _condition=condition)


@contextmanager
def _questioned(store: Catalog, frames: Frames) -> Iterator[Population]:
    """The frames of the question."""
    if frames.question == Question():
        with store.reading(frames.at) as snapshot:
            yield Population(snapshot.relation, snapshot.number, snapshot, "true", ())
        return
    from query.question.conditions import question_where, relation_for
    from query.question.of_model import asking

    with asking(store, frames.question, frames.at) as (snapshot, question):
        relation = relation_for(snapshot, question)
        condition, values = question_where(question, relation, snapshot)
        yield Population(relation, snapshot.number, snapshot, condition, tuple(values))
