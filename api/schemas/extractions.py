"""Extractions as JSON."""

from pydantic import ConfigDict, Field

from api.schemas.base import Schema
from catalog.text.bounded import Name

_MOST_WORKERS = 64


class NewExtraction(Schema):
    """Tags to be read."""

    model_config = ConfigDict(extra="forbid")

    source: Name = Field(description="The source.", examples=["a2d2"])
    extractors: list[Name] = Field(
        min_length=1,
        max_length=100,
        fail_fast=True,
        description="Of those that are installed on the server.",
        examples=[["image", "bus"]],
    )
    full: bool = Field(default=False, description="Also read frames that were read before.")
    workers: int = Field(default=2, ge=1, le=_MOST_WORKERS, description="Frames read at once.")
    errors: bool = Field(default=False, description="Only list the bad files.")
