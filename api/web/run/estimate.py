"""The time that a job of a form will take, by the rates of earlier jobs that are like it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from api.schemas.datasets import DatasetBody
from api.schemas.jobs import JobBody
from api.services.session import Session
from api.web.run.job_form import usual_values
from framesift.progress import number_of
from pipeline.runs.run_length import RunLength, run_length

MOST = 10
"""Earlier jobs, the newest that are like the form's, that an estimate rests on."""

_LOOKED_AT = 200
SPLIT = {"train": "train", "scaling": "train", "validate": "validation"}
"""The split that a job of a kind reads where its form names none."""

_OF_NETWORK = ("model", "height", "width")


@dataclass(frozen=True)
class Likeness:
    """What jobs have in common whose rates say something of each other."""

    network: str
    height: str
    width: str
    """Of the network's input [pixels]."""
    backend: str
    workers: str

    def __str__(self) -> str:
        """In words."""
        size = f" at {self.width}x{self.height}" if self.height and self.width else ""
        processes = f"{self.workers or 'any'} {'process' if self.workers == '1' else 'processes'}"
        return f"{self.network}{size}, {processes}, backend {self.backend}"


@dataclass(frozen=True)
class Estimate:
    """The time of one pass over a split, at the rates of earlier jobs."""

    likeness: Likeness
    """What they have in common with the form's job."""
    rates: Sequence[float]
    """Frames a second of each, of all its processes, the newest first; none where none is alike."""
    newest: str
    """The newest of them; empty where there is none."""
    split: str
    """The split; empty for all of the dataset."""
    frames: int
    """Frames of the split."""
    length: RunLength | None = None
    """The form's training; None of other jobs, and of a study's several trainings."""

    @property
    def rate(self) -> float:
        """The median of the rates [1/s]."""
        return median(self.rates)

    @property
    def seconds(self) -> tuple[float, float, float]:
        """Time of a pass at the median rate, at the highest and at the lowest [s]."""
        return self._seconds(self.frames)

    @property
    def training_seconds(self) -> tuple[float, float, float] | None:
        """Time of all steps of the training, likewise; None where it is no training."""
        return None if self.length is None else self._seconds(self.length.examples)

    def _seconds(self, frames: int) -> tuple[float, float, float]:
        high, low = max(self.rates), min(self.rates)
        return frames / self.rate, frames / high, frames / low


def frames_of_splits(dataset: DatasetBody) -> dict[str, int]:
    """Frames of each split of a dataset by its name; "" is the one of a dataset not divided."""
    return dict(dataset.splits) or {"": dataset.frames}


def estimated(
    session: Session, kind: str, fields: Mapping[str, str], splits: Mapping[str, int]
) -> Estimate | None:
    """The time of a pass over the form's split, and of a training; None of a kind that reads none.

    Args:
        kind: Of the form's job.
        fields: The form's fields that are filled in, by name.
        splits: Frames of the dataset's splits, as `frames_of_splits` gives them.
    """
    split = split_read(kind, fields, splits)
    if kind not in SPLIT or split not in splits:
        return None
    trainings = {job.name: job for job in _done(session, "train")}
    wanted = _likeness_of_form(kind, fields, trainings)
    earlier = _done(session, "validate") if kind == "validate" else [*trainings.values()]
    alike = [
        (job.name, rate)
        for job in earlier
        if (rate := _frames_per_s(job)) and _likeness(job, trainings) == wanted
    ][:MOST]
    newest = alike[0][0] if alike else ""
    rates, frames = [rate for _, rate in alike], splits[split]
    length = length_of(fields, frames) if kind == "train" else None
    return Estimate(wanted, rates, newest, split, frames, length)


def split_read(kind: str, fields: Mapping[str, str], splits: Mapping[str, int]) -> str:
    """The split that a form's job reads; "" is a dataset that is not divided.

    Args:
        kind: Of the job.
        fields: The form's fields that are filled in, by name.
        splits: Frames of the dataset's splits, as `frames_of_splits` gives them.
    """
    split = fields.get("split") or SPLIT.get(kind, "")
    if split not in splits and len(splits) == 1:
        (split,) = splits  # of a dataset that is not divided
    return split


def length_of(fields: Mapping[str, str], frames: int) -> RunLength | None:
    """The length of the form's training; None where a field is no number that it may have."""
    names = ("workers", "batch_size", "max_steps", "epochs")
    filled = {name: fields.get(name) or usual_values("train")[name] for name in names}
    if not frames or not all(text.isdecimal() and int(text) for text in filled.values() if text):
        return None
    numbers = {name: int(text) if text else None for name, text in filled.items()}
    if numbers["max_steps"] and numbers["epochs"]:  # the order refuses both
        return None
    return run_length(
        frames, numbers["workers"] or 1, numbers["batch_size"] or 1,
        numbers["max_steps"], numbers["epochs"],
    )  # fmt: skip


def _done(session: Session, kind: str) -> list[JobBody]:
    """The newest finished jobs of a kind, the newest first."""
    return session.jobs.list(kind=kind, state="done", limit=_LOOKED_AT)


def _likeness_of_form(
    kind: str, fields: Mapping[str, str], trainings: Mapping[str, JobBody]
) -> Likeness:
    usual = usual_values(kind)
    backend = fields.get("backend") or usual["backend"]
    # A study's trainings are of several numbers of processes: the first stands for them.
    ranks = fields.get("ranks") or usual.get("ranks", "")
    workers = fields.get("workers") or usual.get("workers") or ranks.partition(",")[0].strip()
    if kind == "validate":
        return Likeness(*_of_model(fields.get("model", ""), trainings), backend, workers)
    network, height, width = (fields.get(name) or usual.get(name, "") for name in _OF_NETWORK)
    return Likeness(network, height, width, backend, workers)


def _likeness(job: JobBody, trainings: Mapping[str, JobBody]) -> Likeness:
    workers = str(job.settings.get("workers") or usual_values("train")["workers"])
    if job.kind == "validate":
        model = str(job.settings.get("model") or "")
        return Likeness(*_of_model(model, trainings), job.backend, workers)
    return Likeness(*_network_of(job), job.backend, workers)


def _of_model(model: str, trainings: Mapping[str, JobBody]) -> tuple[str, str, str]:
    """Network, height and width of a model; of one that no training made its name alone."""
    if not model:
        return "scored predictions", "", ""
    training = trainings.get(model.partition("@")[0])
    return _network_of(training) if training is not None else (model, "", "")


def _network_of(training: JobBody) -> tuple[str, str, str]:
    usual, settings = usual_values("train"), training.settings
    network, height, width = (_text(settings, name) or usual[name] for name in _OF_NETWORK)
    return network, height, width


def _text(settings: Mapping[str, Any], name: str) -> str:
    value = settings.get(name)
    return "" if value is None else str(value)


def _frames_per_s(job: JobBody) -> float | None:
    rate = number_of(job.metrics, "images_per_s")
    if rate is None and job.kind == "validate" and job.seconds:
        frames = number_of(job.metrics, "frames")
        rate = None if frames is None else frames / job.seconds
    return float(rate) if rate is not None and rate > 0 and math.isfinite(rate) else None
