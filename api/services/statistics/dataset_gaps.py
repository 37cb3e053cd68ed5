"""Gaps of a dataset: what the catalog has and it has not."""

from collections import Counter

import pyarrow.compute as pc

from api.workspace import Workspace
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
    content = Content(
        dataset=f"{record.name}@{record.version}",
        split=split,
        frames=len(portion),
        fkeys=manifest.frames["fkey"],
        counts={
            "class": _frames_with_class(portion),
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


def _frames_with_class(manifest: Manifest) -> dict[str, int]:
    """Frames with a pixel of each class, by tag."""
    pixels = manifest.frames["class_pixels"]
    return {
        tag: int(pc.sum(pc.greater(pc.list_element(pixels, index), 0)).as_py() or 0)
        for index, tag in enumerate(tags_of(manifest))
    }
