"""/v1/datasets: saved selections."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse

from api import bodies
from api.dependencies import At, CurrentWorkspace
from api.new_dataset import (
    NewDataset,
    NewExtension,
    NewSplit,
    class_tags,
    divide_dataset,
    grow_dataset,
    make_dataset,
)
from api.workspace import Workspace
from pipeline.dataset_diff import diff_datasets, diff_to_json
from pipeline.dataset_export import (
    TEXTS,
    ExportFormat,
    export_text,
    fiftyone_metadata,
    fiftyone_samples,
    write_export,
)
from pipeline.manifest import Manifest

router = APIRouter(prefix="/v1", tags=["datasets"])

_CHUNK_BYTES = 1 << 20


@router.post("/datasets", status_code=201)
async def post_dataset(
    wanted: NewDataset, workspace: CurrentWorkspace, at: At = None
) -> dict[str, Any]:
    """Save the answer to a question, or a set built of it, as a dataset's new version."""
    return bodies.of_dataset(await run_in_threadpool(make_dataset, workspace, wanted, at))


@router.get("/datasets")
async def get_datasets(workspace: CurrentWorkspace) -> dict[str, Any]:
    """Every version of every dataset."""
    found = await run_in_threadpool(workspace.records.datasets)
    return {"datasets": [bodies.of_dataset(dataset) for dataset in found]}


@router.get("/datasets/{name}")
async def get_dataset(name: str, workspace: CurrentWorkspace) -> dict[str, Any]:
    """A dataset's newest version, or "name@version"."""
    return bodies.of_dataset(await run_in_threadpool(workspace.records.dataset, name))


@router.post("/datasets/{name}/splits", status_code=201)
async def post_splits(name: str, wanted: NewSplit, workspace: CurrentWorkspace) -> dict[str, Any]:
    """Divide a dataset's frames anew, as a new version of it."""
    return bodies.of_dataset(await run_in_threadpool(divide_dataset, workspace, name, wanted))


@router.post("/datasets/{name}/extensions", status_code=201)
async def post_extension(
    name: str, wanted: NewExtension, workspace: CurrentWorkspace, at: At = None
) -> dict[str, Any]:
    """Add as few frames as close a gap, as a new version; ``report.unmet`` is what stays open."""
    return bodies.of_dataset(await run_in_threadpool(grow_dataset, workspace, name, wanted, at))


@router.get("/datasets/{name}/diff")
async def get_diff(
    name: str,
    workspace: CurrentWorkspace,
    other: Annotated[str, Query(description="The dataset it is compared with.")],
    limit: Annotated[
        int, Query(ge=0, le=1_000_000, description="Frames listed of each kind.")
    ] = 1_000,
) -> dict[str, Any]:
    """What changed from this dataset to the other: frames, splits, distributions."""

    def compare() -> dict[str, Any]:
        find = workspace.records.dataset
        return diff_to_json(diff_datasets(find(name), find(other)), limit)

    return await run_in_threadpool(compare)


@router.get("/datasets/{name}/export", response_model=None)
async def get_export(
    name: str,
    workspace: CurrentWorkspace,
    format: ExportFormat = "csv",  # noqa: A002
    split: str | None = None,
    with_labels: Annotated[
        bool, Query(description="With files: the label's path after a tab.")
    ] = False,
) -> Response | dict[str, Any]:
    """The dataset for other programs; fiftyone as one document with both of its files' content."""
    manifest, tags = await run_in_threadpool(_manifest, workspace, name, split)
    if format == "fiftyone":
        return {
            "metadata": fiftyone_metadata(manifest, tags),
            "samples": await run_in_threadpool(lambda: list(fiftyone_samples(manifest, tags))),
        }
    if format == "parquet":
        return StreamingResponse(
            _parquet(manifest, tags), media_type="application/vnd.apache.parquet"
        )
    lines = export_text(manifest, tags, format, with_labels=with_labels)
    return StreamingResponse(lines, media_type=TEXTS[format])


def _manifest(workspace: Workspace, name: str, split: str | None) -> tuple[Manifest, list[str]]:
    dataset = workspace.records.dataset(name)
    manifest = Manifest.read(Path(dataset.manifest)).split(split)
    return manifest, list(class_tags(workspace, manifest))


def _parquet(manifest: Manifest, tags: list[str]) -> Iterator[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "frames.parquet")
        write_export(manifest, tags, "parquet", path)
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                yield chunk
