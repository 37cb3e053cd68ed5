"""Questions that users save under a name: their own, and those that others share."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from api.schemas.saved_questions import CountedQuestionBody, NewSavedQuestion, SavedQuestionBody
from api.services.call import Service
from catalog.errors import InvalidInput, NotAllowed
from catalog.records import questions as records_of
from query.question.question import Question
from query.question.wrong_value import checked

if TYPE_CHECKING:
    from catalog.records.question_tables import QuestionLook, SavedQuestion


class SavedQuestions(Service):
    """Saved questions of a home, as far as a caller sees them."""

    def list(self) -> list[SavedQuestionBody]:
        """The caller's and those that are shared, by name; all for admins and commands."""
        records = self._session.whole.readable_records
        looks = records_of.looks_of(records, self._session.owner)
        return [
            self._body(saved, looks.get(saved.id))
            for saved in records_of.listed(records)
            if self._sees(saved)
        ]

    def get(self, name: str) -> CountedQuestionBody:
        """A saved question, and how many frames answer it now.

        Raises:
            NotFound: There is none of that name that the caller sees.
        """
        saved = self._recorded(name)
        looks = records_of.looks_of(self._session.whole.readable_records, self._session.owner)
        frames, snapshot = self._count(_question_of(saved))
        return self._counted(self._body(saved, looks.get(saved.id)), frames, snapshot)

    def save(
        self, name: str, question: Question | Mapping[str, Any], *, shared: bool = False
    ) -> CountedQuestionBody:
        """Save a question of the caller under a name, with the number of its frames.

        Raises:
            InvalidInput: It has an order, limit, sample or snapshot.
            AlreadyExists: The name is taken.
        """
        from catalog.records.question_tables import SavedQuestion

        request = checked(NewSavedQuestion, name=name, question=question, shared=shared)
        asked = request.question
        if asked.order or (asked.limit, asked.sample, asked.snapshot) != (None, None, None):
            raise InvalidInput(
                f"question {name}: is asked of the newest catalog and counts all its frames; leave "
                "out order, limit, sample and snapshot"
            )
        frames, snapshot = self._count(asked)
        owner = self._session.owner
        saved = SavedQuestion(
            name=request.name,
            question=asked.model_dump(mode="json", exclude_defaults=True),
            shared=request.shared,
            frames=frames,
            snapshot=snapshot,
            owner=owner.name,
            account=owner.account,
        )
        added = records_of.add(self._session.whole.records, saved)
        return self._counted(self._body(added), frames, snapshot)

    def see(self, name: str) -> CountedQuestionBody:
        """Keep the number of a question's frames now as the one that the caller saw last.

        Raises:
            NotFound: There is none of that name that the caller sees.
        """
        saved = self._recorded(name)
        frames, snapshot = self._count(_question_of(saved))
        look = records_of.note_look(
            self._session.whole.records, name, self._session.owner, frames, snapshot
        )
        return self._counted(self._body(saved, look), frames, snapshot)

    def remove(self, name: str) -> None:
        """Forget a question.

        Raises:
            NotFound: There is none of that name that the caller sees.
            NotAllowed: It is another user's; admins may.
        """
        saved = self._recorded(name)
        if not self._is_owner(saved) and not self._is_admin:
            raise NotAllowed(f"question {saved.name}: is {saved.owner or 'nobody'}'s, not yours")
        records_of.remove(self._session.whole.records, name)

    def _recorded(self, name: str) -> "SavedQuestion":
        saved = records_of.recorded(self._session.whole.readable_records, name)
        if not self._sees(saved):
            raise records_of.missing(name)
        return saved

    @property
    def _is_admin(self) -> bool:
        return self._session.is_command or self._session.caller.may("admin")

    def _sees(self, saved: "SavedQuestion") -> bool:
        return saved.shared or self._is_admin or self._is_owner(saved)

    def _is_owner(self, saved: "SavedQuestion") -> bool:
        return records_of.is_owner(saved, self._session.owner)

    def _count(self, question: Question) -> tuple[int, int]:
        """Frames that answer a question now, and of which snapshot."""
        from query.frames.count_frames import count_frames  # with DuckDB: lists do without

        return count_frames(self._workspace.catalog, question)

    def _body(
        self, saved: "SavedQuestion", look: "SavedQuestion | QuestionLook | None" = None
    ) -> SavedQuestionBody:
        """A question's, with what the caller saw of it last: an owner's is the question's own."""
        own = self._is_owner(saved)
        return SavedQuestionBody.of(saved, own=own, look=look or (saved if own else None))

    def _counted(self, body: SavedQuestionBody, frames: int, snapshot: int) -> CountedQuestionBody:
        return CountedQuestionBody(**dict(body), frames=frames, snapshot=snapshot)


def _question_of(saved: "SavedQuestion") -> Question:
    return Question.model_validate(saved.question)
