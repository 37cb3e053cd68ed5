"""What the empty fields of a job's form stand for: numbers and names, of the form's choices."""

from collections.abc import Mapping

from api.services.session import Session
from api.web.run.estimate import SPLIT, length_of, split_read
from api.web.run.job_form import usual_values
from catalog.errors import UnknownName
from pipeline.runs.run_length import DEFAULT_STEPS
from pipeline.runs.size import Size
from pipeline.runs.training_input import pays

_WITHOUT = {
    "start_after": "100", "evaluate_every": "never", "target_miou": "none",
    "checkpoint_minutes": "none", "continue_from": "new weights", "compare": "no other model",
    "slices": "camera and scene", "augment_test": "none", "predictions": "none", "scores": "none",
    "trained_on": "not told", "path": "none", "onnx": "nothing",
}  # fmt: skip
"""What settings stand for that have no value where none is given."""

_RESOURCES = (
    "ranks_per_node", "gpus", "cores", "memory_mb", "wall_minutes", "nodes", "constraint", "image",
    "options",
)  # fmt: skip


def defaults_of(
    session: Session, kind: str, fields: Mapping[str, str], splits: Mapping[str, int]
) -> dict[str, str]:
    """What each field stands for that is left empty, by its name: arguments of `following`."""
    usual = {name: text for name, text in usual_values(kind).items() if text}
    return {**usual, **_WITHOUT, **following(session, kind, fields, splits)}


def following(
    session: Session, kind: str, fields: Mapping[str, str], splits: Mapping[str, int]
) -> dict[str, str]:
    """The same of those fields whose default follows from others.

    Args:
        session: The caller's.
        kind: Of the job.
        fields: The form's fields that are filled in, by name.
        splits: Frames of the dataset's splits, "" of one that is not divided; empty where no
            dataset is chosen.
    """
    usual = usual_values(kind)
    backend = fields.get("backend") or usual["backend"]
    ranks = fields.get("workers") or fields.get("ranks") or usual.get("workers") or usual["ranks"]
    first = ranks.partition(",")[0].strip()
    subject = fields.get("dataset", "").partition("@")[0] if kind != "preflight" else backend
    shown = {"name": session.jobs.free_name(kind, subject)} | _split(kind, splits)
    if kind in ("train", "scaling"):
        of_form = dict(fields) if kind == "train" else {**fields, "workers": first}
        shown |= _of_length(kind, {**usual, **of_form}, splits)
    if kind == "validate":
        shown["model_name"] = fields.get("model", "").partition("@")[0] or "none"
    try:
        of_backend = session.jobs.usual_resources(backend, int(first) if first.isdecimal() else 1)
    except UnknownName:
        of_backend = {}
    not_taken = f"none ({backend} has no such setting)"
    return shown | {name: of_backend.get(name, not_taken) for name in _RESOURCES}


def _split(kind: str, splits: Mapping[str, int]) -> dict[str, str]:
    usual = SPLIT.get(kind)
    if usual is None:
        return {}
    if [*splits] in ([""], ["all"]):
        return {"split": "all"}
    return {"split": usual}


def _of_length(kind: str, fields: Mapping[str, str], splits: Mapping[str, int]) -> dict[str, str]:
    """Steps and epochs, each of the other where that is filled in, and what follows from them."""
    frames = splits.get(split_read(kind, fields, splits), 0)
    length = length_of(fields, frames)
    sides = [fields.get(name, "") for name in ("height", "width")]
    if length is None or not all(side.isdecimal() for side in sides):
        return {
            "max_steps": f"{DEFAULT_STEPS}, or an epoch if more", "epochs": "as steps say",
            "prepare": "yes where that saves work",
        }  # fmt: skip
    saves = pays(
        dataset_frames=sum(splits.values()), split_frames=frames, examples=length.examples,
        workers=int(fields["workers"]), size=Size(*map(int, sides)),
    )  # fmt: skip
    return {
        "max_steps": str(length.max_steps), "epochs": f"{length.epochs:.3g}, by its steps",
        "prepare": "yes, if staged" if saves else "no",
    }  # fmt: skip
