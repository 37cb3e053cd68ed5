"""Orders that are like an earlier job's."""

from collections.abc import Mapping
from typing import Any

from api.cli.target import Record
from pipeline.runs.orders import TrainingSettings
from pipeline.runs.setting import rows

_OF_ALL = ("bad_frames", "stage", "start_after")
_TRAINING = ("workers", "prepare", *(row.name for row in rows(TrainingSettings)))
_NOT_AGAIN = ("continue_from", "backbone_weights")
"""What a training begins with is its own: the weights of a model, and not of a file."""

_VALIDATION = ("workers", "split", "fail_below", "slices", "augment_test")

_COMPUTED = ("ranks", "packages")
"""Resources that follow from the settings."""


def training_again(job: Record, dataset: str, model: str) -> dict[str, Any]:
    """The order of a training like another, on a dataset and beginning with a model, as JSON."""
    names = {*_TRAINING, *_OF_ALL} - {*_NOT_AGAIN}
    return _again(job, names) | {"kind": "train", "dataset": dataset, "continue_from": model}


def validation_again(job: Record, model: str) -> dict[str, Any]:
    """The order of a validation like another, of another model, as JSON."""
    return _again(job, {*_VALIDATION, *_OF_ALL}) | {
        "kind": "validate", "dataset": job["dataset"], "model": model,
    }  # fmt: skip


def _again(job: Record, names: set[str]) -> dict[str, Any]:
    settings = {
        name: value
        for name, value in job["settings"].items()
        if name in names and value is not None
    }
    # Users who see some rows only are not told it.
    recorded: Mapping[str, Any] = job["request"].get("resources", {})
    resources = {name: value for name, value in recorded.items() if value and name not in _COMPUTED}
    return {
        **settings, "backend": job["backend"], **({"resources": resources} if resources else {}),
    }  # fmt: skip
