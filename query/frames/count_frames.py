"""The number of frames that answer a question or fulfil a condition."""

from collections.abc import Collection

from sqlglot import exp

from catalog.lake.catalog import Catalog
from query.db2.dialect import Db2
from query.db2.read_only import parse_condition
from query.frames.candidates import candidates
from query.question.conditions import relation_for
from query.question.of_model import asking
from query.question.question import Question

_COMPARISONS = (exp.EQ, exp.NEQ)


def count_frames(store: Catalog, question: Question) -> tuple[int, int]:
    """The number of frames that fulfil a question's conditions, and the snapshot that was asked."""
    with asking(store, question) as (snapshot, plain):
        matching = candidates(snapshot, relation_for(snapshot, plain), plain)
        return matching.rows.num_rows, snapshot.number


def as_condition(store: Catalog, text: str) -> str:
    """A WHERE body about frames as people type it, its bare words quoted: `camera=front_center`."""
    with store.reading() as snapshot:
        return _with_quotes(text, snapshot.every_frame.columns)


def _with_quotes(condition: str, columns: Collection[str]) -> str:
    """The condition with each bare word that is compared with a column quoted, as a text.

    A word that is a column stays one; without such a word the condition stays as it is.

    Args:
        columns: Names of columns, in lower case.
    """
    body = parse_condition(condition).args["where"].this.this
    words = [word for each in body.find_all(*_COMPARISONS) for word in _words(each, columns)]
    if not words:
        return condition
    for word in words:
        word.replace(exp.Literal.string(word.name))
    return str(body.sql(dialect=Db2))


def _words(comparison: exp.Expr, columns: Collection[str]) -> list[exp.Column]:
    left, right = comparison.this, comparison.expression
    if not (_is_plain(left) and _is_plain(right) and left.name.lower() in columns):
        return []
    return [] if right.name.lower() in columns else [right]


def _is_plain(term: exp.Expr) -> bool:
    return isinstance(term, exp.Column) and not term.table and not term.this.quoted
