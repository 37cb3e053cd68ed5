"""Jobs to be submitted or resumed, as JSON."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from api.schemas.base import Schema
from api.schemas.new_datasets import NewSplit
from api.schemas.order_bodies import body_of
from api.schemas.selections import QuestionInside
from catalog.text.bounded import Content, Few, Name, Text
from pipeline.runs.job_order import JobOrder
from pipeline.runs.job_orders import job_order_of
from pipeline.runs.orders import FramesOrder, Order, Prediction, Program, Training, Validation
from pipeline.runs.preflight_order import Preflight
from pipeline.runs.scaling_order import Scaling
from query.question.question import Question

_MOST_WORKERS = 1024
_MOST = 2**31 - 1


class ResourcesBody(Schema):
    """The resources that a job asks of its machines, as far as its backend knows it."""

    model_config = ConfigDict(extra="forbid")

    ranks_per_node: int | None = Field(default=None, ge=1, le=_MOST_WORKERS, examples=[8])
    gpus: int = Field(default=0, ge=0, le=1024, description="For each process.", examples=[1])
    cores: int | None = Field(default=None, ge=1, le=65_536, description="For each process.")
    memory_mb: int | None = Field(default=None, ge=1, le=_MOST, description="On each machine [MB].")
    wall_minutes: int | None = Field(
        default=None, ge=1, le=_MOST, description="After which its turn ends [min].", examples=[600]
    )
    nodes: str = Field(default="", max_length=4096, description="Names of machines.")
    constraint: str = Field(default="", max_length=1024, description="Labels of its machines.")
    image: str = Field(
        default="", max_length=4096, description="Container image, of those allowed."
    )
    mounts: dict[Text, Text] = Field(
        default={}, max_length=64, description="Folders, and where they lie inside the image."
    )
    environment: Few[Name] = Field(
        default=(), description="Names of variables that it cannot do without."
    )
    options: dict[Name, Name] = Field(
        default={},
        max_length=32,
        description="Settings of the backend's own.",
        examples=[{"partition": "gpu"}],
    )


@body_of(FramesOrder)
class _OnFrames(QuestionInside):
    model_config = ConfigDict(extra="forbid")

    dataset: Name | None = Field(
        default=None, description="NAME, or NAME@VERSION.", examples=["bikes@1"]
    )
    question: Question | None = Field(
        default=None,
        description="In the dataset's place: the frames that answer it, which steps of the job "
        "save as a dataset and stage.",
        examples=[
            {"ranges": [{"tag": "car", "lowest": 10_000}], "cameras": ["front_center"]},
        ],
    )
    divide: NewSplit | None = Field(
        default=None,
        description="How the question's frames are divided into splits; all are one without it.",
        examples=[{"split": "train=0.8,validation=0.2"}],
    )
    resources: ResourcesBody | None = Field(
        default=None, description="What it asks of the machines there, besides processes."
    )

    def order(self) -> JobOrder:
        """The order that a request makes."""
        return _order_of(self)


def _order_of(body: BaseModel) -> JobOrder:
    values = {name: getattr(body, name) for name in type(body).model_fields}
    for name, value in values.items():
        if isinstance(value, BaseModel):
            values[name] = value.model_dump(
                mode="json", exclude_unset=name == "divide", exclude_none=name != "divide"
            )
    return job_order_of(values)


@body_of(Order)
class _NewJob(_OnFrames):
    pass


class HorovodOptions(Schema):
    """Options of a training's exchange of gradients; what is left out, Horovod chooses."""

    model_config = ConfigDict(extra="forbid")

    fusion_mb: float | None = Field(
        default=None, ge=0, le=65_536, description="Size of a message [MiB]; 0: no fusion."
    )
    cycle_ms: float | None = Field(
        default=None, ge=0, le=65_536, description="Between two looks for gradients [ms]."
    )
    compression: Literal["none", "fp16"] = Field(
        default="none", description="What is sent of a gradient: all, or halves."
    )
    reduce: Literal["average", "adasum"] = Field(
        default="average",
        description="Adasum needs MPI, which jobs do not start workers by: they refuse it.",
    )


@body_of(Training)
class NewTraining(_NewJob):
    """A network to be trained on a dataset's split."""

    kind: Literal["train"] = Field(examples=["train"])
    classes: Literal["all", "a2d2-8", "cityscapes-19"] | Content | None
    augment: list[Literal["mirror", "crop", "scale", "colour"]] | None
    horovod: HorovodOptions | None
    model: Literal["small_unet", "deeplabv3plus_resnet50"] | None
    precision: Literal["auto", "float32", "mixed_float16"] | None


@body_of(Validation)
class NewValidation(_NewJob):
    """A model to be validated on a dataset's split, or predictions that another program made."""

    kind: Literal["validate"] = Field(examples=["validate"])
    model: Name
    onnx: dict[Name, Annotated[str, Field(max_length=256)]] | None
    model_info: dict[Name, Annotated[str, Field(max_length=512)]] | None
    encoding: Name | Content | None
    classes: Literal["all", "a2d2-8", "cityscapes-19"] | Content | None
    fail_below: dict[Name, float] | None
    slices: Few[Name]
    augment_test: Literal["mirror"] | None


@body_of(Prediction)
class NewPrediction(_NewJob):
    """A model that is to say what is in frames, with or without labels."""

    kind: Literal["predict"] = Field(examples=["predict"])
    model: Name
    onnx: dict[Name, Annotated[str, Field(max_length=256)]] | None
    classes: Literal["all", "a2d2-8", "cityscapes-19"] | Content | None


@body_of(Program)
class NewProgram(_NewJob):
    """A user's own program to be run on a dataset, where the server allows it."""

    kind: Literal["run"] = Field(examples=["run"])
    command: Annotated[str, Field(min_length=1)]


@body_of(Preflight)
class NewPreflight(Schema):
    """Ranks that are to measure their exchange, disks, clocks and versions."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["preflight"] = Field(examples=["preflight"])
    through: Literal["horovod", "torch"]
    resources: ResourcesBody | None = Field(
        default=None, description="What it asks of the machines there, besides processes."
    )

    def order(self) -> JobOrder:
        """The order that a request makes."""
        return _order_of(self)


@body_of(Scaling)
class NewScaling(_OnFrames):
    """A training that is to be run on several numbers of ranks, several times each."""

    kind: Literal["scaling"] = Field(examples=["scaling"])
    classes: Literal["all", "a2d2-8", "cityscapes-19"] | Content | None
    augment: list[Literal["mirror", "crop", "scale", "colour"]] | None
    horovod: HorovodOptions | None
    model: Literal["small_unet", "deeplabv3plus_resnet50"] | None
    precision: Literal["auto", "float32", "mixed_float16"] | None
    ranks: Annotated[
        list[Annotated[int, Field(ge=1, le=_MOST_WORKERS)]], Field(min_length=1, max_length=16)
    ]


NewJob = Annotated[
    NewTraining | NewValidation | NewPrediction | NewProgram | NewPreflight | NewScaling,
    Field(discriminator="kind"),
]


class NewAttempt(Schema):
    """Changes to a job that is resumed; what is left out stays."""

    model_config = ConfigDict(extra="forbid")

    workers: int | None = Field(
        default=None,
        ge=1,
        le=_MOST_WORKERS,
        description="Processes with which a training goes on.",
        examples=[4],
    )
    bad_frames: str | None = Field(
        default=None,
        max_length=32,
        description="What becomes of frames that a training, validation or prediction cannot read: "
        "fail, skip or skip:N.",
        examples=["skip:20"],
    )
