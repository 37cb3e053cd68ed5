"""Asking a question and saving its answer: what the routes and the commands both do."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from api.schemas.new_datasets import Divided, NewDataset, NewExtension, NewSplit
from api.workspace import Workspace
from catalog.errors import InvalidInput
from catalog.lake.schema import GIVEN_SPLIT
from catalog.lake.wide_names import FKEY_HASH
from catalog.records.datasets import own_dataset, recorded_dataset
from catalog.records.tables import Dataset
from catalog.values import NOBODY, Owner
from pipeline.datasets.datasets import (
    Content,
    Provenance,
    content_of,
    create_dataset,
    name_of_new,
    preview_dataset,
    save_content,
)
from pipeline.datasets.derive import Gap, extend_dataset, split_dataset
from pipeline.datasets.division import FRAME, Division
from pipeline.datasets.leakage_guard import guard_of, union
from pipeline.datasets.naming import naming
from pipeline.datasets.split import parse_split
from pipeline.datasets.stores import Stores
from pipeline.manifest import Manifest
from pipeline.manifest_store import read_manifest
from query.frames.candidates import DUPLICATE
from query.frames.file_versions import with_versions
from query.frames.frame_portions import FramePortions, frame_portions
from query.frames.selection import Selection
from query.question.unknown_values import unknown_values
from query.sets.distribution import distribution
from query.sets.leakage_guard import DRIVE, LeakageGuard
from query.sets.methods import Match, Method
from query.sets.select_set import SetRequest, select_set, with_columns
from query.sets.stratifier import Stratifier


def make_dataset(
    workspace: Workspace, request: NewDataset, at: int | None = None, owner: Owner = NOBODY
) -> Dataset:
    """Choose frames, of the snapshot ``at`` where one is given, and save them for a user."""
    content, provenance = _new_content(workspace, request, at, owner)
    name = name_of_new(workspace.records, request.name)
    with naming(workspace.catalog, content.snapshot, request.name):
        dataset = save_content(workspace.records, name, content, provenance)
    return _as_seen(workspace, dataset)


def previewed_dataset(
    workspace: Workspace, request: NewDataset, at: int | None = None, owner: Owner = NOBODY
) -> tuple[Dataset, Manifest | None]:
    """The dataset that `make_dataset` would save, unwritten: pipeline's `preview_dataset`."""
    content, provenance = _new_content(workspace, request, at, owner)
    name = name_of_new(workspace.records, request.name)
    return preview_dataset(workspace.records, name, content, provenance)


def _new_content(
    workspace: Workspace, request: NewDataset, at: int | None, owner: Owner
) -> tuple[Content, Provenance]:
    """The frames that a dataset is asked to have, divided, and how they were come by."""
    name = name_of_new(workspace.records, request.name)
    division = _division(request)
    with _chosen(workspace, request, at, owner) as (selection, provenance):
        content, report = content_of(stores_of(workspace), name, selection, division, provenance)
    return content, replace(provenance, report={**provenance.report, **report})


@contextmanager
def _chosen(
    workspace: Workspace, request: NewDataset, at: int | None, owner: Owner
) -> Iterator[tuple[Selection | FramePortions, Provenance]]:
    """The frames that a dataset is asked to have, and how they were come by."""
    division = _division(request)
    if division.given:
        _need_given_splits(workspace, request.question.snapshot if at is None else at)
    leakage_guard, disjoint = _leakage_guard(workspace, request)
    method, like = _with_targets(workspace, request.method)
    built: dict[str, Any] = {}
    report: dict[str, Any] = {}
    if method is not None:
        built["method"] = {**method.model_dump(mode="json"), **like}
        built["method_seed"] = request.seed
    if disjoint:
        built["disjoint_from"] = [other.content_id for other in disjoint]
        built["disjoint_gap_s"] = request.min_gap_s
        report["disjoint_from"] = [f"{one.name}@{one.version}" for one in disjoint]
    set_request = SetRequest(
        request.question, method, request.seed, leakage_guard, [*_columns(division)]
    )
    with ExitStack() as stack:
        selection: Selection | FramePortions
        if method is None and leakage_guard is None and not request.question.order:
            columns = [*set_request.columns, *([FKEY_HASH] if division.is_divided else [])]
            selection = stack.enter_context(
                frame_portions(workspace.catalog, request.question, at, columns, [DRIVE])
            )
        else:
            chosen, of_set = select_set(workspace.catalog, set_request, at)
            selection = _with_columns(workspace, chosen, division)
            report = {**of_set, **report}
        if left_out := unknown_values(workspace.catalog, selection.question):
            report["left_out"] = left_out
        yield selection, Provenance(built=built, seed=request.seed, report=report, owner=owner)


