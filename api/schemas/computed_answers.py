"""What /v1 answers of what it computes, as the OpenAPI document shows it."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

_FKEY = (
    "local:a2d2:camera_lidar_semantic/20180807_145028/camera/cam_front_center/"
    "20180807145028_camera_frontcenter_000000091.png"
)
_SQL = (
    "select platform, datasource, filename, fkey\nfrom metaocean_view\n"
    "where label_file is not null\n  and car >= 20000"
)


class DescriptionAnswer(BaseModel):
    """What a question means."""

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
    frames: list[dict[str, Any]] = Field(
        description="Each with its files, and every tag.",
        examples=[[{"fkey": _FKEY, "scene": "20180807_145028", "frame_number": 91, "car": 37833}]],
    )


class OperatorAnswer(BaseModel):
    """What a tag can be asked."""

    name: str = Field(description="As a question writes it.", examples=["between"])
    types: list[str] = Field(
        description="Types of the tags that it takes.", examples=[["number", "time"]]
    )
    shape: str = Field(description="none, one, two or many values.", examples=["two"])
    sql: str = Field(description="In Db2's SQL.", examples=["{x} between {v} and {w}"])
    words: str = Field(description="In English.", examples=["is {v} to {w}"])
    pattern: str = Field(description="LIKE pattern of a value; else empty.", examples=[""])


class OperatorsAnswer(BaseModel):
    """Every operator, and which of DuckDB's types make which type of tag."""

    types: dict[str, list[str]] = Field(
        description="DuckDB's types of each.", examples=[{"text": ["VARCHAR"]}]
    )
    operators: list[OperatorAnswer]


class MovedAnswer(BaseModel):
    """A frame that both datasets have, in other splits."""

    fkey: str = Field(examples=[_FKEY])
    before: str = Field(examples=["train"])
    after: str = Field(examples=["validation"])


class ShareChangeAnswer(BaseModel):
    """A value's part of each dataset, 0 to 1."""

    value: str = Field(description="Class, camera or scene.", examples=["Car"])
    before: float = Field(examples=[0.0785])
    after: float = Field(examples=[0.0613])


class ComparedAnswer(BaseModel):
    """A distribution in both datasets, and how far apart they are."""

    distance: dict[str, float | None] = Field(
        description="By several measures, 0 where they are equal.",
        examples=[{"total_variation": 0.0552, "jensen_shannon": 0.0871}],
    )
    values: list[ShareChangeAnswer]


class DiffAnswer(BaseModel):
    """What changed from one dataset to another."""

    before: str = Field(examples=["bikes@1"])
    after: str = Field(examples=["bikes@2"])
    frames_before: int = Field(examples=[160])
    frames_after: int = Field(examples=[168])
    frames_added: int = Field(examples=[9])
    frames_removed: int = Field(examples=[1])
    frames_moved: int = Field(description="Into another split.", examples=[1])
    added: list[str] = Field(description="The first of them.", examples=[[_FKEY]])
    removed: list[str] = Field(description="The first of them.", examples=[[_FKEY]])
    moved: list[MovedAnswer]
    class_pixels: ComparedAnswer
    class_frames: ComparedAnswer
    cameras: ComparedAnswer
    scenes: ComparedAnswer


class ClassScoreAnswer(BaseModel):
    """A class in a validation; scores are 0 to 1, null where there is nothing to score."""

    model_config = ConfigDict(populate_by_name=True)

    class_: str = Field(alias="class", examples=["Car"])
    tag: str = Field(examples=["car"])
    truth_pixels: int = Field(examples=[1204410])
    predicted_pixels: int = Field(examples=[1187220])
    iou: float | None = Field(examples=[0.71])
    recall: float | None = Field(examples=[0.82])
    precision: float | None = Field(examples=[0.84])
    frames: int = Field(description="Frames that have it.", examples=[31])


class ReportAnswer(BaseModel):
    """A validation; scores are 0 to 1, null where there is nothing to score."""

    classes: list[str] = Field(description="In the matrix's order.", examples=[["Car", "Sky"]])
    miou: float | None = Field(description="Mean IoU of the classes.", examples=[0.43])
    pixel_accuracy: float | None = Field(description="Of all pixels.", examples=[0.87])
    baseline: dict[str, Any] = Field(
        description="Always the most frequent class.",
        examples=[{"class": "Sky", "miou": 0.01, "pixel_accuracy": 0.31}],
    )
    frames: int = Field(description="That were validated.", examples=[32])
    trained_frames: int = Field(
        default=0, description="Of these, the ones that the model was trained on.", examples=[0]
    )
    warnings: list[str] = Field(
        default=[], description="What makes the scores say less.", examples=[[]]
    )
    ignored_pixels: int = Field(description="Of no class.", examples=[120])
    absent_classes: list[str] = Field(
        description="Without a pixel of truth.", examples=[["Animals"]]
    )
    per_class: list[ClassScoreAnswer]
    dataset: dict[str, Any] = Field(
        description="Of what.",
        examples=[{"name": "bikes", "version": 1, "id": "5d41402abc4b", "split": "validation"}],
    )
    model: dict[str, Any] = Field(
        description="By what.", examples=[{"name": "train-bikes-7", "step": 300}]
    )
    shards: int = Field(description="Processes that took part.", examples=[2])
    confusion_matrix: list[list[int]] = Field(
        description="Pixels; rows truth, columns prediction.", examples=[[[9, 1], [2, 20]]]
    )
