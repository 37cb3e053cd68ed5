"""/v1/classes: what the labels hold."""

from typing import Annotated

import pyarrow as pa
from fastapi import Query, Request, Response
from pydantic import Field

from api.http.asked_frames import AskedFrames
from api.http.dependencies import CurrentSession
from api.http.negotiation import figures, row_responses
from api.http.routing import Router
from api.http.rules import READ
from api.services.statistics.rows import class_rows
from query.statistics.class_report import ClassesAnswer, Grouping

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
    """The frames to count, groups and quantiles."""

    by: Grouping | None = Field(default=None, description="Also for each camera or scene.")
    quantiles: bool = Field(
        default=False, description="Also quantiles of pixels and share where the class is present."
    )


@router.get(
    "/classes",
    rule=READ.but(work="statistics"),
    response_model=ClassesAnswer,
    response_model_exclude_none=True,
    responses=row_responses("class", _CLASS),
)
def get_classes(
    request: Request,
    response: Response,
    query: Annotated[ClassesQuery, Query()],
    session: CurrentSession,
) -> ClassesAnswer | Response:
    """Frames and pixel share (0 to 1) of every class."""

    def classes() -> ClassesAnswer:
        return session.statistics.classes(by=query.by, quantiles=query.quantiles, **query.which())

    def rows(report: ClassesAnswer) -> pa.Table:
        groups = {group.value or "": group for group in report.groups or ()}
        return class_rows(report.classes, groups)

    return figures(request, response, classes, rows)
