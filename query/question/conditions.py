"""A question's conditions as SQL over the frames."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from catalog.errors import UnknownName
from catalog.lake.frames_relation import FramesRelation
from catalog.lake.snapshot import Snapshot
from catalog.lake.statement_watch import current
from catalog.lake.wide_names import TAGGED_FILES
from query.db2 import read_only
from query.db2.names import Views
from query.db2.semantics import condition_to_duckdb
from query.db2.typography import as_typed
from query.question.condition import CameraIn, Group, Leaf, SceneIn, leaves
from query.question.condition_sql import conjuncts
from query.question.question import Question
from query.question.vocabulary import Vocabulary
from query.run.collection_column import fill
from query.run.hash_lookups import has_hash, hashed, lookups
from query.run.open_tags import join_open_tags, open_tags
from query.run.preparation import preparing
from query.run.templates import Templates

_NAMES = dict.fromkeys(("scene", "camera"), "UUID")
"""Ingest writes these without blanks at the end, so that none need be looked for: compared as they
are, Parquet's statistics leave most of a large catalog unread."""

_SHAPES = 256
"""Conditions kept for each snapshot in memory."""

_PREPARE_S = 60.0


def relation_for(snapshot: Snapshot, question: Question) -> FramesRelation:
    """The frames that a question's conditions are about: labelled ones, or all where it says so."""
    return snapshot.every_frame if question.decides_on_labels else snapshot.relation


def question_where(
    question: Question,
    relation: FramesRelation,
    snapshot: Snapshot,
) -> tuple[str, list[object]]:
    """The condition that holds for the frames a question wants, and the values bound in it.

    Args:
        question: What is wanted; its order, limit and sample are left out.
        relation: The snapshot's frames, which the condition calls ``frames``.
    """
    members = question.conditions()
    _check_names(members, snapshot)
    conditions = []
    bodies = conjuncts(members, vocabulary_of(snapshot))
    if bodies:
        conditions.append(_frames(snapshot, relation).engine(" and ".join(bodies)))
    if question.where is not None:
        conditions.append(_everything(snapshot, relation).engine(question.where))
    return " AND ".join(f"({condition})" for condition in conditions) or "true", []


@dataclass(frozen=True)
class _Named:
    """Names that conditions may use, and the SQL of conditions with those names."""

    schema: Views
    open_tags: frozenset[str] = frozenset()
    collection: str = ""
    hashes: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """The frames' columns with a stored hash; see TableLayout."""
    templates: Templates = field(default_factory=lambda: Templates(_SHAPES))

    def engine(self, body: str) -> str:
        """A WHERE body in Db2's SQL as DuckDB's."""
        return self.templates.rewritten(as_typed(body), self._rewritten)

    def _rewritten(self, body: str) -> str:
        with preparing(_PREPARE_S, lambda: current().cancelled):
            query = read_only.parse_condition(body, self.schema)
            read_only.check(query, self.schema)
            join_open_tags(query, self.schema, self.open_tags)
            found: list[exp.Expr] = []
            return condition_to_duckdb(
                query,
                self.schema,
                look=lambda where: found.extend(self._lookups(where)),
                finish=lambda condition: exp.and_(*found, fill(condition, self.collection)),
            )

    def _lookups(self, where: exp.Expr) -> Iterator[exp.Expr]:
        for column, texts in lookups(where, self.hashes):
            name, function = self.hashes[column.name]
            stored = exp.column(name, table=column.table)
            yield has_hash(stored, hashed(column, texts), function, name, TAGGED_FILES)


def _frames(snapshot: Snapshot, relation: FramesRelation) -> _Named:
    """The names that conditions may use."""
    return snapshot.once_of_names(
        "frames alone", lambda: _Named(Views(frames={**relation.columns, **_NAMES}))
    )


def _everything(snapshot: Snapshot, relation: FramesRelation) -> _Named:
    """The names that a user's WHERE body may use: a sub-select asks the views."""
    return snapshot.once_of_names(
        f"frames and views {snapshot.collection}",
        lambda: _Named(
            Views(snapshot.schema, frames=relation.columns),
            open_tags(snapshot),
            snapshot.collection,
            snapshot.layout.hashes,
        ),
    )


def vocabulary_of(snapshot: Snapshot) -> Vocabulary:
    """The names that a question may use of a snapshot's frames."""
    columns = snapshot.relation.columns
    return Vocabulary(columns, frozenset(snapshot.tags), snapshot.classes_and_groups)


def _check_names(conditions: Iterable[Leaf | Group], snapshot: Snapshot) -> None:
    """Accept conditions whose cameras and scenes are in the catalog."""
    for leaf in leaves(conditions):
        if not isinstance(leaf, CameraIn | SceneIn):
            continue
        present = snapshot.layout.present(snapshot, leaf.kind, leaf.names)
        for name in leaf.names:
            if name not in present:
                raise UnknownName(
                    leaf.kind, name, sorted(snapshot.layout.names(snapshot, leaf.kind))
                )
