"""/v1/extractions: tags read from the files of a source's frames, by extractors."""

from fastapi import Response

from api.http.dependencies import CurrentSession
from api.http.routes.jobs import BEGUN, begun
from api.http.routing import Router
from api.http.rules import WRITE_ALL_ROWS
from api.schemas.home_orders import Extraction
from api.schemas.jobs import JobBody
from api.schemas.tags import NewExtraction

router = Router(prefix="/v1/extractions", tags=["tags"])


@router.post(
    "",
    rule=WRITE_ALL_ROWS.but(idempotency_key="takes"),
    status_code=202,
    responses=BEGUN,
    example={"source": "a2d2", "extractors": ["image"]},
)
def post_extraction(body: NewExtraction, session: CurrentSession, response: Response) -> JobBody:
    """Read tags from the files of every catalogued frame, only new and changed ones: a job does."""
    order = Extraction(**dict(body))
    return begun(session.extractions.begin(order), response)
