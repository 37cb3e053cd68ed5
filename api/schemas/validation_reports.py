"""Reports of validations, as JSON."""

from typing import Any

from pydantic import ConfigDict, Field

from api.schemas.base import Schema


class ClassScoreAnswer(Schema):
    """A class in a validation; scores are 0 to 1, null where there is nothing to score."""

    model_config = ConfigDict(populate_by_name=True)

    class_: str = Field(alias="class", examples=["Car"])
    tag: str = Field(examples=["car"])
    label_tags: list[str] = Field(
        default=[],
        description="Tags of the label classes that it is made of.",
        examples=[["car", "truck"]],
    )
    truth_pixels: int = Field(examples=[1204410])
    predicted_pixels: int = Field(examples=[1187220])
    iou: float | None = Field(examples=[0.71])
    iou_interval: tuple[float, float] | None = Field(
        default=None, description="Of 95 %, over scenes.", examples=[[0.66, 0.75]]
    )
    boundary_iou: float | None = Field(
        default=None, description="IoU near the class's outline.", examples=[0.52]
    )
    boundary_iou_interval: tuple[float, float] | None = Field(
        default=None, description="Of 95 %, over scenes.", examples=[[0.47, 0.57]]
    )
    object_sizes: list[dict[str, Any]] = Field(
        default=[],
        description="How much of its objects is found, by their size.",
        examples=[
            [
                {
                    "size": "small",
                    "from_pixels": 256,
                    "objects": 31,
                    "found": 0.42,
                    "found_interval": [0.3, 0.55],
                    "pixels": 20155,
                    "recall": 0.44,
                    "recall_interval": [0.33, 0.52],
                }
            ]
        ],
    )
    recall: float | None = Field(examples=[0.82])
    recall_interval: tuple[float, float] | None = Field(
        default=None, description="Of 95 %, over scenes.", examples=[[0.78, 0.86]]
    )
    precision: float | None = Field(examples=[0.84])
    precision_interval: tuple[float, float] | None = Field(
        default=None, description="Of 95 %, over scenes.", examples=[[0.8, 0.87]]
    )
    frames: int = Field(description="Frames that have it.", examples=[31])


