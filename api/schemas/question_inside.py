"""Requests with a question inside."""

from typing import Any

from pydantic import model_validator

from api.schemas.base import Schema
from query.question.question import Question


class QuestionInside(Schema):
    """A request with a field ``question``; a part of one that is beside it says where it goes."""

    @model_validator(mode="before")
    @classmethod
    def _has_parts_inside(cls, body: Any) -> Any:
        parts = Question.model_fields.keys() - cls.model_fields.keys()
        misplaced = [name for name in body if name in parts] if isinstance(body, dict) else []
        if misplaced:
            name = misplaced[0]
            raise ValueError(
                f'{name}: is a part of the question; write {{"question": {{"{name}": ...}}}}'
            )
        return body
