"""A dataset to be made, divided or extended, as it is asked for."""

from pydantic import BaseModel, ConfigDict, Field

from catalog.text.bounded import Few, Name, Text
from query.frames.selection import Question
from query.sets.methods import MIN_GAP_S, Demand, Method


class Apart(BaseModel):
    """What keeps sides apart."""

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
    """How frames are divided."""

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


class NewDataset(Divided):
    """A dataset to be made."""

    name: Name = Field(
        description="Of who sees some rows only, it is saved with the user's: anna~val-bikes.",
        examples=["val-bikes"],
    )
    question: Question = Question()
    method: Method | None = Field(
        default=None, description="How to choose among the frames that answer the question."
    )
    disjoint_from: Few[Name] = Field(
        default=(),
        description="Datasets with which it shares no scene, drive or moment.",
        examples=[("train-1@2",)],
    )


class NewSplit(Divided):
    """A dataset to be divided anew."""

    split: Text = Field(min_length=1, examples=["train=0.8,validation=0.2"])


class NewExtension(Apart):
    """A dataset to be extended where it lacks frames."""

    demands: Few[Demand] = Field(min_length=1)
    split: Text | None = Field(
        default=None, description="Which split lacks them; the only one by default."
    )
