"""The prediction of frames by a validation's model, which pages begin where there is none."""

from collections.abc import Iterator, Sequence

from api.schemas.improvements import ImprovementBody
from api.schemas.jobs import JobBody
from api.schemas.new_jobs import NewPrediction, ResourcesBody
from api.services.jobs.improvable import can_predict, needs_command
from api.services.session import Session
from catalog.errors import InvalidInput
from pipeline.job_state import FINISHED
from query.question.question import Question
from query.question.wrong_value import checked

_LISTED = 100
"""Of the newest predictions, those that are looked at."""

_MODEL = ("model", "model_name")
"""Settings that tell models apart: a network in an ONNX file has a name alone."""

_OF_MODEL = (*_MODEL, "onnx", "classes", "workers", "bad_frames", "stage")


def prediction_of(validation: JobBody, question: Question | None = None) -> NewPrediction:
    """A prediction by a validation's model, on machines as the validation's.

    Args:
        validation: The job.
        question: Its frames; those of the validation without one.

    Raises:
        InvalidInput: It is no validation of a model that is here, or of one that a server loads.
    """
    settings = validation.settings
    if validation.kind != "validate" or not can_predict(settings):
        raise InvalidInput(
            f"job {validation.name}: expected the validation of a model that is here; what another "
            "program predicted is no model"
        )
    if needs_command(settings):
        raise InvalidInput(
            f"model {settings['model']}: expected one that a training or program of this home made "
            "and whose code needs no trust; who works on the server's machine can have this one "
            "predict"
        )
    recorded = validation.request.get("resources") or {}
    resources = {name: recorded[name] for name in ResourcesBody.model_fields if recorded.get(name)}
    frames = (
        {"dataset": validation.dataset, "split": settings.get("split")}
        if question is None
        else {"question": question}
    )
    return checked(
        NewPrediction,
        kind="predict",
        backend=validation.backend,
        **{name: value for name, value in frames.items() if value is not None},
        **{name: settings[name] for name in _OF_MODEL if name in settings},
        **({"resources": resources} if resources else {}),
    )


def prediction_of_validated(session: Session, validation: JobBody) -> JobBody | None:
    """The newest job, done or to come, that predicts what a validation's model was validated on."""
    split = validation.settings.get("split")
    same = (
        job
        for job in _predictions(session, validation)
        if job.dataset == validation.dataset and job.settings.get("split") == split
    )
    return next(same, None)


def prediction_to_come(session: Session, validation: JobBody) -> JobBody | None:
    """The newest job that waits or runs, and predicts any frames by a validation's model."""
    to_come = (job for job in _predictions(session, validation) if job.state not in FINISHED)
    return next(to_come, None)


def _predictions(session: Session, validation: JobBody) -> Iterator[JobBody]:
    """The predictions by a validation's model that have not failed, the newest first."""
    return (
        job
        for job in session.jobs.list(kind="predict", limit=_LISTED)
        if job.state not in ("failed", "cancelled")
        and all(job.settings.get(name) == validation.settings.get(name) for name in _MODEL)
    )


def unpredicted(proposal: ImprovementBody) -> list[str]:
    """The frames to label of a proposal of which no score of the model's prediction is known."""
    scored = {one.fkey for one in proposal.reasons if one.uncertainty is not None}
    return [fkey for fkey in proposal.to_label if fkey not in scored]


def question_of(fkeys: Sequence[str], snapshot: int) -> Question:
    """The question for frames without labels by their names, as a snapshot has them."""
    named = ", ".join("'" + fkey.replace("'", "''") + "'" for fkey in fkeys)
    return Question(where=f"labelled = 0 and fkey in ({named})", snapshot=snapshot)
