"""Options by which a job is begun like an earlier one."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from api.cli.commands.jobs.options import present
from api.cli.target import Record
from pipeline.jobs.train_settings import TrainSettings

_OF_ALL = ("bad_frames", "stage", "start_after")
_TRAINING = {field.name for field in fields(TrainSettings)} - {"continue_from", "backbone_weights"}
"""What a training begins with is its own: the weights of a model, and not of a file."""

_VALIDATION = {"workers", "split", "fail_below", "slices", "augment_test"}

_COMPUTED = {"ranks", "packages"}
"""Resources that follow from the settings."""


def training_again(job: Record) -> dict[str, Any]:
    """The settings, backend and resources of a training, without its name and its parent."""
    return _again(job, {*_TRAINING, *_OF_ALL})


def validation_again(job: Record) -> dict[str, Any]:
    """The settings, backend and resources of a validation, without its name and models."""
    return _again(job, {*_VALIDATION, *_OF_ALL})


def _again(job: Record, names: set[str]) -> dict[str, Any]:
    settings = {name: value for name, value in job["settings"].items() if name in names}
    # Users who see some rows only are not told it.
    recorded: Mapping[str, Any] = job["request"].get("resources", {})
    resources = {name: value for name, value in recorded.items() if value and name not in _COMPUTED}
    return present(**settings, backend=job["backend"], resources=resources or None)
