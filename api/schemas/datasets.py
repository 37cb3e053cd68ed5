"""Datasets as JSON: versions, the difference of two, and what is to be made."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from api.schemas.base import EXAMPLE_TIME, PageAnswer, Schema, TellPath, finite, iso_time

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


class LayoutOfSources(Schema):
    """A layout, and the sources of a dataset that were read by it."""

    layout: str = Field(
        description="A preset's name or that of its file; empty where it has none.",
        examples=["cityscapes"],
    )
    sources: list[str] = Field(examples=[["streets"]])


class DatasetAnswer(DatasetBody):
    """A dataset's version, with what its manifest says beside its frames."""

    layouts: list[LayoutOfSources] | None = Field(
        description="By which its sources were read; null where the manifest cannot be read."
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
    before: float | None = Field(
        description="null where the dataset's labels do not have the class.", examples=[0.0785]
    )
    after: float | None = Field(examples=[0.0613])


class ComparedAnswer(Schema):
    """A distribution in both datasets, and how far apart they are."""

    distance: dict[str, float | None] = Field(
        description="By several measures, of the values that both have a share of; 0 where they "
        "are equal, null where both have none.",
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


class DatasetRemoved(Schema):
    """A dataset, or versions of it, that was removed."""

    removed: list[str] = Field(examples=[["bikes@1", "bikes@2"]])
