"""The labels of fields: what a form's page calls what programs know by a name.

Messages name fields as programs do, such as ``max_steps``; a form's page calls it *Steps*. The
tables stand here beside the templates, and a test compares them (tests/api/web/test_labels.py).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

_DIVISION = {
    "split": "Splits", "split_by": "What stays on one side",
    "stratify_splits": "Every split has its share of",
}  # fmt: skip
_APART = {
    "min_gap_s": "Nearer frames stay on one side [s]", "seed": "Seed",
    "allow_leakage": "Sides may share scenes, drives and moments",
}  # fmt: skip
_RESOURCES = {
    "workers": "Workers", "start_after": "Begin when so much is staged [%]", "name": "Name",
    "attempts": "Attempts, where a machine is lost",
    "unstaged": "Read files where their sources are mounted, without staging",
    "ranks_per_node": "Workers on each machine", "gpus": "GPUs for each worker",
    "cores": "Cores for each worker", "memory_mb": "Memory of each machine [MB]",
    "wall_minutes": "Ends after [minutes]", "nodes": "Machines",
    "constraint": "Labels of machines", "image": "Container image",
    "options": "Settings of the backend",
}  # fmt: skip
_JOB = {**_RESOURCES, "backend": "Backend", "dataset": "Dataset", "save_as": "Saved as dataset"}
_LENGTH = {
    "split": "Split to train on", "epochs": "Epochs", "max_steps": "Steps",
    "batch_size": "Frames per worker and step", "height": "Height [pixels]",
    "width": "Width [pixels]", "seed": "Seed", "model": "Network",
    "evaluate_every": "Evaluate every [epochs]", "learning_rate": "Learning rate",
    "classes": "Classes", "augment": "Augmented by", "evaluate_split": "Evaluate split",
    "checkpoint_every": "Checkpoint every [steps]", "precision": "Precision",
    "continue_from": "Go on from", "target_miou": "Mean IoU whose time is taken",
}  # fmt: skip

OF_JOBS: Mapping[str, Mapping[str, str]] = {
    "train": {**_JOB, **_LENGTH},
    "validate": {
        **_JOB, "split": "Split to validate on", "model": "Model",
        "onnx": "What an ONNX file does not say", "compare": "Compare with",
    },
    "scaling": {
        **_JOB, **_LENGTH, "ranks": "Numbers of ranks", "repeats": "Trainings of each",
    },
    "preflight": {
        **_JOB, "ranks": "Ranks", "through": "Joined by", "largest_mib": "Largest message [MiB]",
        "dataset": "Files that are read, of a dataset",
        "path": "Folder that is read, on the ranks' machines",
        "synthetic": "Train ResNet-50 on generated data",
        "batch_size": "Images per rank and step", "steps": "Timed steps",
    },
}  # fmt: skip
"""Labels of the forms of jobs, by the kind; a further setting without one has its name in words."""

_SOURCE = {
    "name": "Name", "uri": "Folder or bucket", "platform": "Kind of storage", "layout": "Layout",
    "endpoint_url": "Endpoint", "region": "Region", "access_key": "Access key",
    "secret_key": "Secret key", "anonymous": "Public: send unsigned requests",
    "scan": "Scan it at once",
}  # fmt: skip

_OF_PATHS: tuple[tuple[str, Mapping[str, str]], ...] = (
    (
        r"/new-dataset",
        {
            **_DIVISION, **_APART, "name": "Name", "frames": "Frames", "stratify": "Strata",
            "allocation": "Of each", "like": "Like dataset", "like_split": "Its split",
            "by": "Compare", "tolerance": "Shares may be off by",
            "targets": "Or targets, as JSON or CSV", "demands": "Demands",
            "tag": "Tag of the score", "per_scene": "Most of one scene",
            "pool": "Pool, times the frames", "lowest": "The lowest are the least sure",
            "disjoint_from": "Shares no scene, drive or moment with datasets",
        },
    ),
    (r"/datasets/[^/]*/splits", {**_DIVISION, **_APART}),
    (
        r"/datasets/[^/]*/extensions",
        {**_APART, "split": "To split", "demands": "And demands"},
    ),
    (
        r"/datasets/[^/]*/change",
        {"description": "Description of this version", "rename": "Name of all its versions"},
    ),
    (r"/datasets/[^/]*/gaps", {"at_least": "Classes and cameras with fewer frames than"}),
    (r"/datasets/[^/]*/diff", {"other": "Compare with"}),
    (
        r"/jobs/[^/]*/next-frames.*",
        {
            "frames": "Labelled frames to add", "label": "Unlabelled frames to list",
            "classes": "Chosen for the classes", "per_scene": "Most of one scene",
            "min_gap_s": "Away from validated frames [s]", "seed": "Seed",
        },
    ),
    (
        r"/marks.*",
        {"tag": "Tag", "value": "Value", "note": "Note", "everything": "everything found"},
    ),
    (
        r"/questions",
        {"name": "Name of the question", "shared": "Share it with all users"},
    ),
    (r"/operate/sources(/look)?", _SOURCE),
    (r"/operate/sources/[^/]*", {"layout": "Another layout, from the next scan on"}),
    (r"/operate/scans", {"full": "Count all labels again"}),
    (
        r"/operate/tokens",
        {"name": "Name", "scope": "Scope", "days": "Days", "user": "Of user"},
    ),
    (r"/operate/users.*", {"name": "Name", "password": "Password"}),
    (r"/operate/audit", {"who": "User", "outcome": "Outcome"}),
)  # fmt: skip
"""Labels of the other forms, by the path that they are sent to."""

_NOTHING: Mapping[str, str] = {}

_AT_ITS_PLACE = re.compile(r"([A-Za-z_][\w.-]*): ")
_NAMED = ("dataset", "model", "split", "name", "path", "tag", "job", "kind", "frames", "user")
"""Words that a sentence may begin with and mean no field."""


@dataclass(frozen=True)
class Labelled:
    """A message as a form's page says it."""

    text: str
    """With labels in the place of names."""
    field: str
    """The name of the form's field that it begins with; empty where it begins with none."""


