"""Questions that users save under a name: their own, and those that others share."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from api.schemas.saved_questions import CountedQuestionBody, NewSavedQuestion, SavedQuestionBody
from api.services.call import Service
from catalog.errors import InvalidInput, NotAllowed
from catalog.records import questions as records_of
from catalog.values import now
from query.question.question import Question
from query.question.wrong_value import checked

if TYPE_CHECKING:
    from catalog.records.question_tables import SavedQuestion


class SavedQuestions(Service):
    """Saved questions of a home, as far as a caller sees them."""

    def list(self) -> list[SavedQuestionBody]:
        """The caller's and those that are shared, by name; all for admins and commands."""
        return [
            SavedQuestionBody.of(saved, is_owner=self._is_owner(saved))
            for saved in records_of.listed(self._session.whole.readable_records)
            if self._sees(saved)
        ]

    def get(self, name: str) -> CountedQuestionBody:
        """A saved question, and how many frames answer it now.

        Raises:
            NotFound: There is none of that name that the caller sees.
        """
        saved = self._recorded(name)
        frames, snapshot = self._count(_question_of(saved))
        return self._counted(saved, frames, snapshot)

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
        return self._counted(records_of.add(self._session.whole.records, saved), frames, snapshot)

    def see(self, name: str) -> CountedQuestionBody:
        """Keep the number of a question's frames now as the one that its owner saw last.

        Raises:
            NotFound: There is none of that name that the caller sees.
            NotAllowed: It is another user's.
        """
        saved = self._of_caller(name)
        frames, snapshot = self._count(_question_of(saved))
        saved = records_of.change(
            self._session.whole.records, name, frames=frames, snapshot=snapshot, counted=now()
        )
        return self._counted(saved, frames, snapshot)

    def remove(self, name: str) -> None:
        """Forget a question.

        Raises:
            NotFound: There is none of that name that the caller sees.
            NotAllowed: It is another user's; admins may.
        """
        saved = self._recorded(name)
        if not self._is_owner(saved) and not self._is_admin:
            raise _of_another(saved)
        records_of.remove(self._session.whole.records, name)

    def _recorded(self, name: str) -> "SavedQuestion":
        saved = records_of.recorded(self._session.whole.readable_records, name)
        if not self._sees(saved):
            raise records_of.missing(name)
        return saved

    def _of_caller(self, name: str) -> "SavedQuestion":
        saved = self._recorded(name)
        if not self._is_owner(saved):
            raise _of_another(saved)
        return saved

    @property
    def _is_admin(self) -> bool:
        return self._session.is_command or self._session.caller.may("admin")

    def _sees(self, saved: "SavedQuestion") -> bool:
        return saved.shared or self._is_admin or self._is_owner(saved)

    def _is_owner(self, saved: "SavedQuestion") -> bool:
        owner = self._session.owner
        return (saved.owner, saved.account) == (owner.name, owner.account)

    def _count(self, question: Question) -> tuple[int, int]:
        """Frames that answer a question now, and of which snapshot."""
        from query.frames.count_frames import count_frames  # with DuckDB: lists do without

        return count_frames(self._workspace.catalog, question)

    def _counted(self, saved: "SavedQuestion", frames: int, snapshot: int) -> CountedQuestionBody:
        body = SavedQuestionBody.of(saved, is_owner=self._is_owner(saved))
        return CountedQuestionBody(**dict(body), frames=frames, snapshot=snapshot)


def _question_of(saved: "SavedQuestion") -> Question:
    return Question.model_validate(saved.question)


def _of_another(saved: "SavedQuestion") -> NotAllowed:
    return NotAllowed(f"question {saved.name}: is {saved.owner or 'nobody'}'s, not yours")
