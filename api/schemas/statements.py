"""Statements in SQL as JSON."""

from dataclasses import asdict
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from api.schemas.base import Schema
from catalog.text.bounded import Sql
from query.run.explain import Explanation

_EXAMPLE = "select filename, car from metaocean_view where car > 10000"


class Statement(BaseModel):
    """A statement in Db2's SQL."""

    model_config = ConfigDict(extra="forbid")

    statement: Sql = Field(description="One SELECT.", examples=[_EXAMPLE])


class StatementAt(Statement):
    """A statement, and the catalog's state that it asks."""

    at: int | None = Field(
        default=None, ge=1, lt=2**63, description="Number of the catalog snapshot; else the newest."
    )


class FirstRows(Schema):
    """The first rows of a statement."""

    columns: list[str]
    rows: list[list[Any]] = Field(description="A row's values, as JSON has them.")
    truncated: bool = Field(description="Whether there are more.")
    snapshot: int = Field(description="The catalog snapshot.")


class TableReadAnswer(Schema):
    """A table that a statement reads."""

    name: str = Field(description="Of the catalog.", examples=["class_pixels"])
    columns: list[str] = Field(description="What is read of it.", examples=[["fkey", "car"]])
    rows: int = Field(description="Rows that it has.", examples=[41277])
    estimated_rows: int | None = Field(
        description="Rows that are expected to be read; null where that is not known.",
        examples=[8255],
    )


class ExplanationAnswer(Schema):
    """The way in which a statement would be answered."""

    sql: str = Field(
        description="What DuckDB executes.",
        examples=['SELECT COUNT(*) FROM "lake"."main"."class_pixels" WHERE NOT "car" IS NULL'],
    )
    tables: list[TableReadAnswer]
    families: list[str] = Field(description="Families of tags among them.", examples=[["weather"]])
    estimated_rows: int | None = Field(
        description="Rows that the answer is expected to have; null where that is not known.",
        examples=[1],
    )
    snapshot: int = Field(description="The catalog snapshot.", examples=[3])

    @classmethod
    def of(cls, explanation: Explanation) -> "ExplanationAnswer":
        """A statement's."""
        return cls.model_validate(asdict(explanation))
