"""What /v1 answers of what it computes, as the OpenAPI document shows it."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


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
