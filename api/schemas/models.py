"""Models as JSON."""

from typing import TYPE_CHECKING, Any

from pydantic import Field

from api.schemas.base import EXAMPLE_TIME, Numbered, PageAnswer, TellPath
from api.schemas.jobs import EXAMPLE_FOLDER, JobBody

if TYPE_CHECKING:  # commands that ask a server do without the records' database
    from catalog.records.tables import Job


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
