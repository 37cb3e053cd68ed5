"""A dataset's manifest made again from its question, snapshot and seed, and proven equal by id."""

from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from typing import Any

from pydantic import TypeAdapter

from api.services.datasets.new_dataset import stores_of
from api.workspace import Workspace
from catalog.errors import BadFile, NotFound
from catalog.lake.schema import GIVEN_SPLIT
from catalog.records.datasets import own_dataset, recorded_datasets
from catalog.records.store import RecordStore
from catalog.records.tables import Dataset
from pipeline.datasets.datasets import Content, Provenance, content_of
from pipeline.datasets.derive import Gap, grown_content, split_content
from pipeline.datasets.division import Division
from pipeline.datasets.improve import HeldOutSplit, Improvement, improved_content
from pipeline.datasets.leakage_guard import guard_of, union
from pipeline.datasets.rebuilt import restore_manifest
from pipeline.datasets.reduce import Reduction, reduced_content
from pipeline.manifest_store import read_manifest
from query.frames.file_versions import with_versions
from query.question.question import Question
from query.sets.leakage_guard import DRIVE, LeakageGuard
from query.sets.methods import Demand, Method
from query.sets.select_set import SetRequest, select_set, with_columns


def rebuild_dataset(workspace: Workspace, name: str) -> Dataset:
    """Make a dataset's manifest again, and those that it needs; its record, which stays."""
    dataset = own_dataset(workspace.records, name)
    restore_manifest(workspace.records, dataset, _content(workspace, dataset))
    return dataset


def _content(workspace: Workspace, dataset: Dataset) -> Content:
    stored = dataset.question
    if not dataset.parents:
        return _chosen(workspace, dataset)
    parent = _with_manifest(workspace, str(dataset.parents[0]["id"]))
    reduced = stored.get("reduced", [])
    if reduced and reduced[-1]["of"] == parent.content_id:
        reduction = Reduction(**{one.name: reduced[-1][one.name] for one in fields(Reduction)})
        return reduced_content(stores_of(workspace), parent, reduction)[0]
    extended = stored.get("extended", [])
    if not extended or extended[-1]["of"] != parent.content_id:
        return split_content(stores_of(workspace), parent, _division(stored))[0]
    last = extended[-1]
    if last.get("improved"):
        held_splits = [
            HeldOutSplit(_with_manifest(workspace, one["of"]), one["split"]) for one in last["held"]
        ]
        improvement = Improvement.of_record(last)
        stores = stores_of(workspace)
        return improved_content(stores, parent, improvement, held_splits, last["snapshot"])[0]
    gap = Gap(
        tuple(Demand.model_validate(one) for one in last["demands"]),
        last["split"],
        last["min_gap_s"],
        last["allow_leakage"],
        last["seed"],
    )
    return grown_content(stores_of(workspace), parent, gap, last["snapshot"])[0]


def _chosen(workspace: Workspace, dataset: Dataset) -> Content:
    """Frames that a question chose."""
    stored = dataset.question
    catalog = workspace.catalog
    division = _division(stored)
    request = SetRequest(
        Question.of_dataset(stored),
        _method(stored),
        int(stored.get("method_seed", dataset.seed)),
        _leakage_guard(workspace, stored),
    )
    selection, _ = select_set(catalog, request, dataset.snapshot)
    columns = [*division.columns(), DRIVE] if division.is_divided else []
    with catalog.reading(dataset.snapshot) as snapshot:
        selection = with_columns(snapshot, selection, columns)
        selection = with_versions(snapshot, selection)
    return content_of(stores_of(workspace), dataset.name, selection, division, Provenance())[0]


def _method(stored: Mapping[str, Any]) -> Method | None:
    if "method" not in stored:
        return None
    # What it was to be like was written as targets beside it.
    fields = {k: v for k, v in stored["method"].items() if k not in ("like", "like_id")}
    method: Method = TypeAdapter(Method).validate_python(fields)
    return method


def _leakage_guard(workspace: Workspace, stored: Mapping[str, Any]) -> LeakageGuard | None:
    gap_s = float(stored.get("disjoint_gap_s", 0))
    disjoint = [_with_manifest(workspace, one) for one in stored.get("disjoint_from", [])]
    return union(
        [guard_of(workspace.catalog, workspace.records, other, gap_s) for other in disjoint],
        gap_s,
    )


def _division(stored: Mapping[str, Any]) -> Division:
    if not stored.get("split"):
        return Division(given=stored.get("split_by") == GIVEN_SPLIT)
    guard = {name: stored[name] for name in ("min_gap_s", "allow_leakage") if name in stored}
    return Division(
        {name: Fraction(share) for name, share in stored["split"].items()},
        stored["split_by"],
        tuple(stored.get("stratify_splits", ())),
        seed=int(stored["split_seed"]),
        **guard,
    )


def _with_manifest(workspace: Workspace, content_id: str) -> Dataset:
    """The dataset of an id, its manifest made again where it is lost."""
    dataset = _of_id(workspace.records, content_id)
    try:
        read_manifest(workspace.records, dataset)
    except BadFile:
        rebuild_dataset(workspace, f"{dataset.name}@{dataset.version}")
    return dataset


def _of_id(records: RecordStore, content_id: str) -> Dataset:
    for dataset in recorded_datasets(records):
        if dataset.content_id == content_id:
            return dataset
    raise NotFound("dataset", content_id, "of this id; a dataset that is rebuilt was made of it")
