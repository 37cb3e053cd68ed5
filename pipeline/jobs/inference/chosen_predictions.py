"""Chooses the predictions that a validation scores in the place of a model's own."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from catalog.errors import NotFound
from catalog.records.datasets import complete_dataset
from catalog.records.jobs import recorded_job
from catalog.records.store import RecordStore
from catalog.storage.atomic_write import atomic_write
from pipeline.datasets.chosen_split import chosen_split
from pipeline.jobs.request import PYTHON, JobPaths, Stage
from pipeline.manifest import Manifest, ManifestHeader
from pipeline.runs.class_map import ClassMap, chosen_classes
from pipeline.runs.orders import Validation, order_of
from pipeline.runs.prediction_set import BY_NAME, IDS, PREDICTIONS_FILE, PredictionSet


@dataclass(frozen=True)
class ChosenPredictions:
    """Predictions that another program made, as a job was asked for them: like a ChosenModel."""

    predictions: PredictionSet
    """The predictions."""
    below: Literal["predictions", "compared"]
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
            *(("--trained_manifest", self.trained[0], "--trained_split", self.trained[1])
              if self.trained else ()),
        )  # fmt: skip

    def write(self, paths: JobPaths) -> None:
        """Write their description, which the job's programs read."""
        path = self.folder_in(paths) / PREDICTIONS_FILE
        atomic_write(path, json.dumps(self.predictions.as_json(), indent=2), parents=True)

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
    records: RecordStore,
    order: Validation,
    header: ManifestHeader,
    below: Literal["predictions", "compared"] = "predictions",
) -> ChosenPredictions:
    """The predictions of an order, of a dataset's frames.

    Raises:
        InvalidInput: The model's class map does not fit the dataset.
        UnknownName: There is no such class map.
        NotFound: What the model was trained on is gone.
    """
    class_map, classes = chosen_classes(order.classes), header.dataset_classes
    if class_map is None:
        classes.need_same_classes(header.name)
    else:
        class_map.ids_in(classes, header.name)
    predictions = PredictionSet(
        model=order.model_name or "",
        place=order.predictions or "",
        classes=classes.learned if class_map is None else class_map.classes,
        info=dict(order.model_info or {}),
        encoding=IDS if order.encoding is None else order.encoding,
        named_by=order.named_by or BY_NAME,
        class_map=None if class_map is None else class_map.as_json(),
    )
    return ChosenPredictions(predictions, below, _trained(records, order.trained_on))


def _trained(records: RecordStore, dataset: str | None) -> tuple[str, str] | None:
    """Manifest and split of what a model was trained on."""
    if dataset is None:
        return None
    manifest = complete_dataset(records, dataset).manifest
    return manifest, chosen_split(Manifest.read(Path(manifest)), None, "train")


def predictions_of_job(records: RecordStore, job: str) -> Validation | None:
    """The order of a validation that scored another program's predictions.

    Returns:
        None where there is no job of that name, or another one.
    """
    try:
        recorded = recorded_job(records, job)
    except NotFound:
        return None
    if recorded.kind != "validate":
        return None
    order = order_of(recorded.request["order"])
    return order if isinstance(order, Validation) and order.predictions is not None else None


def match_stage(commands: Sequence[tuple[str, ...]]) -> tuple[Stage, ...]:
    """The stage that finds the predictions of a job's frames; none for no commands."""
    return (Stage("match", tuple(commands), uses_gpus=False),) if commands else ()
