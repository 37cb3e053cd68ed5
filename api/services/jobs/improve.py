"""A model's next training data: what its validation shows weak, chosen from the catalog."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from api.schemas.datasets import DatasetBody
from api.schemas.improvements import ImprovementBody
from api.services.datasets.new_dataset import stores_of
from api.services.jobs.improved_model import ImprovedModel, improved_model
from api.workspace import Workspace
from catalog.errors import InvalidInput, NothingToAdd
from catalog.records.datasets import own_dataset
from catalog.records.tables import Job
from catalog.tags.confusion_cells import scored_models
from catalog.values import Owner
from pipeline.datasets.frame_worth import Worth
from pipeline.datasets.improve import Improvement, frames_to_label, improve_dataset
from pipeline.jobs.request import JobPaths, read_json
from query.sets.min_gap import MIN_GAP_S


@dataclass(frozen=True)
class Asked:
    """A request for an improvement; see api.services.jobs.models.Models.improve."""

    frames: int
    label: int
    per_scene: int | None
    min_gap_s: float | None
    seed: int
    at: int | None


def improve(workspace: Workspace, model: str, request: Asked) -> ImprovementBody:
    """Add frames to what a model was trained on, and list others that are worth a label.

    Nothing is added that `validated_with` holds apart, nor of its scenes and drives.

    Raises:
        InvalidInput: It has no finished validation, or nothing was asked for.
        NothingToAdd: There is neither a frame to add nor one to list.
        NotFound: Its dataset is gone.
        NotAllowed: The caller may not make another version of its dataset.
    """
    if not request.frames and not request.label:
        raise InvalidInput("frames 0: expected 1 or more, or frames to label beside it")
    records, improved = workspace.records, improved_model(workspace, model)
    dataset = own_dataset(records, f"{improved.dataset.name}@{improved.dataset.version}")
    report, held_splits = newest_report(improved.validations), improved.held_splits
    improvement = _improvement(workspace, improved, report, request)
    stores = stores_of(workspace)
    to_label: list[str] = []
    if request.label:
        listed = Improvement(**{**vars(improvement), "frames": request.label})
        to_label = frames_to_label(stores, dataset, listed, held_splits, improved.name, request.at)
    grown, reason = None, None
    if request.frames:
        try:
            owner = Owner(dataset.owner, dataset.account)
            grown = improve_dataset(stores, dataset, improvement, held_splits, request.at, owner)
        except NothingToAdd as error:
            if not to_label:
                raise
            reason = str(error)
    return ImprovementBody(
        model=model,
        validation=improved.validations[0].name,
        dataset=None if grown is None else DatasetBody.of(grown, workspace.place),
        nothing_added=reason,
        to_label=to_label,
    )


def _improvement(
    workspace: Workspace, improved: ImprovedModel, report: Mapping[str, Any], request: Asked
) -> Improvement:
    known = known_of(workspace, improved.name, report)
    return Improvement(
        request.frames,
        known.weak_classes,
        known.weak_slices,
        known.uncertainty,
        improved.split,
        request.per_scene,
        MIN_GAP_S if request.min_gap_s is None else request.min_gap_s,
        request.seed,
    )


def known_of(workspace: Workspace, model: str, report: Mapping[str, Any]) -> Worth:
    """The label classes and slices in which a report shows a model weak, and its uncertainty's tag.

    A label class that the model merges into another is as weak as that one.
    """
    with workspace.catalog.reading() as snapshot:
        scored = scored_models(snapshot).get(model)
        tag = None if scored is None else f"{scored.prefix}_uncertainty"
        uncertainty = tag if tag in snapshot.tags else None
        # Scenes that were validated are held apart: no frame to choose is of one.
        tags = {"camera", *snapshot.tags} - {"scene"}
    weak_classes = {
        tag: 1.0 - (row["iou"] or 0.0) if row["truth_pixels"] else 1.0
        for row in report.get("per_class", ())
        for tag in _label_tags(model, row)
    }
    weak_slices = {
        by: {
            row.get("value", row.get(by)): 1.0 - row["miou"]
            for row in rows
            if row["miou"] is not None
        }
        for by, rows in report.get("slices", {}).items()
        if by in tags
    }
    return Worth(weak_classes, weak_slices, uncertainty)


def _label_tags(model: str, row: Mapping[str, Any]) -> list[str]:
    """The tags of a class of the model: frames are labelled with those that it merges.

    Raises:
        InvalidInput: The report is of a version that did not say.
    """
    try:
        return [*row["label_tags"]]
    except KeyError as error:
        raise InvalidInput(
            f"model {model}: another version of Framesift wrote the report of its "
            "validation; validate it again: framesift validate " + model + " DATASET"
        ) from error


def newest_report(validations: Sequence[Job]) -> Mapping[str, Any]:
    """The report of the newest of a model's validations."""
    return read_json(JobPaths(Path(validations[0].paths["folder"])).report / "report.json")
