"""Chooses the predictions that a validation scores in the place of a model's own."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from catalog.errors import InvalidInput
from catalog.records.jobs import recorded_job
from catalog.records.store import RecordStore
from catalog.storage.atomic_write import atomic_write
from pipeline.jobs.inference.earlier_validation import earlier_validation
from pipeline.jobs.inference.fetched_predictions import fetched_folder
from pipeline.jobs.inference.trained_on import trained_flags, trained_split
from pipeline.jobs.request import PYTHON, JobPaths, Stage
from pipeline.jobs.work import JobHome
from pipeline.manifest import ManifestHeader
from pipeline.runs.class_map import ClassMap, chosen_classes
from pipeline.runs.orders import Order, Validation
from pipeline.runs.prediction_set import (
    BY_FKEY,
    BY_NAME,
    IDS,
    PREDICTIONS_FILE,
    PredictionSet,
    is_on_server,
    scores_in,
    written_scores,
)

Below = Literal["predictions", "compared"]
"""Folder of a job for the predictions that it scores, or for those that it compares with."""


@dataclass(frozen=True)
class ChosenPredictions:
    """Predictions that another program made, as a job was asked for them: like a ChosenModel."""

    predictions: PredictionSet
    """The predictions."""
    below: Below
    """Folder of the job in which they are described."""
    trained: tuple[str, str] | None = None
    """Manifest and split that the model was trained on; None where nobody said."""
    network: None = None
    """Of no network."""

    @property
    def name(self) -> str:
        """The model's name."""
        return self.predictions.model

    def folder_in(self, paths: JobPaths) -> Path:
        """The folder of their description: reports call the model by its name."""
        return paths.folder / self.below / self.predictions.model

    def match(self, paths: JobPaths, inputs: Sequence[str], split: str) -> tuple[str, ...]:
        """The command that finds the prediction of each frame.

        Args:
            paths: The job's files.
            inputs: Flags of the manifest.
            split: That is scored.
        """
        return (
            PYTHON, "-P", "-m", "training.match_predictions",
            "--predictions_dir", str(self.folder_in(paths)), *inputs, "--split", split,
            *trained_flags(self.trained),
        )  # fmt: skip

    def write(self, paths: JobPaths) -> None:
        """Write their description, which the job's programs read."""
        path, described = self.folder_in(paths) / PREDICTIONS_FILE, self.predictions
        if is_on_server(described.place):
            folder = str(fetched_folder(paths, self.below))
            described = replace(described, fetched=folder, options={})
        atomic_write(path, json.dumps(described.as_json(), indent=2), parents=True)

    def description(self) -> Mapping[str, Any]:
        """What a model's description has, too."""
        return {"classes": list(self.predictions.classes), "class_map": self.predictions.class_map}

    def class_map(self) -> ClassMap | None:
        """By which the model merges label classes; None where each is a class."""
        return (
            None
            if self.predictions.class_map is None
            else ClassMap.from_json(self.predictions.class_map)
        )


def chosen_predictions(
    home: JobHome,
    order: Validation,
    header: ManifestHeader,
    below: Below = "predictions",
) -> ChosenPredictions:
    """The predictions of an order, of a dataset's frames.

    Raises:
        InvalidInput: The model's class map does not fit the dataset, or the place is not there.
        UnknownName: There is no such class map.
        NotFound: What the model was trained on is gone, or there is no job of the scores.
        NotAllowed: The predictions lie where the user may not name them.
    """
    class_map, classes = chosen_classes(order.classes), header.dataset_classes
    if class_map is None:
        classes.need_same_classes(header.name)
    else:
        class_map.ids_in(classes, header.name)
    location = order.predictions or ""
    if order.scores is not None:
        location = str(_scores_folder(home.records, order.scores))
    fences = home.fences(order)  # before anything is said of what lies there
    if not is_on_server(location) and not Path(location).exists():
        raise InvalidInput(
            f"predictions {location}: there is no such folder or .tar; give one with a PNG for "
            "each frame, or s3://bucket/prefix"
        )
    if order.scores is not None:
        known = classes.names if class_map is None else class_map.classes
        _check_classes_of(location, known, header.name)
    predictions = PredictionSet(
        model=order.model_name or "",
        place=location,
        classes=classes.learned if class_map is None else class_map.classes,
        info=dict(order.model_info or {}),
        encoding=IDS if order.encoding is None else order.encoding,
        named_by=order.named_by or (BY_NAME if order.scores is None else BY_FKEY),
        class_map=None if class_map is None else class_map.as_json(),
        options=fences.options,
        list_within=fences.list_within,
    )
    return ChosenPredictions(predictions, below, trained_split(home.records, order.trained_on))


def _scores_folder(records: RecordStore, scores: str) -> Path:
    """The folder of the scores that a job's program wrote, or the one that is named.

    Raises:
        NotFound: There is no such job.
        InvalidInput: It runs no program of a user.
    """
    if Path(scores).is_absolute():
        return scores_in(Path(scores))
    job = recorded_job(records, scores)
    if job.kind != "run":
        raise InvalidInput(f"scores {scores}: is a job of kind {job.kind}, not run")
    return scores_in(Path(job.paths["folder"]))


def _check_classes_of(place: str, classes: Sequence[str], dataset: str) -> None:
    """Accept scores of the classes that are compared.

    Raises:
        InvalidInput: They are of others.
    """
    scored = written_scores(Path(place))
    if scored != tuple(classes):
        raise InvalidInput(
            f"scores {place}: are of {len(scored)} classes, {', '.join(scored[:3])}..., and "
            f"dataset {dataset} is compared by {len(classes)}, {', '.join(classes[:3])}...: give "
            "the class map that the program scored by (--classes)"
        )


def on_server(records: RecordStore, order: Order) -> dict[Below, Validation]:
    """The orders whose predictions a job fetches from a server: its own, and the compared one's."""
    if not isinstance(order, Validation):
        return {}
    compared = None if order.compare is None else earlier_validation(records, order.compare)
    orders: dict[Below, Validation | None] = {"predictions": order, "compared": compared}
    return {
        below: one
        for below, one in orders.items()
        if one is not None and one.predictions is not None and is_on_server(one.predictions)
    }


def match_stage(commands: Sequence[tuple[str, ...]]) -> tuple[Stage, ...]:
    """The stage that finds the predictions of a job's frames; none for no commands."""
    return (Stage("match", tuple(commands), uses_gpus=False),) if commands else ()
