"""Why a question has no frames: which of its conditions holds for none, or that they clash."""

from collections.abc import Sequence

from catalog.lake.catalog import Catalog
from query.question.condition import Group, Leaf, PixelRange
from query.question.conditions import question_where, relation_for, vocabulary_of
from query.question.of_model import asking
from query.question.question import Question
from query.question.sentence import sentence
from query.question.vocabulary import Vocabulary
from query.run.run_sql import execute

_SHOWN = 5
"""Conditions whose counts are told."""


def why_empty(
    store: Catalog,
    question: Question,
    at: int | None = None,
) -> str:
    """Say in one line what to change in a question that no frame answers.

    Every condition is counted by itself, in one pass over the frames.
    """
    with asking(store, question, at) as (snapshot, plain):
        users_where = question.where if question.sql is None else plain.where
        question = plain
        alone = [_only(condition) for condition in question.conditions()]
        questions = [*alone]  # SQL in the words of the user: a confusion is a statement of its own
        if question.where is not None:
            alone.append(Question(where=question.where))
            questions.append(Question(where=users_where))
        relation = relation_for(snapshot, question)
        vocabulary = vocabulary_of(snapshot)
        wheres = [question_where(each, relation, snapshot)[0] for each in alone]
        counts = [f"count(*) FILTER (WHERE {where})" for where in wheres]
        ranges = [range_ for range_ in question.conditions() if isinstance(range_, PixelRange)]
        columns = [vocabulary.numeric_column(range_.tag).name for range_ in ranges]
        highest = [f'max("{name}")' for name in columns]
        measured = ", ".join(["count(*)", *counts, *highest])
        frames = relation.sql_for(measured)
        statement = f"WITH frames AS ({frames}) SELECT {measured} FROM frames"
        # By position: a condition that stands twice has two columns of one name.
        row = [column[0].as_py() for column in execute(snapshot, statement).columns]
    total, matching, most = row[0], row[1 : 1 + len(counts)], row[1 + len(counts) :]
    if not total:
        return "the catalog has no labelled frames: framesift ingest SOURCE"
    words = [sentence(each, vocabulary).removeprefix("all ") for each in questions]
    for text, count, condition in zip(
        words, matching, [*question.conditions(), None], strict=False
    ):
        if not count:
            return f"there are no {text}{_highest(condition, ranges, most, vocabulary)}"
    counted = [f"{count:,} {text}" for text, count in zip(words, matching, strict=True)]
    more = f" and {len(counted) - _SHOWN} more conditions" if len(counted) > _SHOWN else ""
    return f"no frame is all of these: {'; '.join(counted[:_SHOWN])}{more}"


def _only(condition: Leaf | Group) -> Question:
    return Question(condition=condition)


def _highest(
    condition: Leaf | Group | None,
    ranges: Sequence[PixelRange],
    most: Sequence[int | None],
    vocabulary: Vocabulary,
) -> str:
    """The bound down to which a range would have to go to have frames."""
    if not isinstance(condition, PixelRange) or condition.lowest is None:
        return ""
    highest = most[list(ranges).index(condition)] or 0
    if highest >= condition.lowest:
        return ""
    title = vocabulary.title(vocabulary.numeric_column(condition.tag))
    return f": the most {title} in a frame is {highest:,}"
