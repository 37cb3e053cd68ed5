"""/v1/datasets: saved selections."""

import json
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Path as InPath
from fastapi import Query, Request, Response
from fastapi.responses import StreamingResponse

from api.http.dependencies import At, CurrentSession
from api.http.negotiation import (
    VARY,
    accepted,
    row_format,
    row_responses,
    rows_answer,
)
from api.http.openapi.examples import EXAMPLE_FKEY, QUESTION
from api.http.pages import CurrentPage, Paging
from api.http.routing import Router
from api.http.rules import READ, WRITE, WRITE_ALL_ROWS
from api.schemas.base import set_fields
from api.schemas.datasets import (
    DatasetAnswer,
    DatasetBody,
    DatasetRemoved,
    DatasetsAnswer,
    DiffAnswer,
)
from api.schemas.new_datasets import DatasetChange, NewDataset, NewExtension, NewReduction, NewSplit
from pipeline.datasets.export_formats import TABLES, TEXTS, ExportFormat

router = Router(prefix="/v1", tags=["datasets"], examples={"name": "bikes"})

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
def post_dataset(
    body: NewDataset,
    session: CurrentSession,
    response: Response,
    at: At = None,
) -> DatasetBody:
    """Save the answer to a question, or a set built of it, as a dataset's new version.

    A user limited to collections chooses from the rows of these; the server puts the user's name
    before the dataset's.
    """
    dataset = session.datasets.create(at=at, **set_fields(body))
    return _with_location(dataset, response)


@router.get("/datasets", rule=READ)
def get_datasets(
    session: CurrentSession,
    page: CurrentPage,
    name: Annotated[str | None, Query(description="Only versions of this dataset.")] = None,
) -> DatasetsAnswer:
    """Versions of datasets, by name and version."""
    datasets = session.datasets.list(name, after=_after(page), limit=page.limit + 1)
    listed, follows = page.page("datasets", datasets, lambda one: (one.name, one.version))
    return DatasetsAnswer(datasets=listed, next=follows)


def _after(page: Paging) -> tuple[str, int] | None:
    """Name and version of the last dataset of the page before."""
    after = page.after("datasets", str, int)
    return None if after is None else (str(after[0]), int(after[1]))


@router.get("/datasets/{name}", rule=READ)
def get_dataset(name: DatasetName, session: CurrentSession) -> DatasetAnswer:
    """A dataset's newest version, or "name@version"."""
    return session.datasets.get(name)


@router.patch(
    "/datasets/{name}", rule=WRITE, example={"description": "night drives, labels checked twice"}
)
def patch_dataset(name: DatasetName, body: DatasetChange, session: CurrentSession) -> DatasetBody:
    """Rename a dataset with all its versions, or describe one version; frames and id stay."""
    return session.datasets.change(name, rename=body.name, description=body.description)


@router.delete("/datasets/{name}", rule=WRITE)
def delete_dataset(name: DatasetName, session: CurrentSession) -> DatasetRemoved:
    """Remove every version of NAME, or NAME@VERSION alone; 409 while a job reads it.

    Jobs keep their results; what is staged stays in the cache until it is evicted.
    """
    return session.datasets.remove(name)


@router.post(
    "/datasets/{name}/splits",
    rule=WRITE.but(idempotency_key="takes"),
    status_code=201,
    example={"split": "train=0.7,validation=0.3", "seed": 1},
)
def post_splits(
    name: DatasetName,
    body: NewSplit,
    session: CurrentSession,
    response: Response,
) -> DatasetBody:
    """Divide a dataset's frames again, as a new version of it."""
    dataset = session.datasets.divide(name, **set_fields(body))
    return _with_location(dataset, response)


@router.post(
    "/datasets/{name}/extensions",
    rule=WRITE.but(idempotency_key="takes"),
    status_code=201,
    example={
        "demands": [{"question": QUESTION, "frames": 50}],
        "split": "train",
    },
)
def post_extension(
    name: DatasetName,
    body: NewExtension,
    session: CurrentSession,
    response: Response,
    at: At = None,
) -> DatasetBody:
    """Add as few frames as close a gap, as a new version; ``report.unmet`` is what stays open."""
    how = set_fields(body)
    dataset = session.datasets.extend(name, *how.pop("demands"), at=at, **how)
    return _with_location(dataset, response)


