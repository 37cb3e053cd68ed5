"""The one question worth asking after a validation, as a command that runs."""

import shlex
from collections.abc import Mapping

from api.cli.target import Record
from api.services.jobs.improvable import improvable_model
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
    model = improvable_model(job.get("settings") or {})
    if model is None:
        return shlex.join(["framesift", "tags", "import-scores", job["name"]])
    classes = ",".join(str(row.get("class")) for row in weakest)
    return shlex.join(["framesift", "improve", model, "--for", classes])
