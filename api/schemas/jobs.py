"""Jobs as JSON, and the models that training jobs made."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field

from api.schemas.base import EXAMPLE_TIME, Numbered, PageAnswer, Schema, TellPath, finite, iso_time
from api.schemas.datasets import NewSplit
from api.schemas.order_bodies import body_of
from api.schemas.selections import QuestionInside
from api.schemas.timeline import TaskBody
from catalog.text.bounded import Content, Few, Name, Text
from pipeline.jobs.state import JobState
from pipeline.runs.orders import Order, Prediction, Program, Training, Validation, order_of
from query.question.question import Question

if TYPE_CHECKING:  # commands that ask a server do without the records' database
    from catalog.records.tables import Dataset, Job

Kind = Literal["train", "validate", "predict", "run", "scan", "stage", "extract", "policy"]

EXAMPLE_FOLDER = "/data/framesift/jobs/train-bikes-7"

_MOST_WORKERS = 1024
_MOST = 2**31 - 1


_NOTES = [
    "bikes is bikes@1 here, which model first was trained on; the newest is bikes@2: name that one"
]


class JobBody(Numbered):
    """A job."""

    name: str = Field(examples=["train-bikes-7"])
    kind: str = Field(
        description="train, validate, predict, run, scan, stage, extract or policy",
        examples=["train"],
    )
    backend: str = Field(examples=["local"])
    state: JobState = Field(examples=["running"])
    waits: str = Field(
        description="What it waits for before it begins; else empty.",
        examples=["for one of 1 slot; 2 came before it"],
    )
    error: str = Field(examples=[""])
    attempt: int = Field(description="How often it was started.", examples=[1])
    tasks: list[TaskBody] = Field(default=[], description="Its steps, in their order.")
    dataset: str | None = Field(description="NAME@VERSION.", examples=["bikes@1"])
    split: str | None = Field(description="Of the dataset.", examples=["train"])
    settings: dict[str, Any] = Field(
        description="What was asked for.",
        examples=[{"split": "train", "max_steps": 300, "batch_size": 4, "workers": 2, "seed": 0}],
    )
    notes: list[str] = Field(
        default=[],
        description="When a validation or prediction is submitted: which version of the dataset it "
        "takes, and whether its model was trained on frames of it; else empty.",
        examples=[_NOTES],
    )
    created: str = Field(examples=[EXAMPLE_TIME])
    started: str | None = Field(examples=[EXAMPLE_TIME])
    finished: str | None = Field(examples=[None])
    seconds: float | None = Field(description="From start to end [s].", examples=[None])
    user: str = Field(default="", description="Who began it.", examples=["anna"])
    core_seconds: float = Field(
        default=0.0,
        description="Cores times seconds, of all attempts that have ended [s].",
        examples=[240.5],
    )
    gpu_seconds: float = Field(
        default=0.0, description="GPUs times seconds, likewise [s].", examples=[0.0]
    )
    wait_seconds: float = Field(
        default=0.0, description="From submission to start, likewise [s].", examples=[1.5]
    )
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
    def of(cls, job: "Job", locate: TellPath = str) -> "JobBody":
        """A record's; paths as ``tell`` tells them.

        What runs is shown to those only who are told every path: commands are full of them.
        """
        seconds, settings = None, job.request.get("settings", {})
        if job.started is not None and job.finished is not None:
            # A clock may have been set back between them.
            seconds = max(0.0, round((job.finished - job.started).total_seconds(), 3))
        paths = {name: locate(str(path)) for name, path in job.paths.items()}
        tells_all = paths == job.paths
        folder = str(job.paths.get("folder", ""))  # of a job that never began
        visible_folder = locate(folder) if folder else ""
        body = cls(
            name=job.name,
            kind=job.kind,
            backend=job.backend,
            state=cast(JobState, job.state),
            waits=job.waits,
            error=job.error.replace(folder, visible_folder),
            attempt=job.request.get("attempt", 1),
            tasks=[TaskBody.of(task, folder, visible_folder) for task in job.tasks],
            dataset=job.dataset,
            split=settings.get("split"),
            settings=finite(settings),
            created=iso_time(job.created),
            started=None if job.started is None else iso_time(job.started),
            finished=None if job.finished is None else iso_time(job.finished),
            seconds=seconds,
            user=job.user,
            core_seconds=round(job.core_s, 3),
            gpu_seconds=round(job.gpu_s, 3),
            wait_seconds=round(job.wait_s, 3),
            metrics=finite(job.metrics),
            paths=finite(paths),
            request=finite(job.request) if tells_all else {},
        )
        body._number = job.id
        return body


class JobsAnswer(PageAnswer):
    """Jobs, newest first."""

    jobs: list[JobBody]


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


_SUBMISSION = "sbatch --parsable --job-name=framesift-train-bikes-7-1 --ntasks=2"


class DryStepBody(Schema):
    """A step of a job that was described."""

    name: str = Field(
        description="select, stage, prepare, run, collect, evict or migrate", examples=["run"]
    )
    backend: str = Field(description="Where it would run.", examples=["slurm"])
    submission: str = Field(
        description="What its backend would be handed: command lines and scripts.",
        examples=[_SUBMISSION],
    )


class DryRunBody(Schema):
    """A job that was described, and not submitted."""

    dataset: str = Field(
        description="NAME@VERSION; of a question, the one that it would be saved as now.",
        examples=["bikes@1"],
    )
    frames: int = Field(description="Of the dataset.", examples=[320])
    notes: list[str] = Field(
        default=[], description="As of a job that is submitted.", examples=[_NOTES]
    )
    submission: str = Field(
        description="What the backend of `run` would be handed: command lines and scripts.",
        examples=[_SUBMISSION],
    )
    steps: list[DryStepBody] = Field(description="All steps, in their order.")


@body_of(Order)
class _NewJob(QuestionInside):
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

    def order(self) -> Order:
        """The order that a request makes."""
        values = {name: getattr(self, name) for name in type(self).model_fields}
        for name, value in values.items():
            if isinstance(value, BaseModel):
                values[name] = value.model_dump(
                    mode="json", exclude_unset=name == "divide", exclude_none=name != "divide"
                )
        return order_of(values)


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
    classes: Literal["all", "a2d2-8"] | Content | None
    augment: list[Literal["mirror", "crop", "scale", "colour"]] | None
    horovod: HorovodOptions | None
    model: Literal["small_unet", "deeplabv3plus_resnet50"] | None
    precision: Literal["auto", "float32", "mixed_float16"] | None


@body_of(Validation)
class NewValidation(_NewJob):
    """A model to be validated on a dataset's split."""

    kind: Literal["validate"] = Field(examples=["validate"])
    model: Name
    fail_below: dict[Name, float] | None
    slices: Few[Name]
    augment_test: Literal["mirror"] | None


