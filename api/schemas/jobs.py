"""Jobs as JSON, and the models that training jobs made."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, cast

from pydantic import Field

from api.schemas.base import EXAMPLE_TIME, Numbered, PageAnswer, Schema, TellPath, finite, iso_time
from api.schemas.timeline import TaskBody
from pipeline.job_state import JobState

if TYPE_CHECKING:  # commands that ask a server do without the records' database
    from catalog.records.tables import Dataset, Job

Kind = Literal[
    "preflight", "scaling", "train", "validate", "predict", "run", "scan", "stage", "extract",
    "labels", "policy",
]  # fmt: skip

EXAMPLE_FOLDER = "/data/framesift/jobs/train-bikes-7"

_NOTES = [
    "bikes is bikes@1 here, which model first was trained on; the newest is bikes@2: name that one"
]


class JobBody(Numbered):
    """A job."""

    name: str = Field(examples=["train-bikes-7"])
    kind: str = Field(
        description="train, validate, predict, run, preflight, scaling, scan, stage, extract, "
        "labels or policy",
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
        "lists left out, and until then how far it is. Of a user's program the last values that "
        "it logged, too, and `checkpoints`, those that it names. Of a preflight or scaling study "
        "also `warnings`, and `tables`, each with title, columns and rows.",
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


_SUBMISSION = "sbatch --parsable --job-name=framesift-train-bikes-7-1 --ntasks=2"


class DryStepBody(Schema):
    """A step of a job that was described."""

    name: str = Field(
        description="select, stage, fetch, prepare, run, collect, evict or migrate; of a scaling "
        "study each of its trainings",
        examples=["run"],
    )
    backend: str = Field(description="Where it would run.", examples=["slurm"])
    submission: str = Field(
        description="What its backend would be handed: command lines and scripts.",
        examples=[_SUBMISSION],
    )


class DryRunBody(Schema):
    """A job that was described, and not submitted."""

    dataset: str | None = Field(
        description="NAME@VERSION; of a question, the one that it would be saved as now; null of a "
        "preflight without one.",
        examples=["bikes@1"],
    )
    frames: int = Field(description="Of the dataset; 0 without one.", examples=[320])
    notes: list[str] = Field(
        default=[], description="As of a job that is submitted.", examples=[_NOTES]
    )
    submission: str = Field(
        description="What the backend of `run` would be handed: command lines and scripts.",
        examples=[_SUBMISSION],
    )
    steps: list[DryStepBody] = Field(description="All steps, in their order.")


class ModelBody(Numbered):
    """A trained model: a training job that is done, or a program's that wrote ONNX files."""

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
        description="How it was trained, with what the run chose where nothing was asked for; of "
        "a program nothing.",
        examples=[{"split": "train", "max_steps": 300, "batch_size": 4, "workers": 2, "seed": 0}],
    )
    created: str = Field(examples=[EXAMPLE_TIME])
    finished: str | None = Field(examples=[EXAMPLE_TIME])
    metrics: dict[str, Any] = Field(examples=[{"step": 300, "loss": 0.412}])
    folder: str = Field(examples=[f"{EXAMPLE_FOLDER}/model"])
    onnx: list[str] = Field(
        description="ONNX files that a program wrote; of several without a model.onnx, validations "
        "name one: JOB/FILE.",
        examples=[["model.onnx"]],
    )

    @classmethod
    def of(
        cls,
        job: "Job",
        folder: str,
        settings: Mapping[str, Any],
        onnx: list[str],
        locate: TellPath = str,
        dataset: "Dataset | None" = None,
    ) -> "ModelBody":
        """A job's, and what its dataset came of; paths as ``tell`` tells them.

        Args:
            job: The training job, or the program's.
            folder: Of its files.
            settings: Those that a training had.
            onnx: Names of the ONNX files that a program wrote.
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
            folder=locate(folder),
            onnx=onnx,
        )
        body._number = job.id
        return body


class ModelsAnswer(PageAnswer):
    """Models, newest first."""

    models: list[ModelBody]