def _division(request: Divided) -> Division:
    """The division; its strata are parsed before any frame is asked for."""
    for text in request.stratify_splits:
        Stratifier.parse(text)
    keeps_given_split = isinstance(request, NewDataset) and request.split_given
    if keeps_given_split and (request.split or request.stratify_splits):
        raise InvalidInput("split_given: the makers' splits are kept; leave the other splits out")
    return Division(
        parse_split(request.split) if request.split else {},
        request.split_by if request.split_by == FRAME else request.split_by.lower(),
        request.stratify_splits,
        request.min_gap_s,
        request.allow_leakage,
        request.seed,
        keeps_given_split,
    )


def _need_given_splits(workspace: Workspace, at: int | None) -> None:
    """Accept a catalog that has the splits of a data set's makers.

    Raises:
        InvalidInput: No frame has one.
    """
    with workspace.catalog.reading(at) as snapshot:
        if GIVEN_SPLIT not in snapshot.tags:
            raise InvalidInput(
                f"split_given: no frame has the tag {GIVEN_SPLIT}, which says its makers' "
                "split: no source's layout has a field {split} (framesift source show NAME shows "
                "it); divide by shares, such as --split train=0.8,validation=0.2"
            )


def _columns(division: Division) -> list[str]:
    """The columns that the division looks at; none without a division."""
    return [*division.columns(), DRIVE, DUPLICATE] if division.is_divided else []


def _leakage_guard(
    workspace: Workspace, request: NewDataset
) -> tuple[LeakageGuard | None, list[Dataset]]:
    disjoint = [recorded_dataset(workspace.records, name) for name in request.disjoint_from]
    parts = [
        guard_of(workspace.catalog, workspace.records, other, request.min_gap_s)
        for other in disjoint
    ]
    return union(parts, request.min_gap_s), disjoint


def _with_targets(
    workspace: Workspace, method: Method | None
) -> tuple[Method | None, Mapping[str, Any]]:
    """A Match that is like a dataset with that one's shares as its targets; which one it was."""
    if not isinstance(method, Match) or method.like is None:
        return method, {}
    like = recorded_dataset(workspace.records, method.like)
    fkeys = (
        read_manifest(workspace.records, like).split(method.like_split).frames["fkey"].to_pylist()
    )
    targets = distribution(
        workspace.catalog,
        fkeys,
        method.by,
        like.snapshot,
    )
    with_targets = method.model_copy(update={"targets": targets, "like": None, "by": ()})
    return with_targets, {"like": f"{like.name}@{like.version}", "like_id": like.content_id}


def save_selection(
    workspace: Workspace,
    request: NewDataset,
    selection: Selection,
    provenance: Provenance | None = None,
) -> Dataset:
    """Save an answer that has been had already."""
    catalog = workspace.catalog
    division = _division(request)
    selection = _with_columns(workspace, selection, division)
    provenance = provenance or Provenance(seed=request.seed)
    with naming(catalog, selection.snapshot, request.name):
        dataset = create_dataset(
            stores_of(workspace), request.name, selection, division, provenance
        )
    return _as_seen(workspace, dataset)


def _with_columns(workspace: Workspace, selection: Selection, division: Division) -> Selection:
    """The frames with what a division looks at, and the versions of their files."""
    with workspace.catalog.reading(selection.snapshot) as snapshot:
        selection = with_columns(snapshot, selection, _columns(division))
        return with_versions(snapshot, selection)


def divide_dataset(
    workspace: Workspace, name: str, request: NewSplit, owner: Owner = NOBODY
) -> Dataset:
    """Divide a dataset's frames again, as a new version of it, for a user."""
    dataset = own_dataset(workspace.records, name)
    divided = split_dataset(stores_of(workspace), dataset, _division(request), owner)
    return _as_seen(workspace, divided)


def grow_dataset(
    workspace: Workspace,
    name: str,
    request: NewExtension,
    at: int | None = None,
    owner: Owner = NOBODY,
) -> Dataset:
    """Add the frames that a dataset lacks, as a new version of it, for a user."""
    gap = Gap(
        request.demands, request.split, request.min_gap_s, request.allow_leakage, request.seed
    )
    dataset = own_dataset(workspace.records, name)
    return _as_seen(workspace, extend_dataset(stores_of(workspace), dataset, gap, at, owner))


def _as_seen(workspace: Workspace, dataset: Dataset) -> Dataset:
    """The dataset, new or there before with the same content, as its maker may see it."""
    return recorded_dataset(workspace.records, f"{dataset.name}@{dataset.version}")


def stores_of(workspace: Workspace) -> Stores:
    """The stores of a home that datasets are made with."""
    return Stores(workspace.catalog, workspace.records)
