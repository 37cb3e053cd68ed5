"""Improvements of a model's training data as JSON."""

from typing import Any

from pydantic import ConfigDict, Field

from api.schemas.base import Schema
from api.schemas.datasets import EXAMPLE_FKEY, DatasetBody
from catalog.text.bounded import Few, Many, Name, Text
from query.sets.min_gap import MIN_GAP_S

_MOST_FRAMES = 1_000_000
_MOST_LISTED = 100_000


class NewImprovement(Schema):
    """Frames that a model is to be trained on next."""

    model_config = ConfigDict(extra="forbid")

    frames: int = Field(
        default=100,
        ge=0,
        le=_MOST_FRAMES,
        description="Labelled frames to add, as a new version of the dataset; 0 with label to "
        "list only.",
    )
    label: int = Field(
        default=0,
        ge=0,
        le=_MOST_LISTED,
        description="Unlabelled frames to list that are most worth a label.",
    )
    per_scene: int | None = Field(
        default=None, ge=1, le=_MOST_FRAMES, description="Most of one scene."
    )
    min_gap_s: float = Field(
        default=MIN_GAP_S,
        ge=0,
        allow_inf_nan=False,
        description="They are at least so far from frames that are validated with [s].",
    )
    classes: Few[Name] = Field(
        default=(),
        description="Classes that frames are chosen for, by name or tag, as the validation's "
        "report has them; all, each by how weak the model is in it, when empty.",
        examples=[["bicyclist", "pedestrian"]],
    )
    seed: int = Field(
        default=0, ge=0, description="Decides between frames that are worth the same."
    )
    drop: Many[Text] = Field(
        default=(),
        description="fkeys of frames that are left out of those chosen, of to_add or to_label of "
        "the same request without it; no other takes their place.",
        examples=[[EXAMPLE_FKEY]],
    )
    dry_run: bool = Field(
        default=False, description="Answer what would be added and listed, and save nothing."
    )


class FrameReason(Schema):
    """Why a frame was chosen."""

    fkey: str = Field(examples=[EXAMPLE_FKEY])
    reason: str = Field(
        description="In words.",
        examples=["predicted 2,100 pixels of bicyclist, 61 % uncertain"],
    )
    pixels: dict[str, int] = Field(
        description="Of the classes that it was chosen for, by tag, most first, three at most.",
        examples=[{"bicyclist": 2100}],
    )
    predicted: bool = Field(
        description="The pixels are what the model's prediction lets expect; else the label's."
    )
    uncertainty: float | None = Field(
        description="How unsure the model was of it, 0 to 1; null where its scores were not "
        "imported.",
        examples=[0.61],
    )


class ImprovementBody(Schema):
    """The next training data of a model."""

    model: str = Field(examples=["train-bikes-7"])
    validation: str = Field(
        description="The job whose report said where it is weak.", examples=["validate-bikes-2"]
    )
    trained_on: str = Field(
        description="The dataset that the model was trained on.", examples=["bikes@1"]
    )
    snapshot: int = Field(
        description="The catalog snapshot that frames were chosen from; as at, it has the same "
        "ones chosen again.",
        examples=[7],
    )
    dataset: DatasetBody | None = Field(
        description="The new version, null where no frame was added; report.expects says of each "
        "class how weak the model is in it, and in how many frames of the split it was, and comes."
    )
    nothing_added: str | None = Field(
        default=None,
        description="Why there is no new version, where frames were asked for.",
        examples=[None],
    )
    unsaved: dict[str, Any] | None = Field(
        default=None,
        description="Of a dry run, the report that the new version would have.",
        examples=[None],
    )
    to_add: list[str] = Field(
        description="fkeys of the labelled frames that were added, or would be; those first that "
        "add most.",
        examples=[[EXAMPLE_FKEY]],
    )
    to_label: list[str] = Field(
        description="fkeys of unlabelled frames that are most worth a label.",
        examples=[[EXAMPLE_FKEY]],
    )
    reasons: list[FrameReason] = Field(
        description="Why each frame was chosen, those that are added first, then those to label; "
        "of each, those first that add most."
    )
