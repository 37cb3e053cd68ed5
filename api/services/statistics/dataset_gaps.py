"""Gaps of a dataset: what the catalog has and it has not."""

from collections import Counter
from collections.abc import Mapping

import pyarrow.compute as pc

from api.workspace import Workspace
from catalog.records.datasets import recorded_dataset
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
    """Gaps of a dataset, or one of its splits, against the catalog: classes, cameras, scenes.

    Raises:
        NotFound: There is no such dataset or snapshot.
        UnknownName: It has no such split.
    """
    record = recorded_dataset(workspace.records, dataset)
    whole = read_manifest(workspace.records, record)
    portion = whole.split(split)
    content = Content(
        dataset=f"{record.name}@{record.version}",
        split=split,
        frames=len(portion),
        fkeys=whole.frames["fkey"],
        counts={
            "class": _frames_with_class(portion, workspace.class_names()),
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


def _frames_with_class(manifest: Manifest, class_names: Mapping[str, str]) -> dict[str, int]:
    """Frames with a pixel of each class, by tag."""
    tags = {name: tag for tag, name in class_names.items()}
    pixels = manifest.frames["class_pixels"]
    return {
        tags[name]: int(pc.sum(pc.greater(pc.list_element(pixels, index), 0)).as_py() or 0)
        for index, name in enumerate(manifest.header.classes)
        if name in tags
    }
