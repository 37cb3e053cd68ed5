"""Jobs as JSON, and the models that training jobs made."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import ConfigDict, Field

from api.schemas.base import EXAMPLE_TIME, Numbered, PageAnswer, Schema, TellPath, finite, iso_time
from catalog.text.bounded import Name

if TYPE_CHECKING:  # commands that ask a server do without the records' database
    from catalog.records.tables import Job

Kind = Literal["train", "validate", "scan", "stage", "extract", "policy"]

EXAMPLE_FOLDER = "/data/framesift/jobs/train-bikes-7"

_MOST_WORKERS = 1024
_MOST = 2**31 - 1


class JobBody(Numbered):
    """A job."""

    name: str = Field(examples=["train-bikes-7"])
    kind: str = Field(
        description="train, validate, scan, stage, extract or policy", examples=["train"]
    )
    backend: str = Field(examples=["local"])
    state: str = Field(
        description="pending, running, done, failed, cancelled or unknown", examples=["running"]
    )
    waits: str = Field(
        description="What it waits for before it begins; else empty.",
        examples=["for one of 1 slot; 2 came before it"],
    )
    error: str = Field(examples=[""])
    attempt: int = Field(description="How often it was started.", examples=[1])
    dataset: str | None = Field(description="NAME@VERSION.", examples=["bikes@1"])
    split: str | None = Field(description="Of the dataset.", examples=["train"])
    settings: dict[str, Any] = Field(
        description="What was asked for; empty for jobs of the first releases.",
        examples=[{"split": "train", "max_steps": 300, "batch_size": 4, "workers": 2, "seed": 0}],
    )
    created: str = Field(examples=[EXAMPLE_TIME])
    started: str | None = Field(examples=[EXAMPLE_TIME])
    finished: str | None = Field(examples=[None])
    seconds: float | None = Field(description="From start to end [s].", examples=[None])
    metrics: dict[str, Any] = Field(
        description="Of a training or validation its metrics; else what the command ended with, "
        "lists left out, and until then how far it is.",
        examples=[
            {
                "step": 120,
                "max_steps": 300,
                "epochs": 26.7,
                "frames": 90,
                "frames_seen": 90,
                "loss": 1.2,
            }
        ],
    )
    paths: dict[str, Any] = Field(
        examples=[{"folder": EXAMPLE_FOLDER, "logs": f"{EXAMPLE_FOLDER}/logs"}]
    )
    request: dict[str, Any] = Field(
        description="What runs: stages of commands; empty for users who see some rows only.",
        examples=[{"stages": []}],
    )

    @classmethod
    def of(cls, job: "Job", tell: TellPath = str) -> "JobBody":
        """A record's; paths as ``tell`` tells them.

        What runs is shown to those only who are told every path: commands are full of them.
        """
        seconds, settings = None, job.request.get("settings", {})
        if job.started is not None and job.finished is not None:
            seconds = round((job.finished - job.started).total_seconds(), 3)
        paths = {name: tell(str(path)) for name, path in job.paths.items()}
        tells_all, error = paths == job.paths, job.error
        if not tells_all:
            folder = str(job.paths["folder"])
            error = error.replace(folder, tell(folder))
        body = cls(
            name=job.name,
            kind=job.kind,
            backend=job.backend,
            state=job.state,
            waits=job.waits,
            error=error,
            attempt=job.request.get("attempt", 1),
            dataset=job.dataset,
            split=settings.get("split"),
            settings=finite(settings),
            created=iso_time(job.created),
            started=None if job.started is None else iso_time(job.started),
            finished=None if job.finished is None else iso_time(job.finished),
            seconds=seconds,
            metrics=finite(job.metrics),
            paths=finite(paths),
            request=finite(job.request) if tells_all else {},
        )
        body._number = job.id
        return body


class JobsAnswer(PageAnswer):
    """Jobs, newest first."""

    jobs: list[JobBody]


class _NewJob(Schema):
    model_config = ConfigDict(extra="forbid")

    dataset: Name = Field(description="NAME, or NAME@VERSION.", examples=["bikes@1"])
    workers: int = Field(default=2, ge=1, le=_MOST_WORKERS, description="Processes.")
    name: Name | None = Field(default=None, description="The job's; made up by default.")
    backend: Name = Field(default="local", description="Where it runs.")


class NewTraining(_NewJob):
    """A network to be trained on a dataset's split."""

    kind: Literal["train"] = Field(examples=["train"])
    batch_size: int = Field(default=4, ge=1, le=_MOST, description="Frames per worker and step.")
    max_steps: int | None = Field(
        default=None,
        ge=1,
        le=_MOST,
        description="Steps; 300 by default, or one epoch where that is more.",
    )
    epochs: int | None = Field(
        default=None, ge=1, le=_MOST, description="The length in epochs, instead of max_steps."
    )
    learning_rate: float | None = Field(
        default=None, gt=0, allow_inf_nan=False, description="Of one worker."
    )
    height: int | None = Field(default=None, ge=1, le=65_535, description="Network input [pixels].")
    width: int | None = Field(default=None, ge=1, le=65_535, description="Network input [pixels].")
    seed: int = Field(default=0, ge=0, le=_MOST, description="Seed of weights and order.")
    split: Name | None = Field(
        default=None,
        description="Split to train on; train, or all frames of a dataset that is not divided.",
    )
    continue_from: Name | None = Field(
        default=None,
        description="Name of a training job: begin a new run with the weights of its model.",
    )


class NewValidation(_NewJob):
    """A model to be validated on a dataset's split."""

    kind: Literal["validate"] = Field(examples=["validate"])
    model: Name = Field(description="Name of a training job.", examples=["train-bikes-7"])
    split: Name | None = Field(
        default=None,
        description="Split to validate on; validation, or all frames of a dataset not divided.",
    )


NewJob = Annotated[NewTraining | NewValidation, Field(discriminator="kind")]


class ClassScoreAnswer(Schema):
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


class ReportAnswer(Schema):
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


class ModelBody(Numbered):
    """A trained model: a training job that is done."""

    name: str = Field(description="The job's.", examples=["train-bikes-7"])
    dataset: str | None = Field(
        description="That it was trained on: NAME@VERSION.", examples=["bikes@1"]
    )
    split: str | None = Field(description="Of the dataset.", examples=["train"])
    settings: dict[str, Any] = Field(
        description="How it was trained; empty for models of the first releases.",
        examples=[{"split": "train", "max_steps": 300, "batch_size": 4, "workers": 2, "seed": 0}],
    )
    created: str = Field(examples=[EXAMPLE_TIME])
    finished: str | None = Field(examples=[EXAMPLE_TIME])
    metrics: dict[str, Any] = Field(examples=[{"step": 300, "loss": 0.412}])
    folder: str = Field(examples=[f"{EXAMPLE_FOLDER}/model"])

    @classmethod
    def of(cls, job: "Job", tell: TellPath = str) -> "ModelBody":
        """A training job's; paths as ``tell`` tells them."""
        trained = JobBody.of(job, tell)
        body = cls(
            name=trained.name,
            dataset=trained.dataset,
            split=trained.split,
            settings=trained.settings,
            created=trained.created,
            finished=trained.finished,
            metrics=trained.metrics,
            folder=tell(str(job.paths["model_dir"])),
        )
        body._number = job.id
        return body


class ModelsAnswer(PageAnswer):
    """Models, newest first."""

    models: list[ModelBody]
