"""A scaling study as a job: a process of the home that submits trainings, one after another."""

from typing import TYPE_CHECKING, Any

from pipeline.jobs.request import PYTHON, JobPaths, Stage
from pipeline.jobs.work import JobHome, Work
from pipeline.runs.orders import TrainingSettings
from pipeline.runs.scaling_order import Scaling
from pipeline.runs.setting import rows

if TYPE_CHECKING:
    from collections.abc import Mapping

DRIVE = "scaling"
"""The step of api.cli.job_step that drives a study."""


def scaling_work(home: JobHome, order: Scaling, paths: JobPaths) -> Work:
    """The work of a study's own process; its trainings are planned when it submits them."""
    command = (PYTHON, "-P", "-m", "api.cli.job_step", str(paths.folder), DRIVE)
    return Work(
        (Stage("study", (command,), uses_gpus=False),),
        environment=home.queue.environment,
        needs=("catalog", "sources"),
        settings=_settings(order),
    )


def _settings(order: Scaling) -> "Mapping[str, Any]":
    """What was asked for: what differs from a training's defaults, and the study's own."""
    asked: dict[str, Any] = {
        "ranks": ",".join(map(str, order.ranks)),
        "repeats": order.repeats,
        "backend": order.backend,
    }
    for row in rows(TrainingSettings):
        value = getattr(order, row.name)
        if value is not None and (row.name == "batch_size" or value != row.default):
            asked[row.name] = value
    return asked
