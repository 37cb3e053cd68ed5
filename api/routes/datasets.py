"""/v1/datasets: saved selections."""

from typing import Any

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool

from api import bodies
from api.dependencies import At, CurrentWorkspace
from api.new_dataset import NewDataset, make_dataset

router = APIRouter(prefix="/v1", tags=["datasets"])


@router.post("/datasets", status_code=201)
async def post_dataset(
    wanted: NewDataset, workspace: CurrentWorkspace, at: At = None
) -> dict[str, Any]:
    """Save the answer to a question as a dataset's new version."""
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
