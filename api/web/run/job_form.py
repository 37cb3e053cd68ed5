"""The form of a job as the body that REST takes, with the same words for what is wrong."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from api.schemas.jobs import JobBody
from api.schemas.new_jobs import (
    NewPreflight,
    NewScaling,
    NewTraining,
    NewValidation,
)
from api.schemas.order_bodies import SimpleField, simple_fields
from api.web.forms import Form, names
from api.web.labels import OF_JOBS
from catalog.errors import InvalidInput
from query.question.question import Question
from query.question.wrong_value import checked

AnyBody = NewTraining | NewValidation | NewPreflight | NewScaling

_BODIES: Mapping[str, type[AnyBody]] = {
    "train": NewTraining, "validate": NewValidation, "preflight": NewPreflight,
    "scaling": NewScaling,
}  # fmt: skip

KINDS = (*_BODIES,)
"""The kinds of jobs that have a form."""

_ALL = {
    "dataset", "name", "split", "workers", "backend", "start_after", "attempts", "stage", "save_as",
    "model",
}  # fmt: skip
_LENGTH = {"batch_size", "max_steps", "epochs", "height", "width", "seed", "evaluate_every"}
_LAID_OUT = {
    "train": _ALL | _LENGTH | {
        "learning_rate", "augment", "continue_from", "classes", "evaluate_split",
        "checkpoint_every", "precision",
    },
    "validate": _ALL | {"compare"},
    "preflight": _ALL | {
        "ranks", "path", "through", "largest_mib", "synthetic", "batch_size", "steps",
    },
    "scaling": _ALL | _LENGTH | {"ranks", "repeats", "target_miou"},
}  # fmt: skip
"""Settings whose fields the template places and labels itself."""

_OWN = {"name", "dataset", "save_as", "continue_from", "backbone_weights"}
"""Settings that a training has of its own."""

_RESOURCES = (
    "ranks_per_node", "gpus", "cores", "memory_mb", "wall_minutes", "nodes", "constraint", "image",
)  # fmt: skip


def further_fields(kind: str) -> list[SimpleField]:
    """The fields of further settings of a kind of job, which the template does not place itself."""
    labels = OF_JOBS[kind]
    return [
        replace(field, label=labels.get(field.name, field.label))
        for field in simple_fields(_BODIES[kind])
        if field.name not in _LAID_OUT[kind]
    ]


def usual_values(kind: str) -> dict[str, str]:
    """The value that each setting of a kind of job has where a form says none, by its name.

    Empty where that depends on other settings.
    """
    return {field.name: field.usual for field in simple_fields(_BODIES[kind])}


def settings_again(job: JobBody) -> dict[str, str]:
    """The settings of a training, which is gone on from, by the fields of the form."""
    fields = {field.name for field in simple_fields(_BODIES["train"])} - _OWN
    recorded = job.request.get("resources") or {}
    values = {
        **{name: recorded.get(name) for name in _RESOURCES},
        **{name: value for name, value in job.settings.items() if name in fields},
        "backend": job.backend,
    }
    told = {name: _told(value) for name, value in values.items() if value not in (None, [], "")}
    return told | {"continue_from": job.name}


def _told(value: object) -> str:
    """A setting as its field has it."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def new_job(form: Form, question: Question | None = None) -> AnyBody:
    """The job that a form asks for; what is left empty is left to its default.

    Args:
        form: What was sent.
        question: Its frames, in the place of a dataset's; they are saved under the form's name.

    Raises:
        InvalidInput: The form begins no job of that kind, or a value cannot be used.
    """
    kind = form.get("kind")
    if kind not in _BODIES:
        raise InvalidInput(f"kind '{kind[:80]}': expected {', '.join(_BODIES)}")
    body: dict[str, Any] = {"kind": kind}
    if "stage" in _BODIES[kind].model_fields:
        body["stage"] = not form.get("unstaged")
    if dataset := form.chosen("dataset"):
        body["dataset"] = dataset
    for field in simple_fields(_BODIES[kind]):
        if field.name not in ("stage", "save_as") and (value := form.chosen(field.name)):
            body[field.name] = list(names(value)) if field.is_list else value
    if kind == "validate" and (onnx := _pairs(form, "onnx", "scale=1/255")):
        body["onnx"] = onnx
    if question is not None:
        body["question"] = question
        if name := body.pop("dataset", None):
            body["save_as"] = name
    if resources := _resources(form):
        body["resources"] = resources
    return checked(_BODIES[kind], **body)


def _resources(form: Form) -> dict[str, Any]:
    fields: dict[str, Any] = {name: value for name in _RESOURCES if (value := form.get(name))}
    if options := _pairs(form, "options", "partition=gpu"):
        fields["options"] = options
    return fields


def _pairs(form: Form, name: str, example: str) -> dict[str, str]:
    """A field's NAME=VALUE,... as a dictionary.

    Raises:
        InvalidInput: It is none.
    """
    split = [pair.partition("=") for pair in names(form.get(name))]
    if not all(sign for _, sign, _ in split):
        raise InvalidInput(
            f"{name} '{form.get(name)[:80]}': expected NAME=VALUE, such as {example}"
        )
    return {key.strip(): value.strip() for key, _, value in split}
