"""What the settings of a validation say of its model: whether it can be improved, and predict."""

from collections.abc import Mapping, Sequence
from typing import Any

from framesift.progress import list_of


def improvable_model(settings: Mapping[str, Any]) -> str | None:
    """The name by which `improve` knows the model of a validation with these settings.

    None where its training data are unknown.
    """
    model = settings.get("model")
    if settings.get("model_name"):  # another program's: an improvement adds to what it trained on
        model = settings["model_name"] if settings.get("trained_on") else None
    elif model is not None and "/" in model:  # a folder, which has no training data
        model = None
    return None if model is None else str(model).partition("@")[0]


def can_predict(settings: Mapping[str, Any]) -> bool:
    """Return whether the model of a validation with these settings is here, to predict frames.

    Of predictions or scores that another program made, only these are.
    """
    return settings.get("predictions") is None and settings.get("scores") is None


def needs_command(settings: Mapping[str, Any]) -> bool:
    """Return whether only a command on the server's machine may load the model of a validation.

    Its folder or file was named, or code of its author's was trusted: a server does neither.
    """
    return bool(settings.get("trust_model")) or str(settings.get("model") or "").startswith("/")


def weakest_classes(metrics: Mapping[str, Any]) -> Sequence[str]:
    """Names of the classes that a validation finds worst, the worst first."""
    return [
        row["class"]
        for row in list_of(metrics, "weakest")
        if isinstance(row, Mapping) and isinstance(row.get("class"), str)
    ]
