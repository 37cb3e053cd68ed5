"""/v1/sql: what becomes of a statement."""

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ConfigDict, Field

from api.dependencies import At, CurrentWorkspace
from query.explain import explain

router = APIRouter(prefix="/v1/sql", tags=["SQL"])


class Statement(BaseModel):
    """A statement in Db2's SQL."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"statement": "select count(*) from t_car"}}
    )

    statement: str = Field(description="One SELECT.")


@router.post("/explain")
async def post_explain(
    body: Statement, workspace: CurrentWorkspace, at: At = None
) -> dict[str, Any]:
    """DuckDB's SQL for a statement, the tables it reads, and an estimate; it is not run."""
    found = await run_in_threadpool(
        explain, workspace.catalog, body.statement, at, workspace.settings.query_timeout_s
    )
    return asdict(found)
