"""The one question worth asking after a validation, as a command that runs."""

import shlex
from collections.abc import Mapping

from api.cli.target import Record
from framesift.progress import list_of, number_of


def next_question(job: Record) -> str:
    """What the model of a validation is weakest in and the command that brings it; else empty."""
    weakest = [
        row
        for row in list_of(job["metrics"], "weakest")
        if isinstance(row, Mapping) and isinstance(row.get("class"), str)
    ]
    if job["kind"] != "validate" or job["state"] != "done" or not weakest:
        return ""
    worst = weakest[0]
    value, share = number_of(worst, "iou"), number_of(worst, "share")
    scores = [] if value is None else [f"IoU {value:.2f}"]
    if share:
        scores.append(f"{100 * share:.0f} % of its pixels are taken for {worst.get('taken_for')}")
    found = f"{worst.get('class')} is found worst ({'; '.join(scores)})"
    return f"next: {found}: {_command(job, weakest)}"


def _command(job: Record, weakest: list[Mapping[str, object]]) -> str:
    settings = job.get("settings") or {}
    model = settings.get("model")
    if settings.get("model_name"):  # another program's: an improvement adds to what it trained on
        model = settings["model_name"] if settings.get("trained_on") else None
    elif model is not None and "/" in model:  # a folder, which has no training data
        model = None
    if model is None:
        return shlex.join(["framesift", "tags", "import-scores", job["name"]])
    classes = ",".join(str(row.get("class")) for row in weakest)
    return shlex.join(["framesift", "improve", model.partition("@")[0], "--for", classes])
