"""Selections as JSON: what a question means, its answer, and what tags can be asked."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pydantic import Field, model_validator

from api.schemas.base import Schema
from query.question.question import Question

if TYPE_CHECKING:
    from query.question.describe import Description

_FKEY = (
    "local:a2d2:camera_lidar_semantic/20180807_145028/camera/cam_front_center/"
    "20180807145028_camera_frontcenter_000000091.png"
)
_SQL = (
    "select platform, datasource, filename, fkey\nfrom metaocean_view\n"
    "where label_file is not null\n  and car >= 20000"
)


class DescriptionAnswer(Schema):
    """The meaning of a question."""

    question: dict[str, Any] = Field(
        description="As it was understood.",
        examples=[{"ranges": [{"tag": "car", "lowest": 20000}], "snapshot": 3}],
    )
    snapshot: int = Field(description="The catalog snapshot.", examples=[3])
    sentence: str = Field(
        description="In English.",
        examples=["frames with at least 20,000 car pixels, as of snapshot 3"],
    )
    sql: str = Field(description="In Db2's SQL.", examples=[_SQL])
    note: str = Field(description="What of it SQL cannot say; else empty.", examples=[""])

    @classmethod
    def of(cls, description: "Description") -> "DescriptionAnswer":
        """A question's."""
        return DescriptionAnswer(
            question=description.question.model_dump(mode="json", exclude_defaults=True),
            snapshot=description.snapshot,
            sentence=description.sentence,
            sql=description.sql.text,
            note=description.sql.note,
        )


class SelectionAnswer(DescriptionAnswer):
    """The frames that answer a question."""

    count: int = Field(description="How many.", examples=[1])
    class_pixels: dict[str, int] = Field(
        description="Pixels of each class in them.", examples=[{"car": 37833, "bicycle": 0}]
    )
    why_empty: str = Field(
        default="",
        description="Why there are none; only where there are none.",
        examples=["no frame has car >= 20000000: the largest is 321621"],
    )
    left_out: str = Field(
        default="",
        description="Frames without the value that != compares; only where there are some.",
        examples=["157 frames have no quality, so they are left out: 'quality not_known..."],
    )
    frames: list[dict[str, Any]] = Field(
        description="Each with its files, its pixels of each class, and the columns asked for.",
        examples=[[{"fkey": _FKEY, "scene": "20180807_145028", "frame_number": 91, "car": 37833}]],
    )


class OperatorAnswer(Schema):
    """An operator that a condition on a tag can have."""

    name: str = Field(description="As a question writes it.", examples=["between"])
    types: list[str] = Field(
        description="Types of the tags that it takes.", examples=[["number", "time"]]
    )
    shape: str = Field(description="none, one, two or many values.", examples=["two"])
    sql: str = Field(description="In Db2's SQL.", examples=["{x} between {v} and {w}"])
    words: str = Field(description="In English.", examples=["is {v} to {w}"])
    pattern: str = Field(description="LIKE pattern of a value; else empty.", examples=[""])


class OperatorsAnswer(Schema):
    """Every operator, and which of DuckDB's types make which type of tag."""

    types: dict[str, list[str]] = Field(
        description="DuckDB's types of each.", examples=[{"text": ["VARCHAR"]}]
    )
    operators: list[OperatorAnswer]

    @classmethod
    def all(cls) -> "OperatorsAnswer":
        """The table that conditions, sentences and SQL are made by: query.question.operators."""
        from query.question.operators import OPERATORS, TYPES

        listed = [asdict(operator) for operator in OPERATORS.values()]
        return cls.model_validate({"types": TYPES, "operators": listed})


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
