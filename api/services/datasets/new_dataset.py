"""Asking a question and saving its answer: what the routes and the commands both do."""

from collections.abc import Mapping, Sequence
from typing import Any

from api.schemas.datasets import Divided, NewDataset, NewExtension, NewSplit
from api.workspace import Workspace
from catalog.records.datasets import own_dataset, recorded_dataset
from catalog.records.tables import Dataset
from pipeline.datasets.datasets import Origin, create_dataset, name_of_new
from pipeline.datasets.derive import Gap, Stores, extend_dataset, split_dataset
from pipeline.datasets.division import FRAME, Division
from pipeline.datasets.leakage_guard import keep_away_from, union
from pipeline.datasets.naming import naming
from pipeline.datasets.split import parse_split
from pipeline.manifest import Manifest
from pipeline.manifest_store import read_manifest
from query.frames.candidates import DUPLICATE
from query.frames.file_versions import with_versions
from query.frames.selection import Selection
from query.sets.apart import DRIVE, KeepAway
from query.sets.methods import Match, Method
from query.sets.select_set import Asked, distribution, select_set, with_columns


def make_dataset(
    workspace: Workspace, wanted: NewDataset, at: int | None = None, owner: str = ""
) -> Dataset:
    """Choose frames, of the snapshot ``at`` where one is given, and save them for a user."""
    name_of_new(workspace.records, wanted.name)
    division = _division(wanted)
    keep_away, others = _keep_away(workspace, wanted)
    method, like = _with_targets(workspace, wanted.method)
    asked = Asked(wanted.question, method, wanted.seed, keep_away, [*_columns(division)])
    selection, report = select_set(
        workspace.catalog,
        asked,
        workspace.class_names(),
        at,
    )
    built: dict[str, Any] = {}
    if method is not None:
        built["method"] = {**method.model_dump(mode="json"), **like}
        built["method_seed"] = wanted.seed
    if others:
        built["disjoint_from"] = [found.content_id for found in others]
        built["disjoint_gap_s"] = wanted.min_gap_s
        report = {**report, "disjoint_from": [f"{one.name}@{one.version}" for one in others]}
    origin = Origin(built=built, seed=wanted.seed, report=report, owner=owner)
    return save_selection(workspace, wanted, selection, origin)


def _division(wanted: Divided) -> Division:
    """The division.

    Raises:
        InvalidInput: The shares are not written as they should be.
    """
    return Division(
        parse_split(wanted.split) if wanted.split else {},
        wanted.split_by if wanted.split_by == FRAME else wanted.split_by.lower(),
        wanted.stratify_splits,
        wanted.min_gap_s,
        wanted.allow_leakage,
        wanted.seed,
    )


def _columns(division: Division) -> list[str]:
    """What the division looks at; nothing where there is none."""
    return [*division.columns(), DRIVE, DUPLICATE] if division.shares else []


def _keep_away(workspace: Workspace, wanted: NewDataset) -> tuple[KeepAway | None, list[Dataset]]:
    others = [recorded_dataset(workspace.records, name) for name in wanted.disjoint_from]
    parts = [
        keep_away_from(workspace.catalog, workspace.records, found, wanted.min_gap_s)
        for found in others
    ]
    return union(parts, wanted.min_gap_s), others


def _with_targets(
    workspace: Workspace, method: Method | None
) -> tuple[Method | None, Mapping[str, Any]]:
    """A Match that is like a dataset with that one's shares as its targets; which one it was."""
    if not isinstance(method, Match) or method.like is None:
        return method, {}
    found = recorded_dataset(workspace.records, method.like)
    fkeys = (
        read_manifest(workspace.records, found).split(method.like_split).frames["fkey"].to_pylist()
    )
    targets = distribution(
        workspace.catalog,
        fkeys,
        method.by,
        workspace.class_names(),
        found.snapshot,
    )
    made = method.model_copy(update={"targets": targets, "like": None, "by": ()})
    return made, {"like": f"{found.name}@{found.version}", "like_id": found.content_id}


def save_selection(
    workspace: Workspace,
    wanted: NewDataset,
    selection: Selection,
    origin: Origin | None = None,
) -> Dataset:
    """Save an answer that has been had already."""
    catalog = workspace.catalog
    division = _division(wanted)
    with catalog.reading(selection.snapshot) as snapshot:
        selection = with_columns(snapshot, selection, _columns(division))
        selection = with_versions(snapshot, selection)
    origin = origin or Origin(seed=wanted.seed)
    with naming(catalog, selection.snapshot, wanted.name):
        made = create_dataset(workspace.records, wanted.name, selection, division, origin)
    return _as_seen(workspace, made)


def divide_dataset(workspace: Workspace, name: str, wanted: NewSplit, owner: str = "") -> Dataset:
    """Divide a dataset's frames anew, as a new version of it, for a user."""
    found = own_dataset(workspace.records, name)
    made = split_dataset(stores_of(workspace), found, _division(wanted), owner)
    return _as_seen(workspace, made)


def grow_dataset(
    workspace: Workspace,
    name: str,
    wanted: NewExtension,
    at: int | None = None,
    owner: str = "",
) -> Dataset:
    """Add the frames that a dataset lacks, as a new version of it, for a user."""
    gap = Gap(wanted.demands, wanted.split, wanted.min_gap_s, wanted.allow_leakage, wanted.seed)
    found = own_dataset(workspace.records, name)
    return _as_seen(workspace, extend_dataset(stores_of(workspace), found, gap, at, owner))


def _as_seen(workspace: Workspace, made: Dataset) -> Dataset:
    """What was made, or was there before with the same content, as its maker may see it."""
    return recorded_dataset(workspace.records, f"{made.name}@{made.version}")


def stores_of(workspace: Workspace) -> Stores:
    """What datasets of a home are made with."""
    return Stores(workspace.catalog, workspace.records, workspace.class_names())


def class_tags(workspace: Workspace, manifest: Manifest) -> Sequence[str]:
    """Class tag of each entry of a manifest's class_pixels."""
    by_name = {name: tag for tag, name in workspace.class_names().items()}
    return [by_name.get(name, name) for name in manifest.header.classes]
