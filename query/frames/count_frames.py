"""The number of frames that answer a question."""

from catalog.lake.catalog import Catalog
from query.frames.candidates import candidates
from query.question.bare_words import with_quotes
from query.question.conditions import relation_for
from query.question.of_model import asking
from query.question.question import Question


def count_frames(store: Catalog, question: Question) -> tuple[int, int]:
    """The number of frames that fulfil a question's conditions, and the snapshot that was asked."""
    with asking(store, question) as (snapshot, plain):
        matching = candidates(snapshot, relation_for(snapshot, plain), plain)
        return matching.rows.num_rows, snapshot.number


def as_condition(store: Catalog, text: str) -> str:
    """A WHERE body about frames, its bare words quoted (query.question.bare_words)."""
    with store.reading() as snapshot:
        return with_quotes(text, snapshot.every_frame.columns)
