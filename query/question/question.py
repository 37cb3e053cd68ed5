"""A question: conditions on frames, how many of them, in which order."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from catalog.errors import InvalidInput
from catalog.lake.schema import LABELLED
from catalog.text.bounded import Few, Many, Name, Sql, Text
from query.question.condition import (
    CameraIn,
    CameraName,
    Condition,
    Group,
    Leaf,
    PixelRange,
    SceneIn,
    check_size,
    leaves,
)
from query.question.label_range import LabelRange

_MOST_ORDERS = 100

_NAMES_LABELLED = re.compile(rf"\b{LABELLED}\b", re.IGNORECASE)
_TEXTS = re.compile(r"'[^']*'")


class Question(BaseModel):
    """The frames that are wanted; every condition must hold.

    Only labelled frames are chosen, camera images whose label has been counted, unless a condition,
    ``where`` or ``sql`` names the tag `labelled`: labelled = 0 chooses those without a label.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    ranges: Few[LabelRange] = ()
    where: Sql | None = Field(
        default=None,
        description="A WHERE body in SQL over metaocean's columns and every tag.",
        examples=["car >= 10000 and scene like '2018%'"],
    )
    sql: Sql | None = Field(
        default=None,
        description="A SELECT in SQL whose rows name the frames: by fkey, or by filename with "
        "path, datasource and platform.",
        examples=["select fkey from t_car where int(value) >= 10000"],
    )
    cameras: Few[CameraName] = Field(default=(), examples=[("front_center",)])
    scenes: Many[Text] = Field(default=(), examples=[("20180807_145028",)])
    order: tuple[Name, ...] = Field(
        default=(),
        max_length=_MOST_ORDERS,
        fail_fast=True,
        description="Tags or columns, each with ' desc' for falling order.",
    )
    limit: int | None = Field(default=None, ge=1, lt=2**63, description="At most this many frames.")
    sample: int | None = Field(
        default=None, ge=1, lt=2**63, description="Choose this many at random."
    )
    seed: int = Field(default=0, ge=0, description="Decides what a sample holds.")
    condition: Condition | None = Field(
        default=None, description="More conditions, in groups of all, any and none of them."
    )
    snapshot: int | None = Field(
        default=None, ge=1, lt=2**63, description="The catalog snapshot to ask; else the newest."
    )
    model: Name | None = Field(
        default=None,
        min_length=1,
        description="A model whose scores were imported: uncertainty, margin, miou, accuracy and "
        "loss are its own, and confusion(TRUTH, PREDICTED) in where are pixels that it took so.",
    )

    @field_validator("condition", mode="before")
    @classmethod
    def _is_sane(cls, condition: Any) -> Any:
        if condition is not None:
            check_size(condition)
        return condition

    @classmethod
    def of_dataset(cls, stored: Mapping[str, Any]) -> "Question":
        """The question that a dataset's record keeps beside how it was divided."""
        return cls.model_validate({k: v for k, v in stored.items() if k in cls.model_fields})

    def conditions(self) -> tuple[Leaf | Group, ...]:
        """All that must hold but ``where``, in one form: ranges, cameras, scenes, condition."""
        conditions: list[Leaf | Group] = [
            PixelRange(kind="pixels", **limits.model_dump()) for limits in self.ranges
        ]
        if self.cameras:
            conditions.append(CameraIn(kind="camera", names=self.cameras))
        if self.scenes:
            conditions.append(SceneIn(kind="scene", names=self.scenes))
        if self.condition is not None:
            conditions.append(self.condition)
        return tuple(_without_all(conditions))

    @property
    def decides_on_labels(self) -> bool:
        """True where it says itself if frames must have a label, by naming the tag `labelled`."""
        if any(getattr(leaf, "tag", "").lower() == LABELLED for leaf in leaves(self.conditions())):
            return True
        sql = f"{self.where or ''} {self.sql or ''}"
        return _NAMES_LABELLED.search(_TEXTS.sub("", sql)) is not None

    def snapshot_for(self, at: int | None) -> int | None:
        """The snapshot to ask: the question's own, or ``at`` where it has none.

        Raises:
            InvalidInput: They differ.
        """
        if at is not None and self.snapshot is not None and at != self.snapshot:
            raise InvalidInput(
                f"snapshot {at}: the question is asked of snapshot {self.snapshot} by itself; "
                "leave one of them out"
            )
        return self.snapshot if at is None else at


def _without_all(conditions: Iterable[Leaf | Group]) -> Iterator[Leaf | Group]:
    """The members of ``all`` groups in their place."""
    for condition in conditions:
        if isinstance(condition, Group) and condition.kind == "all":
            yield from _without_all(condition.of)
        else:
            yield condition
