"""The models whose next training data a dataset's page leads to: those that were trained on it."""

from api.services.jobs.improvable import improvable_model
from api.services.session import Session

_LOOKED_AT = 100
"""Newest jobs of each kind that are looked at."""


def improved_by(session: Session, title: str) -> dict[str, str]:
    """The newest validation of each model that was trained on a dataset, by the model's name.

    Args:
        session: The caller's.
        title: NAME@VERSION of the dataset.
    """
    trainings = session.jobs.list(kind="train", state="done", limit=_LOOKED_AT)
    trained = {job.name for job in trainings if job.dataset == title}
    newest: dict[str, str] = {}
    for job in session.jobs.list(kind="validate", state="done", limit=_LOOKED_AT):
        model = improvable_model(job.settings)
        if model and (model in trained or job.settings.get("trained_on") == title):
            newest.setdefault(model, job.name)
    return newest