@router.post(
    "/datasets/{name}/reductions",
    rule=WRITE_ALL_ROWS.but(idempotency_key="takes"),
    status_code=201,
    example={"frames": 2000, "model": "train-bikes-7"},
)
def post_reduction(
    name: DatasetName, body: NewReduction, session: CurrentSession, response: Response
) -> DatasetBody:
    """Keep the most informative frames of a dataset's training split, as a new version of it.

    As few frames as have every class of the split; then those least like what is kept. With a
    model, of twice as many those that are worth most to it. ``report.classes`` says in how many
    frames each class was, and is.
    """
    dataset = session.datasets.reduce(name, **set_fields(body))
    return _with_location(dataset, response)


@router.post("/datasets/{name}/rebuild", rule=WRITE)
def post_rebuild(name: DatasetName, session: CurrentSession) -> DatasetBody:
    """Make a dataset's lost or damaged manifest again from its question, snapshot and seed.

    What was made again has the same id and the same pixels of classes, or nothing is written (422).
    """
    return session.datasets.rebuild(name)


_DIFF = row_responses(
    "frame that differs",
    {"fkey": EXAMPLE_FKEY, "change": "moved", "before": "train", "after": "validation"},
)
_DIFF[200]["model"] = DiffAnswer


@router.get("/datasets/{name}/diff", rule=READ, response_model=None, responses=_DIFF)
def get_diff(
    request: Request,
    name: DatasetName,
    session: CurrentSession,
    other: Annotated[
        str, Query(description="The dataset it is compared with.", examples=["bikes@2"])
    ],
    limit: Annotated[
        int, Query(ge=0, le=1_000_000, description="Frames listed of each kind.")
    ] = 1_000,
) -> Response:
    """Changes from this dataset to the other: frames, splits, distributions."""
    format_ = row_format(request)
    if format_ != "json":
        rows = session.datasets.diff_rows(name, other, limit=limit)
        return rows_answer(format_, rows)
    text = session.datasets.diff_text(name, other, limit=limit)
    return StreamingResponse(text, media_type="application/json", headers=VARY)


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
        }
        | {kind: {"schema": {"type": "string", "format": "binary"}} for kind in TABLES.values()}
        | {
            kind: {"schema": {"type": "string"}, "example": _AS_TEXT[kind]}
            for kind in TEXTS.values()
        },
    },
    406: {"description": "Accept names no format that the server has, and `format` names none."},
}

_ACCEPTED: dict[str, ExportFormat] = {
    "text/csv": "csv",
    "application/x-ndjson": "jsonl",
    TABLES["parquet"]: "parquet",
    TABLES["xlsx"]: "xlsx",
    "text/plain": "files",
    "application/json": "fiftyone",
}
"""Format by what Accept wants where none is asked for; csv where it wants nothing."""

_MEDIA_TYPES = {**TEXTS, **TABLES}


@router.get("/datasets/{name}/export", rule=READ, response_model=None, responses=_EXPORTED)
def get_export(
    request: Request,
    name: DatasetName,
    session: CurrentSession,
    format: Annotated[  # noqa: A002
        ExportFormat | None,
        Query(description="What Accept wants by default: csv, jsonl, parquet, xlsx or files."),
    ] = None,
    split: str | None = None,
    with_labels: Annotated[
        bool, Query(description="With files: the label's path after a tab.")
    ] = False,
) -> Response:
    """The dataset for other programs; fiftyone as one document with both of its files' content."""
    format_ = format or _ACCEPTED[accepted(request, list(_ACCEPTED))]
    chunks = session.datasets.exported(name, format_, split=split, with_labels=with_labels)
    if format_ == "fiftyone":
        return Response(b"".join(chunks), media_type="application/json", headers=VARY)
    return StreamingResponse(chunks, media_type=_MEDIA_TYPES[format_], headers=VARY)


def _with_location(dataset: DatasetBody, response: Response) -> DatasetBody:
    name = quote(f"{dataset.name}@{dataset.version}", safe="@~")
    response.headers["Location"] = f"/v1/datasets/{name}"
    return dataset