def labels_of(path: str, kind: str = "") -> Mapping[str, str]:
    """The labels of a form's fields by their names; none where no form leads there.

    Args:
        path: That the form is sent to.
        kind: Of job, of a form of jobs.
    """
    if path.startswith("/new-job"):
        return OF_JOBS.get(kind, _NOTHING)
    return next((labels for form, labels in _OF_PATHS if re.fullmatch(form, path)), _NOTHING)


def labelled(message: str, labels: Mapping[str, str], *, of_job: bool = False) -> Labelled:
    """A message with the labels of a form in the place of the names of its fields.

    >>> labelled("augment.1: got 'x'", {"augment": "Augmented by"})
    Labelled(text="Augmented by, value 2: got 'x'", field='augment')
    >>> labelled("max steps 3 and epochs 2: give one", {"max_steps": "Steps"}).text
    'Steps 3 and epochs 2: give one'

    Args:
        labels: As `labels_of` gives them.
        of_job: Whether a name without a label is said in words, as forms of jobs do.
    """
    place = _AT_ITS_PLACE.match(message)
    if place is not None:
        keys = place[1].split(".")
        if keys[0] == "path":
            return Labelled(f"The address: {message[place.end() :]}", "")
        names = [key for key in keys if key in labels]
        last = names[-1] if names else ""
        if not last and (of_job or keys[0] == "query"):
            words = [key for key in keys if not key.isdecimal()]
            last = words[-1] if len(words[-1]) > 1 and "_" in words[-1] else ""
        if last:
            number = f", value {int(keys[-1]) + 1}" if keys[-1].isdecimal() else ""
            rest = _within(message[place.end() :], labels)
            return Labelled(f"{_label(last, labels)}{number}: {rest}", last)
        if keys[0] == "query":
            return Labelled(f"The address ({keys[-1]}): {message[place.end() :]}", "")
    for name, label in labels.items():
        begin = re.match(rf"{name.replace('_', '[_ ]')}(?=[ =])", message)
        if begin is not None and (name not in _NAMED):
            return Labelled(label + _within(message[begin.end() :], labels), name)
    return Labelled(_within(message, labels), "")


def _label(name: str, labels: Mapping[str, str]) -> str:
    return labels.get(name) or name.replace("_", " ").capitalize()


def _within(text: str, labels: Mapping[str, str]) -> str:
    """A text with labels, quoted, in the place of names that are no words."""
    names = [name for name in labels if "_" in name]
    if not names:
        return text
    pattern = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    return re.sub(rf"(?<![\w.=/'-])({pattern})(?![\w=])", lambda one: f"“{labels[one[1]]}”", text)