@body_of(Prediction)
class NewPrediction(_NewJob):
    """A model that is to say what is in frames, with or without labels."""

    kind: Literal["predict"] = Field(examples=["predict"])
    model: Name


@body_of(Program)
class NewProgram(_NewJob):
    """A user's own program to be run on a dataset, where the server allows it."""

    kind: Literal["run"] = Field(examples=["run"])
    command: Annotated[str, Field(min_length=1)]


NewJob = Annotated[
    NewTraining | NewValidation | NewPrediction | NewProgram, Field(discriminator="kind")
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


class ClassScoreAnswer(Schema):
    """A class in a validation; scores are 0 to 1, null where there is nothing to score."""

    model_config = ConfigDict(populate_by_name=True)

    class_: str = Field(alias="class", examples=["Car"])
    tag: str = Field(examples=["car"])
    truth_pixels: int = Field(examples=[1204410])
    predicted_pixels: int = Field(examples=[1187220])
    iou: float | None = Field(examples=[0.71])
    iou_interval: tuple[float, float] | None = Field(
        default=None, description="Of 95 %, over scenes.", examples=[[0.66, 0.75]]
    )
    boundary_iou: float | None = Field(
        default=None, description="IoU near the class's outline.", examples=[0.52]
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
                    "pixels": 20155,
                    "recall": 0.44,
                }
            ]
        ],
    )
    recall: float | None = Field(examples=[0.82])
    precision: float | None = Field(examples=[0.84])
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
        examples=[[{"size": "large", "from_pixels": 9216, "objects": 12, "found": 0.9}]],
    )
    calibration: dict[str, Any] = Field(
        default={},
        description="Expected calibration error, and its bins.",
        examples=[{"ece": 0.04, "bins": []}],
    )
    intervals: dict[str, Any] = Field(
        default={},
        description="Of 95 %, by drawing scenes; null where there are fewer than two.",
        examples=[
            {"scenes": 6, "draws": 1000, "miou": [0.39, 0.46], "pixel_accuracy": [0.84, 0.89]}
        ],
    )
    slices: dict[str, list[dict[str, Any]]] = Field(
        default={},
        description="Scores by camera, by scene, and by the tags that were asked for.",
        examples=[
            {
                "camera": [
                    {
                        "value": "front_center",
                        "camera": "front_center",
                        "frames": 32,
                        "miou": 0.43,
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
        examples=[[{"score": "miou", "least": 0.4, "value": 0.43, "reached": True}]],
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


class ModelBody(Numbered):
    """A trained model: a training job that is done."""

    name: str = Field(description="The job's.", examples=["train-bikes-7"])
    dataset: str | None = Field(
        description="That it was trained on: NAME@VERSION.", examples=["bikes@1"]
    )
    dataset_id: str | None = Field(
        default=None, description="Of its content.", examples=["5d41402abc4b2a76b9719d911017c592"]
    )
    question: dict[str, Any] | None = Field(
        default=None,
        description="Whose answer the dataset is.",
        examples=[{"ranges": [{"tag": "bicycle", "lowest": 5000}]}],
    )
    snapshot: int | None = Field(
        default=None, description="Of the catalog that answered it.", examples=[12]
    )
    split: str | None = Field(description="Of the dataset.", examples=["train"])
    settings: dict[str, Any] = Field(
        description="How it was trained, with what the run chose where nothing was asked for.",
        examples=[{"split": "train", "max_steps": 300, "batch_size": 4, "workers": 2, "seed": 0}],
    )
    created: str = Field(examples=[EXAMPLE_TIME])
    finished: str | None = Field(examples=[EXAMPLE_TIME])
    metrics: dict[str, Any] = Field(examples=[{"step": 300, "loss": 0.412}])
    folder: str = Field(examples=[f"{EXAMPLE_FOLDER}/model"])

    @classmethod
    def of(
        cls,
        job: "Job",
        settings: Mapping[str, Any],
        locate: TellPath = str,
        dataset: "Dataset | None" = None,
    ) -> "ModelBody":
        """A training job's, and what its dataset came of; paths as ``tell`` tells them.

        Args:
            job: The training job.
            settings: Those that the run had.
            tell: Tells paths.
            dataset: What it was trained on.
        """
        trained = JobBody.of(job, locate)
        body = cls(
            name=trained.name,
            dataset=trained.dataset,
            dataset_id=None if dataset is None else dataset.content_id,
            question=None if dataset is None else finite(dataset.question),
            snapshot=None if dataset is None else dataset.snapshot,
            split=trained.split,
            settings=finite(dict(settings)),
            created=trained.created,
            finished=trained.finished,
            metrics=trained.metrics,
            folder=locate(str(job.paths["model_dir"])),
        )
        body._number = job.id
        return body


class ModelsAnswer(PageAnswer):
    """Models, newest first."""

    models: list[ModelBody]
