"""/v1/statistics, and a dataset's gaps."""

from typing import Annotated, Any

from fastapi import Query, Request, Response
from pydantic import Field

from api.http.asked_frames import AskedFrames
from api.http.dependencies import At, CurrentSession
from api.http.negotiation import figures, row_responses
from api.http.openapi.examples import QUESTION
from api.http.routing import Router
from api.http.rules import READ
from api.schemas.statistics import FacetsRequest
from api.services.statistics.histogram_axes import BINS, EDGES, LOG, TOP, ZERO, edges_of
from api.services.statistics.rows import (
    correlation_rows,
    facet_rows,
    gap_rows,
    histogram_rows,
)
from query.statistics.correlations import Correlation
from query.statistics.facet_report import FacetReport
from query.statistics.gap_report import GapReport
from query.statistics.histogram_report import MOST_BINS, MOST_VALUES, Histogram

router = Router(prefix="/v1", tags=["statistics"], examples={"name": "bikes"})

_BIN = {"car_kind": "range", "car_low": 0.0, "car_high": 249737.5, "car_value": "", "frames": 18}
_FACET_BIN = {
    "tag": "car", "kind": "range", "low": 0.0, "high": 249737.5, "value": "", "of_all": 18,
    "frames": 12,
}  # fmt: skip
_SCORE = {"tag": "bicycle", "name": "Bicycle", "frames": 31, "share": 0.0012, "iou": 0.41}
_GAP = {
    "kind": "class",
    "value": "bicycle",
    "name": "Bicycle",
    "frames": 0,
    "catalog_frames": 212,
    "new_frames": 212,
    "sentence": "no Bicycle in split validation of city@1; 212 frames of the catalog have it",
    "question": '{"ranges": [{"tag": "bicycle", "lowest": 1}], "snapshot": 12}',
    "command": "framesift select --range bicycle=1: --at 12",
}


class HistogramQuery(AskedFrames):
    """The tags, their bins, and the frames that are counted."""

    tag: list[str] = Field(
        min_length=1, max_length=2, description="A tag, or two.", examples=[["car"]]
    )
    bins: int | None = Field(default=None, ge=1, le=MOST_BINS, description=BINS)
    top: int | None = Field(default=None, ge=1, le=MOST_VALUES, description=TOP)
    edges: list[str] = Field(default=[], description=EDGES, examples=[["car=0,1000,100000"]])
    log: list[str] = Field(default=[], description=LOG)
    zero: list[str] = Field(default=[], description=ZERO)

    def bins_of_tags(self) -> dict[str, Any]:
        """The bins, as arguments of api.services.statistics.service."""
        bins = {name: getattr(self, name) for name in ("bins", "top", "log", "zero")}
        return bins | {"edges": edges_of(self.edges)}


@router.get(
    "/statistics/histogram",
    rule=READ.but(work="statistics"),
    response_model=Histogram,
    response_model_exclude_none=True,
    responses=row_responses("bin", _BIN),
)
def get_histogram(
    request: Request,
    response: Response,
    query: Annotated[HistogramQuery, Query()],
    session: CurrentSession,
) -> Histogram | Response:
    """Frames by the values of one tag, or of two at once. The counts add up to the frames."""
    return figures(
        request,
        response,
        lambda: session.statistics.histogram(*query.tag, **query.bins_of_tags(), **query.which()),
        histogram_rows,
    )


@router.post(
    "/statistics/facets",
    rule=READ.but(work="facets"),
    response_model=FacetReport,
    response_model_exclude_none=True,
    responses=row_responses("bin of each facet", _FACET_BIN),
    example={"question": QUESTION, "tags": ["car", "camera"]},
)
def post_facets(
    request: Request, response: Response, body: FacetsRequest, session: CurrentSession
) -> FacetReport | Response:
    """Every tag's histogram under all conditions but its own, and how many frames answer."""
    which = {field: getattr(body, field) for field in ("question", "dataset", "split", "at")}
    return figures(
        request,
        response,
        lambda: session.statistics.facets(*(body.tags or ()), **which),
        facet_rows,
    )


@router.get(
    "/statistics/correlation",
    rule=READ.but(work="statistics"),
    response_model=Correlation,
    responses=row_responses("class", _SCORE),
)
def get_correlation(
    request: Request,
    response: Response,
    session: CurrentSession,
    validation: Annotated[
        str,
        Query(
            description="A validation job, or a training job: its newest validation.",
            examples=["validate-1"],
        ),
    ],
    dataset: Annotated[
        str | None,
        Query(
            description="Whose shares; the training set's by default, the catalog's where that is "
            "not known.",
            examples=["city@1"],
        ),
    ] = None,
    split: Annotated[str | None, Query(description="Of that dataset.")] = None,
    at: At = None,
) -> Correlation | Response:
    """Correlate the classes' shares of the pixels with the IoU that a validation found for each."""
    return figures(
        request,
        response,
        lambda: session.statistics.correlation(validation, dataset=dataset, split=split, at=at),
        correlation_rows,
    )


@router.get(
    "/datasets/{name}/gaps",
    rule=READ.but(work="statistics"),
    response_model=GapReport,
    response_model_exclude_none=True,
    responses=row_responses("gap", _GAP),
)
def get_gaps(
    request: Request,
    response: Response,
    name: str,
    session: CurrentSession,
    split: Annotated[str | None, Query(description="Only this split.")] = None,
    at_least: Annotated[
        int, Query(ge=1, lt=2**63, description="Frames wanted of each class and camera.")
    ] = 1,
    scenes: Annotated[bool, Query(description="Compare scenes, too.")] = False,
    at: At = None,
) -> GapReport | Response:
    """Gaps of a dataset in comparison with the catalog, each with the question that finds it."""
    return figures(
        request,
        response,
        lambda: session.statistics.gaps(name, split=split, at_least=at_least, scenes=scenes, at=at),
        gap_rows,
    )
