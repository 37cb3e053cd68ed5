"""The gaps of a dataset, as they are told."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

GapKind = Literal["class", "camera", "scene"]


class Gap(BaseModel):
    """A class, camera or scene of which a dataset has too few frames."""

    model_config = ConfigDict(frozen=True)

    kind: GapKind
    value: str = Field(description="The class's tag, the camera, the scene.", examples=["bicycle"])
    name: str = Field(description="The class's name; the value else.", examples=["Bicycle"])
    frames: int = Field(description="Frames of the dataset, or its split, that have it.")
    catalog_frames: int = Field(description="Frames of the catalog that have it.", examples=[212])
    new_frames: int = Field(
        description="Those of them that are in no split of the dataset.", examples=[212]
    )
    sentence: str = Field(
        examples=["no Bicycle in split validation of city@1; 212 frames of the catalog have it"]
    )
    question: dict[str, Any] | None = Field(
        default=None,
        description="Finds the catalog's frames that have it, the dataset's own among them: a "
        "question cannot leave those out. Null where there is none.",
        examples=[{"ranges": [{"tag": "bicycle", "lowest": 1}], "snapshot": 12}],
    )
    command: str | None = Field(
        default=None,
        description="The same question for the command line.",
        examples=["framesift select --range bicycle=1: --at 12"],
    )


class GapReport(BaseModel):
    """The gaps of a dataset, those that the catalog can close first."""

    model_config = ConfigDict(frozen=True)

    dataset: str = Field(examples=["city@1"])
    split: str | None = Field(examples=["validation"])
    at_least: int = Field(description="Frames wanted of each.", examples=[1])
    frames: int = Field(description="Frames of the dataset, or of its split.")
    snapshot: int = Field(description="The catalog snapshot it is compared with.", examples=[12])
    gaps: tuple[Gap, ...]
    not_compared: tuple[str, ...] = Field(
        default=(),
        description="Tags of classes that the catalog has and the dataset's labels do not: how "
        "many frames show them is not known, so that they are no gaps.",
        examples=[["trailer"]],
    )
