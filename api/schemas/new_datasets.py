"""Datasets to be made, divided or changed, as JSON."""

from pydantic import BaseModel, ConfigDict, Field

from api.schemas.base import Schema
from api.schemas.selections import QuestionInside
from catalog.text.bounded import Few, Name, Text
from query.question.question import Question
from query.sets.methods import Demand, Method
from query.sets.min_gap import MIN_GAP_S


class Apart(BaseModel):
    """Rules that keep sides apart."""

    model_config = ConfigDict(extra="forbid")

    min_gap_s: float = Field(
        default=MIN_GAP_S,
        ge=0,
        allow_inf_nan=False,
        description="Frames nearer in time than this stay on one side [s].",
    )
    allow_leakage: bool = Field(
        default=False, description="Sides may share scenes, drives and moments."
    )
    seed: int = Field(default=0, ge=0)


class Divided(Apart):
    """The division of frames into splits."""

    split: Text | None = Field(default=None, examples=["train=0.8,validation=0.2"])
    split_by: Name = Field(
        default="scene",
        description="What stays on one side: scene, camera, any tag, or frame for nothing.",
    )
    stratify_splits: Few[Name] = Field(
        default=(),
        description="What every split has its share of: tags, or tags with edges of bins.",
        examples=[("camera", "car:0,1000")],
    )


class NewDataset(QuestionInside, Divided):
    """A dataset to be made."""

    name: Name = Field(
        description="The server puts the name of a user limited to collections before it: "
        "anna~val-bikes.",
        examples=["val-bikes"],
    )
    question: Question = Question()
    method: Method | None = Field(
        default=None, description="How to choose among the frames that answer the question."
    )
    split_given: bool = Field(
        default=False,
        description="Keep the splits of the data set's makers (the tag given_split) as train, "
        "validation and test, instead of `split`.",
    )
    disjoint_from: Few[Name] = Field(
        default=(),
        description="Datasets with which it shares no scene, drive or moment.",
        examples=[("train-1@2",)],
    )


class DatasetChange(BaseModel):
    """A dataset's other name, or another description; what is left out stays."""

    model_config = ConfigDict(extra="forbid")

    name: Name | None = Field(
        default=None, description="Of all its versions.", examples=["val-bikes-night"]
    )
    description: Text | None = Field(
        default=None, description="Of this version; empty for none.", examples=["night drives"]
    )


class NewSplit(Divided):
    """A dataset to be divided again."""

    split: Text = Field(min_length=1, examples=["train=0.8,validation=0.2"])


class NewReduction(Schema):
    """A dataset whose training split is to keep its most informative frames only."""

    model_config = ConfigDict(extra="forbid")

    frames: int = Field(ge=1, le=100_000_000, description="How many the split keeps.")
    model: Text | None = Field(
        default=None,
        description="Name of a training job: what its newest validation finds it weak in is kept "
        "before the rest.",
        examples=["train-bikes-7"],
    )
    split: Text | None = Field(
        default=None, description="Which split; train, or the only one, by default."
    )
    seed: int = Field(
        default=0, ge=0, description="Decides between frames that are worth the same."
    )


class NewExtension(Apart):
    """A dataset to be extended where it lacks frames."""

    demands: Few[Demand] = Field(min_length=1)
    split: Text | None = Field(
        default=None, description="Which split lacks them; the only one by default."
    )
