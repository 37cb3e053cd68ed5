"""The time that a job of a form will take, by the newest jobs of its kind here that measured it."""

from collections.abc import Mapping
from dataclasses import dataclass

from api.schemas.datasets import DatasetBody
from api.schemas.jobs import JobBody
from api.services.session import Session
from framesift.progress import count_of, number_of

_LOOKED_AT = 20
_SPLIT = {"train": "train", "scaling": "train", "validate": "validation"}
"""The split that a job of a kind reads where its form names none."""


@dataclass(frozen=True)
class Estimate:
    """The time of one pass over a split, at an earlier job's rate."""

    job: str
    """The earlier job."""
    frames_per_s: float
    """Its rate, of all its workers."""
    workers: int | None
    """Its workers; None where its settings say none."""
    split: str
    """The split; empty for all of the dataset."""
    frames: int
    """Frames of the split."""

    @property
    def seconds(self) -> float:
        """Time of a pass at that rate [s]."""
        return self.frames / self.frames_per_s


def frames_of_splits(dataset: DatasetBody) -> dict[str, int]:
    """Frames of each split of a dataset by its name; "" is the one of a dataset not divided."""
    return dict(dataset.splits) or {"": dataset.frames}


def estimated(session: Session, kind: str, splits: Mapping[str, int]) -> Estimate | None:
    """The time of a pass over the usual split; None where no job of the kind measured its rate."""
    usual = _SPLIT.get(kind, "")
    frames = splits.get(usual, splits.get(""))
    if not usual or frames is None:
        return None
    earlier = "validate" if kind == "validate" else "train"
    for job in session.jobs.list(kind=earlier, state="done", limit=_LOOKED_AT):
        if rate := _frames_per_s(job):
            workers = count_of(job.settings, "workers")
            split = usual if usual in splits else ""
            return Estimate(job.name, rate, workers, split, frames)
    return None


def _frames_per_s(job: JobBody) -> float | None:
    rate = number_of(job.metrics, "images_per_s")
    if rate is None and job.kind == "validate" and job.seconds:
        frames = number_of(job.metrics, "frames")
        rate = None if frames is None else frames / job.seconds
    return float(rate) if rate is not None and rate > 0 else None
