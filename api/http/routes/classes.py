"""/v1/classes: what the labels hold."""

from dataclasses import asdict
from typing import Annotated

from fastapi import Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, Field

from api.http.asked_frames import AskedFrames
from api.http.dependencies import CurrentWorkspace
from api.http.negotiation import VARY, row_format, row_responses, rows_answer
from api.http.routing import Router
from api.http.rules import READ
from api.services.statistics_rows import class_rows
from api.workspace import Workspace
from catalog.frames.frames import class_shares
from query.statistics.class_report import ClassGroup, ClassStatistics, Grouping
from query.statistics.class_statistics import class_report

router = Router(prefix="/v1", tags=["classes"])

_CLASS = {
    "group": "front_center",
    "tag": "bicycle",
    "name": "Bicycle",
    "frames": 5,
    "pixels": 80267,
    "share": 0.00192,
    "share_where_present": 0.00692,
    "presence": 0.278,
}


class ClassesQuery(AskedFrames):
    """Which frames, and what of them."""

    by: Grouping | None = Field(default=None, description="Also for each camera or scene.")
    quantiles: bool = Field(
        default=False, description="Also quantiles of pixels and share where the class is present."
    )


class ClassesAnswer(BaseModel):
    """Classes in class order. All but `classes` only where something else than all was asked."""

    classes: tuple[ClassStatistics, ...]
    snapshot: int | None = Field(default=None, description="The catalog snapshot.", examples=[12])
    frames: int | None = Field(default=None, description="Frames they are of.", examples=[884])
    pixels: int | None = Field(default=None, description="Their pixels.")
    by: Grouping | None = Field(default=None, description="What the groups are.")
    groups: tuple[ClassGroup, ...] | None = Field(default=None, description="By name.")


@router.get(
    "/classes",
    rule=READ.but(work="statistics"),
    response_model=ClassesAnswer,
    response_model_exclude_none=True,
    responses=row_responses("class", _CLASS),
)
async def get_classes(
    request: Request,
    response: Response,
    asked: Annotated[ClassesQuery, Query()],
    workspace: CurrentWorkspace,
) -> ClassesAnswer | Response:
    """Frames and pixel share (0 to 1) of every class."""
    format_ = row_format(request)
    found = await run_in_threadpool(_classes, workspace, asked)
    if format_ != "json":
        groups = {group.value or "": group for group in found.groups or ()}
        return rows_answer(format_, class_rows(found.classes, groups))
    response.headers.update(VARY)
    return found


def _classes(workspace: Workspace, asked: ClassesQuery) -> ClassesAnswer:
    names = workspace.class_names()
    if asked.is_of_all and asked.by is None and not asked.quantiles:
        shares = class_shares(workspace.catalog, names, asked.at)
        return ClassesAnswer(classes=tuple(ClassStatistics(**asdict(share)) for share in shares))
    report = class_report(
        workspace.catalog,
        names,
        asked.frames(workspace),
        by=asked.by,
        quantiles=asked.quantiles,
        timeout_s=workspace.settings.query_timeout_s,
    )
    return ClassesAnswer(**report.model_dump())
