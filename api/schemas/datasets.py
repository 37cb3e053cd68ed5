"""Datasets as JSON: versions, the difference of two, and what is to be made."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from api.schemas.base import EXAMPLE_TIME, PageAnswer, Schema, TellPath, finite, iso_time
from api.schemas.selections import QuestionInside
from catalog.text.bounded import Few, Name, Text
from query.question.question import Question
from query.sets.methods import Demand, Method
from query.sets.min_gap import MIN_GAP_S

if TYPE_CHECKING:  # commands that ask a server do without the records' database
    from catalog.records.tables import Dataset

EXAMPLE_FKEY = (
    "local:a2d2:camera_lidar_semantic/20180807_145028/camera/cam_front_center/"
    "20180807145028_camera_frontcenter_000000091.png"
)


class DatasetBody(Schema):
    """A dataset's version, without its frames."""

    name: str = Field(examples=["bikes"])
    version: int = Field(examples=[1])
    id: str = Field(description="Of its content.", examples=["5d41402abc4b2a76b9719d911017c592"])
    created: str = Field(examples=[EXAMPLE_TIME])
    question: dict[str, Any] = Field(examples=[{"ranges": [{"tag": "bicycle", "lowest": 5000}]}])
    snapshot: int = Field(description="Of the catalog.", examples=[12])
    frames: int = Field(examples=[160])
    splits: dict[str, Any] = Field(
        description="Frames of each.", examples=[{"train": 128, "validation": 32}]
    )
    class_pixels: dict[str, Any] = Field(examples=[{"bicycle": 1204410}])
    class_frames: dict[str, Any] = Field(examples=[{"bicycle": 160}])
    seed: int = Field(examples=[0])
    parents: list[Any] = Field(description="What it was made from.", examples=[[]])
    report: dict[str, Any] = Field(description="What was achieved.", examples=[{}])
    manifest: str = Field(examples=["/data/framesift/datasets/bikes/1"])
    owner: str = Field(
        description="The user who made it; empty where it was made on the server's own command "
        "line, and of others' datasets where rows of collections are seen only.",
        examples=["anna"],
    )

    models: list[str] = Field(
        default=[],
        description="Trained on this version, newest first; `/v1/models/{name}` shows them.",
        examples=[["train-bikes-7"]],
    )
    description: str = Field(
        default="",
        description="What its users say of it; empty of others' datasets where rows of collections "
        "are seen only.",
        examples=["night drives, labels checked twice"],
    )

    @classmethod
    def of(
        cls, dataset: "Dataset", path_text: TellPath = str, models: Sequence[str] = ()
    ) -> "DatasetBody":
        """A record's; paths as ``path_text`` gives them."""
        return cls(
            name=dataset.name,
            version=dataset.version,
            id=dataset.content_id,
            created=iso_time(dataset.created),
            question=finite(dataset.question),
            snapshot=dataset.snapshot,
            frames=dataset.frames,
            splits=dataset.splits,
            class_pixels=dataset.class_pixels,
            class_frames=dataset.class_frames,
            seed=int(dataset.seed),
            parents=dataset.parents,
            report=finite(dataset.report),
            manifest=path_text(dataset.manifest),
            owner=dataset.owner,
            models=list(models),
            description=dataset.description,
        )


class DatasetsAnswer(PageAnswer):
    """Versions of datasets, by name and version."""

    datasets: list[DatasetBody]


class MovedAnswer(Schema):
    """A frame that both datasets have, in other splits."""

    fkey: str = Field(examples=[EXAMPLE_FKEY])
    before: str = Field(examples=["train"])
    after: str = Field(examples=["validation"])


class ShareChangeAnswer(Schema):
    """A value's part of each dataset, 0 to 1."""

    value: str = Field(description="Class, camera or scene.", examples=["Car"])
    before: float = Field(examples=[0.0785])
    after: float = Field(examples=[0.0613])


class ComparedAnswer(Schema):
    """A distribution in both datasets, and how far apart they are."""

    distance: dict[str, float | None] = Field(
        description="By several measures, 0 where they are equal.",
        examples=[{"total_variation": 0.0552, "jensen_shannon": 0.0871}],
    )
    values: list[ShareChangeAnswer]


class DiffAnswer(Schema):
    """Changes from one dataset to another."""

    before: str = Field(examples=["bikes@1"])
    after: str = Field(examples=["bikes@2"])
    frames_before: int = Field(examples=[160])
    frames_after: int = Field(examples=[168])
    frames_added: int = Field(examples=[9])
    frames_removed: int = Field(examples=[1])
    frames_moved: int = Field(description="Into another split.", examples=[1])
    added: list[str] = Field(description="The first of them.", examples=[[EXAMPLE_FKEY]])
    removed: list[str] = Field(description="The first of them.", examples=[[EXAMPLE_FKEY]])
    moved: list[MovedAnswer]
    class_pixels: ComparedAnswer
    class_frames: ComparedAnswer
    cameras: ComparedAnswer
    scenes: ComparedAnswer


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


class DatasetRemoved(Schema):
    """A dataset, or versions of it, that was removed."""

    removed: list[str] = Field(examples=[["bikes@1", "bikes@2"]])


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
