"""Requests for statistics; the answers are query.statistics' own models."""

from pydantic import ConfigDict, Field

from api.schemas.selections import QuestionInside
from catalog.text.bounded import Few, Name
from query.question.question import Question


class FacetsRequest(QuestionInside):
    """The question whose facets are wanted; without any, all labelled frames."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    question: Question = Field(
        default=Question(), description="As a selection has it, without order, limit and sample."
    )
    tags: Few[Name] | None = Field(
        default=None,
        description="Only these tags' or classes' facets; those of every tag when left out.",
    )
    dataset: Name | None = Field(
        default=None, description="Only its frames, as its snapshot has them: NAME or NAME@VERSION."
    )
    split: Name | None = Field(default=None, description="Only this split of the dataset.")
    at: int | None = Field(
        default=None,
        ge=1,
        lt=2**63,
        description="Number of the catalog snapshot to ask; else the dataset's, or the newest.",
    )
