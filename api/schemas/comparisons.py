"""Jobs beside each other, as JSON."""

from typing import Any

from pydantic import ConfigDict, Field

from api.schemas.base import Schema
from catalog.text.bounded import Name

_MOST = 100


class NewComparison(Schema):
    """Jobs to be shown beside each other."""

    model_config = ConfigDict(extra="forbid")

    jobs: list[Name] = Field(
        min_length=2,
        max_length=_MOST,
        fail_fast=True,
        description="Their names.",
        examples=[["train-bikes-7", "train-bikes-8"]],
    )


class ComparisonBody(Schema):
    """Jobs beside each other: lists have a value for each, in the order of `jobs`."""

    jobs: list[str] = Field(examples=[["train-bikes-7", "train-bikes-8"]])
    job: dict[str, list[Any]] = Field(
        description="kind, state, dataset, split, backend, attempt and seconds.",
        examples=[{"state": ["done", "running"], "seconds": [61.5, None]}],
    )
    settings: dict[str, list[Any]] = Field(
        description="Those in which they differ; null for a job without it.",
        examples=[{"batch_size": [4, 8]}],
    )
    metrics: dict[str, list[Any]] = Field(
        description="Those that are one value each; null for a job without it.",
        examples=[{"loss": [0.42, 0.57]}],
    )
