"""A question explained without being run: its SQL, its sentence, and what of it SQL cannot say."""

from dataclasses import dataclass, replace

from catalog.errors import SqlError
from catalog.lake.catalog import Catalog
from catalog.lake.snapshot import Snapshot
from query.question.conditions import question_where, vocabulary_of
from query.question.of_model import asking
from query.question.question import Question
from query.question.question_sql import QuestionSql, to_sql
from query.question.sentence import sentence
from query.run.prepared import prepare


@dataclass(frozen=True)
class Description:
    """Description of a question: as data, in SQL and in English."""

    question: Question
    """The question, with the snapshot that it is about."""
    snapshot: int
    sql: QuestionSql
    """The statement that asks the same of metaocean_view, and what it leaves out."""
    sentence: str


def describe(
    store: Catalog,
    question: Question,
    at: int | None = None,
    *,
    answered: bool = False,
) -> Description:
    """Describe a question; its names and values are checked as if it were run.

    Args:
        answered: It was run on that snapshot, so that its names and values need no check.
    """
    with asking(store, question, at) as (snapshot, plain):
        relation = snapshot.relation
        if not answered:
            question_where(plain, relation, snapshot)
        vocabulary = vocabulary_of(snapshot)
        statement = _as_it_runs(plain, to_sql(plain, vocabulary), snapshot)
        number = {"snapshot": snapshot.number}
        words = sentence(plain.model_copy(update=number), vocabulary)
        return Description(question.model_copy(update=number), snapshot.number, statement, words)


def _as_it_runs(question: Question, statement: QuestionSql, snapshot: Snapshot) -> QuestionSql:
    """The SQL, with a note where a WHERE body or an order names what only selections have."""
    if question.where is None and not question.order:
        return statement
    try:
        prepare(snapshot, statement.text)
    except SqlError as error:
        note = f"metaocean_view cannot be asked this: {error.text} {statement.note}"
        return replace(statement, note=note.strip())
    return statement
