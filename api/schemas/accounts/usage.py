"""Jobs' usage of machines, as JSON."""

from typing import Literal

from pydantic import Field

from api.schemas.base import Schema

By = Literal["user", "dataset", "kind"]


class UsageBody(Schema):
    """Sums of the jobs of a user, on a dataset or of a kind."""

    name: str = Field(
        description="Of user, dataset (NAME@VERSION) or kind; empty for jobs without one.",
        examples=["anna"],
    )
    jobs: int = Field(description="Jobs on record.", examples=[3])
    core_seconds: float = Field(description="Cores times seconds [s].", examples=[7200.0])
    gpu_seconds: float = Field(description="GPUs times seconds [s].", examples=[3600.0])
    wait_seconds: float = Field(description="From submission to start [s].", examples=[12.5])


class UsageAnswer(Schema):
    """By name."""

    usage: list[UsageBody]
