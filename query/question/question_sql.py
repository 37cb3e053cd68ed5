"""A question as the one statement that asks the same of metaocean_view."""

from dataclasses import dataclass

from catalog.errors import InvalidInput, UnknownName
from catalog.lake.schema import LABELLED
from query.question.condition_sql import conjuncts
from query.question.question import Question
from query.question.vocabulary import Column, Vocabulary

_CASTS = {
    "BIGINT": "bigint", "UBIGINT": "bigint", "DOUBLE": "double", "FLOAT": "double",
}  # fmt: skip


@dataclass(frozen=True)
class QuestionSql:
    """A question in SQL."""

    text: str
    """One SELECT in Db2's SQL, whose rows are the question's frames in their order."""
    note: str = ""
    """What it leaves out because SQL cannot say it; empty where it leaves out nothing."""


@dataclass(frozen=True, slots=True)
class OrderItem:
    """One item of an order."""

    column: Column
    falling: bool
    """The highest come first; frames without a value come last either way."""


def to_sql(question: Question, vocabulary: Vocabulary) -> QuestionSql:
    """The statement that gives a question's frames: platform, datasource, filename and fkey."""
    # The tag itself as the condition where the question says which of its values it wants.
    base = f"{LABELLED} is not null" if question.decides_on_labels else "label_file is not null"
    conditions = [base, *conjuncts(question.conditions(), vocabulary)]
    if question.where is not None:
        end = "\n" if "--" in question.where else ""
        conditions.append(f"({question.where.strip()}{end})")
    order = [_in_order(item) for item in order_items(question, vocabulary)]
    lines = [
        "select platform, datasource, filename, fkey",
        "from metaocean_view",
        "where " + "\n  and ".join(conditions),
        "order by " + ", ".join([*order, "fkey"]),
    ]
    if question.sample is not None:
        return QuestionSql("\n".join(lines), _sampled(question))
    if question.limit is not None:
        lines.append(f"fetch first {question.limit} rows only")
    return QuestionSql("\n".join(lines))


def order_items(question: Question, vocabulary: Vocabulary) -> list[OrderItem]:
    """The columns that a question orders by, each with its direction.

    Raises:
        UnknownName: There is no such column.
        InvalidInput: A direction is neither 'asc' nor 'desc'.
    """
    items = []
    for item in question.order:
        name, _, direction = item.strip().partition(" ")
        direction = direction.strip().lower()
        if name.lower() not in vocabulary.columns:
            raise UnknownName("column", name, vocabulary.columns, "It is given in the order.")
        if direction not in ("", "asc", "desc"):
            raise InvalidInput(f"order '{item}': expected a name, and 'desc' for falling order")
        items.append(OrderItem(vocabulary.column(name.lower()), direction == "desc"))
    return items


def _in_order(item: OrderItem) -> str:
    column = item.column
    value = column.sql
    if column.is_text and column.type == "number":
        value = f"{_CASTS.get(column.engine_type, 'int')}({value})"
    # Db2 alone would put unknown values first in falling order.
    return f"{value} desc nulls last" if item.falling else value


def _sampled(question: Question) -> str:
    limit = question.limit
    limited = "" if limit is None else f", and the first {limit:,} of those taken"
    return (
        f"Of these frames {question.sample:,} are drawn at random with seed "
        f"{question.seed}{limited}; SQL cannot say that."
    )
