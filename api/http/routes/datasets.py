"""/v1/datasets: saved selections."""

import json
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Path as InPath
from fastapi import Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse

from api.http.dependencies import At, CurrentCaller, CurrentWorkspace
from api.http.negotiation import (
    VARY,
    accepted,
    row_format,
    row_responses,
    rows_answer,
)
from api.http.openapi.examples import EXAMPLE_FKEY, QUESTION
from api.http.pages import CurrentPage
from api.http.routing import Router
from api.http.rules import READ, WRITE
from api.schemas.datasets import (
    DatasetBody,
    DatasetsAnswer,
    DiffAnswer,
    NewDataset,
    NewExtension,
    NewSplit,
)
from api.services.new_dataset import (
    class_tags,
    divide_dataset,
    grow_dataset,
    make_dataset,
)
from api.services.rebuild_dataset import rebuild_dataset
from api.workspace import Workspace
from catalog.records.tables import Dataset
from pipeline.datasets.diff import (
    DatasetDiff,
    diff_datasets,
    diff_to_json,
    diff_to_rows,
)
from pipeline.datasets.export import (
    export_text,
    fiftyone_metadata,
    fiftyone_samples,
    write_export,
)
from pipeline.datasets.export_formats import TEXTS, ExportFormat
from pipeline.manifest import Manifest
from pipeline.manifest_store import read_manifest

router = Router(prefix="/v1", tags=["datasets"], examples={"name": "bikes"})

_CHUNK_BYTES = 1 << 20

DatasetName = Annotated[str, InPath(description="NAME, or NAME@VERSION.", examples=["bikes@1"])]


@router.post(
    "/datasets",
    rule=WRITE.but(idempotency_key="takes"),
    status_code=201,
    example={
        "name": "bikes",
        "question": QUESTION,
        "split": "train=0.8,validation=0.2",
    },
)
async def post_dataset(
    wanted: NewDataset,
    workspace: CurrentWorkspace,
    caller: CurrentCaller,
    response: Response,
    at: At = None,
) -> DatasetBody:
    """Save the answer to a question, or a set built of it, as a dataset's new version.

    Who sees rows of collections only chooses from those; their names begin with the user's.
    """
    made = await run_in_threadpool(make_dataset, workspace, wanted, at, caller.user)
    return _made(workspace, made, response)


@router.get("/datasets", rule=READ)
async def get_datasets(
    workspace: CurrentWorkspace,
    page: CurrentPage,
    name: Annotated[str | None, Query(description="Only versions of this dataset.")] = None,
) -> DatasetsAnswer:
    """Versions of datasets, by name and version."""
    found = await run_in_threadpool(workspace.records.datasets, name)
    shown, follows = page.page_of_all(
        "datasets", found, lambda dataset: (dataset.name, dataset.version), str, int
    )
    return DatasetsAnswer(
        datasets=[DatasetBody.of(dataset, workspace.place) for dataset in shown], next=follows
    )


@router.get("/datasets/{name}", rule=READ)
async def get_dataset(name: DatasetName, workspace: CurrentWorkspace) -> DatasetBody:
    """A dataset's newest version, or "name@version"."""
    return DatasetBody.of(await run_in_threadpool(workspace.records.dataset, name), workspace.place)


@router.post(
    "/datasets/{name}/splits",
    rule=WRITE.but(idempotency_key="takes"),
    status_code=201,
    example={"split": "train=0.7,validation=0.3", "seed": 1},
)
async def post_splits(
    name: DatasetName,
    wanted: NewSplit,
    workspace: CurrentWorkspace,
    caller: CurrentCaller,
    response: Response,
) -> DatasetBody:
    """Divide a dataset's frames anew, as a new version of it."""
    made = await run_in_threadpool(divide_dataset, workspace, name, wanted, caller.user)
    return _made(workspace, made, response)


@router.post(
    "/datasets/{name}/extensions",
    rule=WRITE.but(idempotency_key="takes"),
    status_code=201,
    example={
        "demands": [{"question": QUESTION, "frames": 50}],
        "split": "train",
    },
)
async def post_extension(
    name: DatasetName,
    wanted: NewExtension,
    workspace: CurrentWorkspace,
    caller: CurrentCaller,
    response: Response,
    at: At = None,
) -> DatasetBody:
    """Add as few frames as close a gap, as a new version; ``report.unmet`` is what stays open."""
    made = await run_in_threadpool(grow_dataset, workspace, name, wanted, at, caller.user)
    return _made(workspace, made, response)


@router.post("/datasets/{name}/rebuild", rule=WRITE)
async def post_rebuild(name: DatasetName, workspace: CurrentWorkspace) -> DatasetBody:
    """Make a dataset's lost or damaged manifest again from its question, snapshot and seed.

    What was made again has the same id and the same pixels of classes, or nothing is written (422).
    """
    return DatasetBody.of(
        await run_in_threadpool(rebuild_dataset, workspace, name), workspace.place
    )


