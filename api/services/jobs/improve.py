"""A model's next training data: what its validation shows weak, chosen from the catalog."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from api.schemas.datasets import DatasetBody
from api.schemas.improvements import FrameReason, ImprovementBody
from api.services.datasets.new_dataset import stores_of
from api.services.jobs.improved_model import ImprovedModel, improved_model
from api.workspace import Workspace
from catalog.errors import InvalidInput, NothingToAdd, UnknownName
from catalog.records.datasets import own_dataset
from catalog.records.tables import Job
from catalog.tags.confusion_cells import scored_models
from catalog.values import Owner
from pipeline.datasets.frame_worth import Worth
from pipeline.datasets.improve import (
    Confusions,
    Improvement,
    frames_to_label,
    improve_dataset,
    improved_content,
)
from pipeline.datasets.proposal import ProposedFrame
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
    classes: tuple[str, ...] = ()
    """Names or tags of the classes that frames are chosen for; all when empty."""
    drop: tuple[str, ...] = ()
    """fkeys of frames that are left out of those chosen."""
    dry_run: bool = False
    """Whether nothing is saved."""


def improve(workspace: Workspace, model: str, request: Asked) -> ImprovementBody:
    """Add frames to what a model was trained on, and list others that are worth a label.

    Nothing is added that `validated_with` holds apart, nor of its scenes and drives. Of a dry run
    nothing is saved.

    Raises:
        InvalidInput: It has no finished validation, nothing was asked for, or a frame is dropped
            that is not chosen.
        NothingToAdd: There is neither a frame to add nor one to list, or none that would help.
        UnknownName: The report has no class of that name.
        NotFound: Its dataset is gone.
        NotAllowed: The caller may not make another version of its dataset.
    """
    if not request.frames and not request.label:
        raise InvalidInput("frames 0: expected 1 or more, or frames to label beside it")
    records, improved = workspace.records, improved_model(workspace, model)
    dataset = own_dataset(records, f"{improved.dataset.name}@{improved.dataset.version}")
    report = newest_report(improved.validations)
    at = workspace.catalog.snapshot() if request.at is None else request.at
    request = replace(request, at=at)
    listed = _listed(workspace, improved, report, request) if request.label else []
    to_label = [one for one in listed if one[0] not in request.drop]
    dropped = tuple({*request.drop} - {fkey for fkey, _ in listed})
    if dropped and not request.frames:
        raise InvalidInput(
            f"drop {dropped[0]}: it is not among the {len(listed):,} frames to label that are "
            "chosen; drop none but those that the same request names without drop"
        )
    grown, unsaved, reason = None, None, None
    added: list[tuple[str, ProposedFrame]] = []
    if request.frames:
        improvement = replace(
            _improvement(workspace, improved, report, request), dropped=tuple(sorted(dropped))
        )
        stores, held_splits = stores_of(workspace), improved.held_splits
        try:
            if request.dry_run:
                _, unsaved, added = improved_content(stores, dataset, improvement, held_splits, at)
            else:
                owner = Owner(dataset.owner, dataset.account)
                grown, added = improve_dataset(stores, dataset, improvement, held_splits, at, owner)
        except NothingToAdd as error:
            if not to_label:
                raise
            reason = str(error)
    return ImprovementBody(
        model=model,
        validation=improved.validations[0].name,
        trained_on=f"{dataset.name}@{dataset.version}",
        snapshot=at,
        dataset=None if grown is None else DatasetBody.of(grown, workspace.place),
        unsaved=unsaved,
        nothing_added=reason,
        to_add=[fkey for fkey, _ in added],
        to_label=[fkey for fkey, _ in to_label],
        reasons=[_reason(fkey, frame) for fkey, frame in (*added, *to_label)],
    )


def _listed(
    workspace: Workspace, improved: ImprovedModel, report: Mapping[str, Any], request: Asked
) -> list[tuple[str, ProposedFrame]]:
    """The unlabelled frames that are most worth a label."""
    # A prediction has the model's classes, and a label those that it merges.
    weak, classes = _of_model(report, request.classes)
    improvement = replace(
        _improvement(workspace, improved, report, request),
        frames=request.label, weak_classes=weak, classes=classes,
    )  # fmt: skip
    return frames_to_label(
        stores_of(workspace), improved.dataset, improvement, improved.held_splits,
        _confusions(improved.name, report), request.at,
    )  # fmt: skip


def _reason(fkey: str, frame: ProposedFrame) -> FrameReason:
    return FrameReason(
        fkey=fkey,
        reason=frame.reason,
        pixels=dict(frame.pixels),
        predicted=frame.predicted,
        uncertainty=frame.uncertainty,
    )


def _improvement(
    workspace: Workspace, improved: ImprovedModel, report: Mapping[str, Any], request: Asked
) -> Improvement:
    known = known_of(workspace, improved.name, report)
    rows = _rows_of(report, request.classes)
    return Improvement(
        request.frames,
        known.weak_classes,
        known.weak_slices,
        known.uncertainty,
        improved.split,
        request.per_scene,
        MIN_GAP_S if request.min_gap_s is None else request.min_gap_s,
        request.seed,
        tuple(tag for row in rows for tag in _label_tags(improved.name, row)),
    )


def _rows_of(report: Mapping[str, Any], names: Sequence[str]) -> list[Mapping[str, Any]]:
    """The report's rows of classes that are given by name or tag, in the report's order.

    Raises:
        UnknownName: It has none of that name.
    """
    rows = list(report.get("per_class", ()))
    known = {name: row for row in rows for name in (row.get("class"), row["tag"]) if name}
    for name in names:
        if name not in known:
            raise UnknownName("class", name, [row["tag"] for row in rows])
    tags = {known[name]["tag"] for name in names}
    return [row for row in rows if row["tag"] in tags]


def _of_model(
    report: Mapping[str, Any], names: Sequence[str]
) -> tuple[dict[str, float], tuple[str, ...]]:
    """How weak the model is in each of its classes, by tag; and the tags of those named."""
    weak = {row["tag"]: _weakness(row) for row in report.get("per_class", ())}
    return weak, tuple(row["tag"] for row in _rows_of(report, names))


def _weakness(row: Mapping[str, Any]) -> float:
    return 1.0 - (row["iou"] or 0.0) if row["truth_pixels"] else 1.0


def _confusions(model: str, report: Mapping[str, Any]) -> Confusions:
    """What a report says that the model's predictions mean; of no pixels, what they say."""
    tags = tuple(row["tag"] for row in report.get("per_class", ()))
    same = np.eye(len(tags))
    matrix = np.array(report.get("confusion_matrix", same), np.float64)
    taken = matrix.sum(axis=0)
    return Confusions(model, tags, np.where(taken > 0, matrix / np.maximum(taken, 1), same))


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
        tag: _weakness(row)
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
