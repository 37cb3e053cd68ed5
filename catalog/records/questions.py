"""Saved questions, as they are recorded, and how many frames each user saw last."""

from typing import TYPE_CHECKING

from catalog.records.kinds import QUESTION_LOOKS, SAVED_QUESTIONS
from catalog.records.named import Named
from catalog.records.reading import Records
from catalog.values import Owner, now

if TYPE_CHECKING:  # reading does without SQLAlchemy
    from catalog.records.question_tables import QuestionLook, SavedQuestion
    from catalog.records.store import RecordStore

_QUESTIONS = Named(
    "question", SAVED_QUESTIONS, "framesift question list and GET /v1/questions list them"
)
add, listed, recorded = _QUESTIONS.add, _QUESTIONS.listed, _QUESTIONS.recorded
remove, missing = _QUESTIONS.remove, _QUESTIONS.missing
"""The saved questions; with one, what users saw of it is removed."""


def is_owner(saved: "SavedQuestion", user: Owner) -> bool:
    """Return whether a question is a user's own."""
    return (saved.owner, saved.account) == (user.name, user.account)


def looks_of(records: Records, user: Owner) -> "dict[int, QuestionLook]":
    """The numbers of frames that a user saw last of others' questions, by the question's id."""
    theirs = "account = :account AND name = :name"
    looks = records.select(QUESTION_LOOKS, theirs, account=user.account, name=user.name)
    return {look.question_id: look for look in looks}


def note_look(
    records: "RecordStore", name: str, user: Owner, frames: int, snapshot: int
) -> "SavedQuestion | QuestionLook":
    """Keep the number of a question's frames as the one that a user saw last; with its time.

    Of its owner the question has it; another user has one row of it.

    Raises:
        NotFound: The question was removed meanwhile.
    """
    from catalog.records.question_tables import QuestionLook, SavedQuestion

    with records.session() as session:
        number = _QUESTIONS.get(session, name).id
        # Waits for another look at it, so that of two first ones of a user both find one row.
        saved = session.get(SavedQuestion, number, with_for_update=True)
        if saved is None:
            raise missing(name)
        seen: SavedQuestion | QuestionLook = saved
        if not is_owner(saved, user):
            key = {"question_id": number, "account": user.account, "name": user.name}
            seen = session.get(QuestionLook, key) or QuestionLook(**key)
            session.add(seen)
        seen.frames, seen.snapshot, seen.counted = frames, snapshot, now()
    return seen
