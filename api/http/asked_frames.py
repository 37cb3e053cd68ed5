"""The frames of a statistic: the query parameters that the routes share."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from catalog.errors import InvalidInput
from query.question.label_range import LabelRange
from query.question.question import Question
from query.question.wrong_value import input_errors


class AskedFrames(BaseModel):
    """All conditions must hold; without any, all labelled frames."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    range: list[str] = Field(
        default=[],
        description="CLASS=LOWEST:HIGHEST in pixels, either end open; may be given again.",
        examples=[["car=10000:20000"]],
    )
    where: str | None = Field(
        default=None,
        description="A WHERE body in SQL over metaocean's columns and every tag.",
        examples=["car >= 10000 and scene like '2018%'"],
    )
    camera: list[str] = Field(default=[], examples=[["front_center"]])
    scene: list[str] = Field(default=[], examples=[["20180807_145028"]])
    question: str | None = Field(
        default=None,
        description="A question as JSON, in place of range, where, camera and scene.",
        examples=['{"condition": {"kind": "has", "tag": "car"}}'],
    )
    dataset: str | None = Field(
        default=None,
        description="Only its frames, as its snapshot has them: NAME, or NAME@VERSION.",
        examples=["city@1"],
    )
    split: str | None = Field(default=None, description="Only this split of the dataset.")
    at: int | None = Field(
        default=None,
        ge=1,
        lt=2**63,
        description="Number of the catalog snapshot to ask; else the dataset's, or the newest.",
    )

    def which(self) -> dict[str, Any]:
        """The frames that are meant, as arguments of api.services.statistics.service."""
        return {
            "question": self._question(),
            "dataset": self.dataset,
            "split": self.split,
            "at": self.at,
        }

    def _question(self) -> Question:
        if self.question is None:
            with input_errors():
                return Question(
                    ranges=tuple(LabelRange.parse(text) for text in self.range),
                    where=self.where,
                    cameras=tuple(self.camera),
                    scenes=tuple(self.scene),
                )
        if self.range or self.where or self.camera or self.scene:
            raise InvalidInput(
                "question: it takes the place of range, where, camera and scene; leave those out, "
                "or put them into it"
            )
        with input_errors("question: "):
            return Question.model_validate_json(self.question)
