"""Gaps of a dataset: what the catalog has and it has not."""

from collections import Counter
from functools import reduce

import pyarrow.compute as pc

from api.workspace import Workspace
from catalog.lake.group_tags import ClassGroups
from catalog.records.datasets import recorded_dataset
from pipeline.datasets.class_lists import tags_of
from pipeline.manifest import Manifest
from pipeline.manifest_store import read_manifest
from query.statistics.gap_report import GapReport
from query.statistics.gaps import Content, find_gaps


def dataset_gaps(
    workspace: Workspace,
    dataset: str,
    split: str | None = None,
    at_least: int = 1,
    scenes: bool = False,
    at: int | None = None,
) -> GapReport:
    """Gaps of a dataset, or one of its splits, against the catalog: classes, cameras, scenes."""
    record = recorded_dataset(workspace.records, dataset)
    manifest = read_manifest(workspace.records, record)
    portion = manifest.split(split)
    with workspace.catalog.reading(at) as snapshot:
        groups = snapshot.groups
    content = Content(
        dataset=f"{record.name}@{record.version}",
        split=split,
        frames=len(portion),
        fkeys=manifest.frames["fkey"],
        counts={
            "class": _frames_with_class(portion, groups),
            "camera": Counter(portion.frames["camera"].to_pylist()),
            "scene": Counter(portion.frames["scene"].to_pylist()),
        },
    )
    return find_gaps(
        workspace.catalog,
        content,
        at_least=at_least,
        kinds=("class", "camera", "scene") if scenes else ("class", "camera"),
        at=at,
    )


def _frames_with_class(manifest: Manifest, groups: ClassGroups) -> dict[str, int]:
    """Frames with a pixel of each class, and of each class group of which it has one, by tag."""
    pixels = manifest.frames["class_pixels"]
    shows = {
        tag: pc.greater(pc.list_element(pixels, index), 0)
        for index, tag in enumerate(tags_of(manifest))
    }
    for group, classes in groups.items():
        members = [shows[tag] for tag in classes if tag in shows]
        if members:
            shows[group] = reduce(pc.or_, members)
    return {tag: int(pc.sum(frames).as_py() or 0) for tag, frames in shows.items()}
