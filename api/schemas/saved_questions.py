"""Saved questions as JSON."""

from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, Field

from api.schemas.base import EXAMPLE_TIME, PageAnswer, Schema, iso_time
from api.schemas.selections import QuestionInside
from catalog.text.bounded import Name
from query.question.question import Question

if TYPE_CHECKING:  # commands that ask a server do without the records' database
    from catalog.records.question_tables import QuestionLook, SavedQuestion

_QUESTION = {"ranges": [{"tag": "bicycle", "lowest": 5000}]}


class NewSavedQuestion(QuestionInside):
    """A question to be saved."""

    model_config = ConfigDict(extra="forbid")

    name: Name = Field(description="Letters, digits and ._@-.", examples=["bikes"])
    question: Question = Field(
        description="Its conditions; no order, limit or sample.", examples=[_QUESTION]
    )
    shared: bool = Field(default=False, description="Whether other users see it.")


class SavedQuestionBody(Schema):
    """A saved question."""

    name: str = Field(examples=["bikes"])
    question: dict[str, Any] = Field(examples=[_QUESTION])
    shared: bool = Field(description="Whether other users see it.", examples=[True])
    owner: str = Field(examples=["anna"])
    own: bool = Field(description="Whether it is the caller's.", examples=[True])
    seen_frames: int | None = Field(
        description="Frames that the caller saw last: of one's own question since it was saved, of "
        "another's since the first /see; null before.",
        examples=[160],
    )
    seen: str | None = Field(description="When that was; likewise.", examples=[EXAMPLE_TIME])
    created: str = Field(examples=[EXAMPLE_TIME])

    @classmethod
    def of(
        cls, saved: "SavedQuestion", *, own: bool, look: "SavedQuestion | QuestionLook | None"
    ) -> "SavedQuestionBody":
        """A record's.

        Args:
            saved: The record.
            own: Whether it is the caller's.
            look: What the caller saw of it last, of the rows that the caller sees; None for none.
        """
        return cls(
            name=saved.name,
            question=saved.question,
            shared=saved.shared,
            owner=saved.owner,
            own=own,
            seen_frames=None if look is None else look.frames,
            seen=None if look is None else iso_time(look.counted),
            created=iso_time(saved.created),
        )


class CountedQuestionBody(SavedQuestionBody):
    """A saved question with the number of its frames now."""

    frames: int = Field(description="Of those that the caller sees.", examples=[172])
    snapshot: int = Field(description="Of the catalog, in which they were counted.", examples=[18])


class SavedQuestionsAnswer(PageAnswer):
    """Saved questions by name."""

    questions: list[SavedQuestionBody]