class ReportAnswer(Schema):
    """A validation; scores are 0 to 1, null where there is nothing to score."""

    classes: list[str] = Field(description="In the matrix's order.", examples=[["Car", "Sky"]])
    miou: float | None = Field(
        description="Mean IoU of the classes that have truth.", examples=[0.43]
    )
    frequency_weighted_iou: float | None = Field(
        default=None, description="The same, weighted by truth pixels.", examples=[0.79]
    )
    pixel_accuracy: float | None = Field(description="Of all pixels.", examples=[0.87])
    boundary_iou: float | None = Field(
        default=None, description="Mean IoU near the classes' outlines.", examples=[0.31]
    )
    uncertainty: float | None = Field(
        default=None, description="Mean entropy of the predictions, 0 to 1.", examples=[0.22]
    )
    margin: float | None = Field(
        default=None,
        description="Mean distance between the two largest probabilities.",
        examples=[0.61],
    )
    disagreement: dict[str, Any] = Field(
        default={},
        description="Share of the pixels that get another class in the mirrored image: its mean, "
        "null where it was not asked for, and frames by twentieths.",
        examples=[{"mean": 0.06, "frames": [20, 12]}],
    )
    entropy: dict[str, Any] = Field(
        default={},
        description="uncertainty, and frames by twentieths of it.",
        examples=[{"mean": 0.22, "frames": [4, 28]}],
    )
    margins: dict[str, Any] = Field(
        default={},
        description="margin, and frames by twentieths of it.",
        examples=[{"mean": 0.61, "frames": [0, 32]}],
    )
    object_sizes: list[dict[str, Any]] = Field(
        default=[],
        description="How much of all objects is found, by size: connected pixels of a numbered "
        "class colour; empty where there is none.",
        examples=[
            [
                {
                    "size": "large",
                    "from_pixels": 9216,
                    "objects": 12,
                    "found": 0.9,
                    "found_interval": [0.8, 1.0],
                }
            ]
        ],
    )
    calibration: dict[str, Any] = Field(
        default={},
        description="Expected calibration error, and its bins.",
        examples=[{"ece": 0.04, "bins": []}],
    )
    intervals: dict[str, Any] = Field(
        default={},
        description="Of 95 %, by drawing scenes: of each score of the whole, by its name; null "
        "where fewer than two scenes have it. Other scores have theirs beside them.",
        examples=[
            {
                "scenes": 6,
                "draws": 1000,
                "miou": [0.39, 0.46],
                "pixel_accuracy": [0.84, 0.89],
                "frequency_weighted_iou": [0.75, 0.82],
                "boundary_iou": [0.27, 0.34],
                "ece": [0.03, 0.06],
                "uncertainty": [0.19, 0.26],
                "margin": [0.55, 0.66],
                "disagreement": None,
                "baseline_miou": [0.008, 0.012],
                "baseline_pixel_accuracy": [0.27, 0.36],
                "share_correlation": [0.4, 0.7],
            }
        ],
    )
    slices: dict[str, list[dict[str, Any]]] = Field(
        default={},
        description="Scores by camera, by scene, and by the tags that were asked for; intervals of "
        "95 % draw the scenes of a row, and are null where it is of one.",
        examples=[
            {
                "camera": [
                    {
                        "value": "front_center",
                        "frames": 32,
                        "scenes": 6,
                        "miou": 0.43,
                        "miou_interval": [0.38, 0.47],
                        "pixel_accuracy": 0.87,
                        "pixel_accuracy_interval": [0.83, 0.9],
                        "classes_with_truth": ["Car", "Sky"],
                    }
                ]
            }
        ],
    )
    baseline: dict[str, Any] = Field(
        description="Always the most frequent class.",
        examples=[{"class": "Sky", "miou": 0.01, "pixel_accuracy": 0.31}],
    )
    frames: int = Field(description="That were validated.", examples=[32])
    trained_frames: int | None = Field(
        default=0,
        description="Of these, the ones that the model was trained on; null where it has no list.",
        examples=[0],
    )
    warnings: list[str] = Field(
        default=[], description="What makes the scores say less.", examples=[[]]
    )
    ignored_pixels: int = Field(description="Of no class.", examples=[120])
    absent_classes: list[str] = Field(
        description="Without a pixel of truth.", examples=[["Animals"]]
    )
    stray_predictions: list[dict[str, Any]] = Field(
        default=[],
        description="Pixels taken for a class without truth.",
        examples=[[{"class": "Animals", "pixels": 310}]],
    )
    per_class: list[ClassScoreAnswer]
    dataset: dict[str, Any] = Field(
        description="Of what.",
        examples=[{"name": "bikes", "version": 1, "id": "5d41402abc4b", "split": "validation"}],
    )
    model: dict[str, Any] = Field(
        description="By what.", examples=[{"name": "train-bikes-7", "step": 300}]
    )
    thresholds: list[dict[str, Any]] = Field(
        default=[],
        description="The least scores that were asked for, and whether they were reached.",
        examples=[
            [
                {
                    "score": "miou",
                    "least": 0.4,
                    "value": 0.43,
                    "interval": [0.39, 0.46],
                    "reached": True,
                }
            ]
        ],
    )
    comparison: dict[str, Any] | None = Field(
        default=None,
        description="With another model on the same frames: differences of scores, each with its "
        "interval of 95 % over scenes and a verdict; null where none was asked for. regressions "
        "and improvements are null where the frames are of one scene, which has no intervals.",
        examples=[
            {
                "model": {"name": "train-bikes-6", "step": 300},
                "scenes": 6,
                "scores": [
                    {
                        "score": "miou",
                        "value": 0.43,
                        "other": 0.41,
                        "difference": 0.02,
                        "interval": [-0.01, 0.05],
                        "verdict": "not told apart",
                    }
                ],
                "regressions": ["pedestrian"],
                "improvements": [],
            }
        ],
    )
    shards: int = Field(description="Processes that took part.", examples=[2])
    confusion_matrix: list[list[int]] = Field(
        description="Pixels; rows truth, columns prediction.", examples=[[[9, 1], [2, 20]]]
    )
