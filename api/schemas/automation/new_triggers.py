"""Triggers to be made or changed, as JSON."""

from typing import Annotated

from pydantic import ConfigDict, Field, model_validator

from api.schemas.base import Schema
from api.schemas.new_jobs import NewPrediction, NewProgram, NewTraining, NewValidation
from catalog.text.bounded import Content, Name, Sql, Text

_MOST = 2**31 - 1
_MOST_STEPS = 20

_DATASET = "NAME, or NAME@VERSION; by default the frames that the condition finds."
_MODEL = "Name of a training job; by default the training before it in this list."


class _Step(Schema):
    @model_validator(mode="after")
    def _names_no_job(self) -> "_Step":
        if getattr(self, "name", None) is not None:
            raise ValueError("name: a trigger names its jobs, a new name for each; leave it out")
        for name in ("question", "divide", "save_as"):
            if getattr(self, name, None) is not None:
                raise ValueError(f"{name}: a trigger's own condition chooses frames; leave it out")
        return self


class TrainStep(_Step, NewTraining):
    """A training, each time the trigger starts."""

    dataset: Name | None = Field(default=None, description=_DATASET)


class ValidateStep(_Step, NewValidation):
    """A validation, each time the trigger starts."""

    dataset: Name | None = Field(default=None, description=_DATASET)
    model: Name | None = Field(default=None, description=_MODEL)  # type: ignore[assignment]


class PredictStep(_Step, NewPrediction):
    """Predictions, each time the trigger starts."""

    dataset: Name | None = Field(default=None, description=_DATASET)
    model: Name | None = Field(default=None, description=_MODEL)  # type: ignore[assignment]


class ProgramStep(_Step, NewProgram):
    """A user's own program, each time the trigger starts."""

    dataset: Name | None = Field(default=None, description=_DATASET)


Step = Annotated[TrainStep | ValidateStep | PredictStep | ProgramStep, Field(discriminator="kind")]


class NewTrigger(Schema):
    """A trigger to be made."""

    model_config = ConfigDict(extra="forbid")

    name: Name = Field(
        description="Letters, digits and ._@-; its jobs' and datasets' names begin with it.",
        examples=["bikes"],
    )
    when: Sql | None = Field(
        default=None,
        description="A WHERE body over frames: it starts when enough more of them are there. A "
        "word that is compared with a column needs no quotes.",
        examples=["bicycle>0 and camera=front_center"],
    )
    min_frames: int | None = Field(
        default=None,
        ge=0,
        le=_MOST,
        description="So many more than at its last start, or than when it was added; 1 by default, "
        "with a schedule 0.",
        examples=[500],
    )
    quiet_s: int = Field(
        default=60,
        ge=0,
        le=86_400,
        description="Frames are counted once the catalog has not changed for so long [s], or has "
        "changed for ten times as long.",
    )
    schedule: Content | None = Field(
        default=None,
        description="minute, hour, dayOfMonth, month, dayOfWeek, timezone: it starts at these "
        "times only.",
        examples=[{"hour": 5, "dayOfWeek": "mon"}],
    )
    split: Text | None = Field(
        default=None,
        description="Division of the dataset that is made of the frames.",
        examples=["train=0.8,validation=0.2"],
    )
    then: list[Step] = Field(
        min_length=1,
        max_length=_MOST_STEPS,
        description="The jobs, one after another, each when the one before is done.",
        examples=[[{"kind": "train", "max_steps": 300}, {"kind": "validate"}]],
    )


class TriggerChange(Schema):
    """Fields to change."""

    model_config = ConfigDict(extra="forbid")

    enabled: bool = Field(description="Whether it starts jobs.", examples=[False])
