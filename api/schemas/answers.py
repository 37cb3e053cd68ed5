"""What /v1 answers of records, as the OpenAPI document shows it."""

from typing import Any

from pydantic import BaseModel, Field

from api.schemas import bodies
from api.schemas.base import EXAMPLE_TIME, PageAnswer, TellPath, finite
from catalog.records.tables import Job, Scan, Source, Staging

_FOLDER = "/data/framesift/jobs/train-bikes-7"


class SourceBody(BaseModel):
    """A source."""

    name: str = Field(examples=["a2d2"])
    uri: str = Field(examples=["s3://a2d2/camera_lidar_semantic"])
    platform: str = Field(examples=["IBM COS"])
    cluster: str = Field(examples=["s3.eu-de.example"])
    datasource: str = Field(examples=["a2d2"])
    site: str = Field(examples=["Munich"])
    part_of: str = Field(
        description="Data set that it is a part of; its own name unless another was given.",
        examples=["a2d2"],
    )
    options: dict[str, Any] = Field(
        description="How it is reached; never a secret.",
        examples=[{"endpoint_url": "https://s3.eu-de.example", "profile": "a2d2"}],
    )

    @classmethod
    def of(cls, source: Source) -> "SourceBody":
        """A record's."""
        return cls(**bodies.of_source(source))


class SourceContents(BaseModel):
    """What hangs on a source."""

    name: str = Field(examples=["a2d2"])
    files: int = Field(description="Files that the catalog has of it.", examples=[96])
    frames: int = Field(description="Labelled frames.", examples=[24])
    tags: dict[str, int] = Field(
        description="Files with tags that people gave, by tag family: those that no scan and no "
        "extractor gives again.",
        examples=[{"weather": 24}],
    )
    datasets: list[str] = Field(
        description="Datasets with frames of it.", examples=[["val-bikes@1"]]
    )


class SourcesAnswer(PageAnswer):
    """Sources by name."""

    sources: list[SourceBody]


class ScanBody(BaseModel):
    """A scan."""

    scan: int = Field(description="Its number.", examples=[3])
    source: str = Field(examples=["a2d2"])
    kind: str = Field(description="scan or watch", examples=["scan"])
    state: str = Field(description="running, done or failed", examples=["done"])
    error: str = Field(examples=[""])
    started: str = Field(examples=[EXAMPLE_TIME])
    finished: str | None = Field(examples=[EXAMPLE_TIME])
    seconds: float = Field(description="How long it took, or has taken [s].", examples=[12.5])
    counts: dict[str, Any] = Field(
        description="Files, frames, rates, and while it runs eta_s.",
        examples=[{"files": 48, "frames": 24, "bad_files": 0}],
    )

    @classmethod
    def of(cls, scan: Scan, source: str) -> "ScanBody":
        """A record's."""
        return cls(**finite(bodies.of_scan(scan, source)))


class ScansAnswer(PageAnswer):
    """Scans, newest first."""

    scans: list[ScanBody]


class ProblemBody(BaseModel):
    """What is wrong with a file."""

    kind: str = Field(examples=["bad_file"])
    key: str = Field(examples=["camera_lidar_semantic/20180807_145028/label/x.png"])
    reason: str = Field(examples=["is cut short"])


class ProblemsAnswer(PageAnswer):
    """Problems in the order they were met."""

    problems: list[ProblemBody]


class StagingBody(BaseModel):
    """A dataset's files brought into a cache."""

    staging: int = Field(description="Its number.", examples=[2])
    dataset: str = Field(examples=["bikes@1"])
    state: str = Field(examples=["done"])
    created: str = Field(examples=[EXAMPLE_TIME])
    cache: str = Field(examples=["/fast/cache"])
    manifest: str = Field(examples=["/fast/cache/.manifests/bikes-v1-5d41402abc4b"])
    files: int = Field(examples=[320])
    files_copied: int = Field(examples=[320])
    bytes: int = Field(examples=[912345678])
    bytes_copied: int = Field(examples=[912345678])

    @classmethod
    def of(cls, staging: Staging, dataset: str, place: TellPath = str) -> "StagingBody":
        """A record's; paths as ``place`` tells them."""
        places = {"cache": place(staging.cache), "manifest": place(staging.manifest)}
        return cls(**bodies.of_staging(staging, dataset) | places)


class StagingsAnswer(PageAnswer):
    """Stagings, newest first."""

    stagings: list[StagingBody]


class JobBody(BaseModel):
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
    paths: dict[str, Any] = Field(examples=[{"folder": _FOLDER, "logs": f"{_FOLDER}/logs"}])
    request: dict[str, Any] = Field(
        description="What runs: stages of commands; empty for users who see some rows only.",
        examples=[{"stages": []}],
    )

    @classmethod
    def of(cls, job: Job, place: TellPath = str) -> "JobBody":
        """A record's; paths as ``place`` tells them.

        What runs is shown to those only who are told every path: commands are full of them.
        """
        body = finite(bodies.of_job(job))
        body["paths"] = {name: place(str(path)) for name, path in job.paths.items()}
        if body["paths"] != job.paths:
            body["request"] = {}
            folder = str(job.paths["folder"])
            body["error"] = job.error.replace(folder, place(folder))
        return cls(**body)


class JobsAnswer(PageAnswer):
    """Jobs, newest first."""

    jobs: list[JobBody]


class ModelBody(BaseModel):
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
    folder: str = Field(examples=[f"{_FOLDER}/model"])

    @classmethod
    def of(cls, job: Job, place: TellPath = str) -> "ModelBody":
        """A training job's; paths as ``place`` tells them."""
        body = JobBody.of(job, place)
        return cls(
            name=body.name,
            dataset=body.dataset,
            split=body.split,
            settings=body.settings,
            created=body.created,
            finished=body.finished,
            metrics=body.metrics,
            folder=place(str(job.paths["model_dir"])),
        )


class ModelsAnswer(PageAnswer):
    """Models, newest first."""

    models: list[ModelBody]
