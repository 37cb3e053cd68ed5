"""Extractions as JSON."""

from typing import Annotated

from pydantic import ConfigDict, Field

from api.schemas.base import Schema
from api.schemas.home_orders import Extraction
from api.schemas.order_bodies import body_of
from catalog.text.bounded import Name


@body_of(Extraction)
class NewExtraction(Schema):
    """Tags to be read."""

    model_config = ConfigDict(extra="forbid")

    source: Name
    extractors: Annotated[list[Name], Field(min_length=1, fail_fast=True)]