_DIFF = row_responses(
    "frame that differs",
    {"fkey": EXAMPLE_FKEY, "change": "moved", "before": "train", "after": "validation"},
)
_DIFF[200]["model"] = DiffAnswer


@router.get("/datasets/{name}/diff", rule=READ, response_model=None, responses=_DIFF)
async def get_diff(
    request: Request,
    response: Response,
    name: DatasetName,
    workspace: CurrentWorkspace,
    other: Annotated[
        str, Query(description="The dataset it is compared with.", examples=["bikes@2"])
    ],
    limit: Annotated[
        int, Query(ge=0, le=1_000_000, description="Frames listed of each kind.")
    ] = 1_000,
) -> Response | dict[str, Any]:
    """What changed from this dataset to the other: frames, splits, distributions."""
    format_ = row_format(request)

    def compare() -> DatasetDiff:
        find = workspace.records.dataset
        return diff_datasets(workspace.records, find(name), find(other))

    found = await run_in_threadpool(compare)
    if format_ != "json":
        return rows_answer(format_, await run_in_threadpool(diff_to_rows, found, limit))
    response.headers.update(VARY)
    return await run_in_threadpool(diff_to_json, found, limit)


_LISTED = {
    "fkey": EXAMPLE_FKEY,
    "split": "train",
    "scene": "20260311_130314",
    "image": "/data/x.png",
}
_AS_TEXT = {
    "text/csv; charset=utf-8": f"{','.join(_LISTED)}\n{','.join(_LISTED.values())}\n",
    "application/x-ndjson": f"{json.dumps(_LISTED)}\n",
    "text/plain; charset=utf-8": f"{_LISTED['image']}\n",
}
_EXPORTED: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The dataset in the format.",
        "content": {
            "application/json": {
                "schema": {"type": "object"},
                "example": {"metadata": {"name": "bikes@1"}, "samples": []},
            },
            "application/vnd.apache.parquet": {"schema": {"type": "string", "format": "binary"}},
        }
        | {
            kind: {"schema": {"type": "string"}, "example": _AS_TEXT[kind]}
            for kind in TEXTS.values()
        },
    },
    406: {"description": "Accept wants no format that there is, and none is asked for."},
}

_ACCEPTED: dict[str, ExportFormat] = {
    "text/csv": "csv",
    "application/x-ndjson": "jsonl",
    "application/vnd.apache.parquet": "parquet",
    "text/plain": "files",
    "application/json": "fiftyone",
}
"""Format by what Accept wants where none is asked for; csv where it wants nothing."""


@router.get("/datasets/{name}/export", rule=READ, response_model=None, responses=_EXPORTED)
async def get_export(
    request: Request,
    response: Response,
    name: DatasetName,
    workspace: CurrentWorkspace,
    format: Annotated[  # noqa: A002
        ExportFormat | None,
        Query(description="What Accept wants by default: csv, jsonl, parquet or files."),
    ] = None,
    split: str | None = None,
    with_labels: Annotated[
        bool, Query(description="With files: the label's path after a tab.")
    ] = False,
) -> Response | dict[str, Any]:
    """The dataset for other programs; fiftyone as one document with both of its files' content."""
    format_ = format or _ACCEPTED[accepted(request, list(_ACCEPTED))]
    response.headers.update(VARY)
    manifest, tags = await run_in_threadpool(_manifest, workspace, name, split)
    if format_ == "fiftyone":
        return {
            "metadata": fiftyone_metadata(manifest, tags),
            "samples": await run_in_threadpool(lambda: list(fiftyone_samples(manifest, tags))),
        }
    if format_ == "parquet":
        rows = _parquet(manifest, tags)
        return StreamingResponse(rows, media_type="application/vnd.apache.parquet", headers=VARY)
    lines = export_text(manifest, tags, format_, with_labels=with_labels)
    return StreamingResponse(lines, media_type=TEXTS[format_], headers=VARY)


def _made(workspace: Workspace, dataset: Dataset, response: Response) -> DatasetBody:
    place = quote(f"{dataset.name}@{dataset.version}", safe="@~")
    response.headers["Location"] = f"/v1/datasets/{place}"
    return DatasetBody.of(dataset, workspace.place)


def _manifest(workspace: Workspace, name: str, split: str | None) -> tuple[Manifest, list[str]]:
    dataset = workspace.records.dataset(name)
    manifest = read_manifest(workspace.records, dataset).split(split)
    tags = list(class_tags(workspace, manifest))
    if workspace.is_limited:
        roots = {source: _told(source, root) for source, root in manifest.header.roots.items()}
        manifest = Manifest(replace(manifest.header, roots=roots), manifest.frames)
    return manifest, tags


def _told(source: str, root: str) -> str:
    """A source's root as who sees some rows only is told it: its name for a folder."""
    return root if "://" in root else source


def _parquet(manifest: Manifest, tags: list[str]) -> Iterator[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "frames.parquet")
        write_export(manifest, tags, "parquet", path)
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                yield chunk
