"""/v1/label-checks: what is odd about the labels of a scanned source."""

from fastapi import Response

from api.http.dependencies import CurrentSession
from api.http.routes.jobs import BEGUN, begun
from api.http.routing import Router
from api.http.rules import READ_ALL_ROWS
from api.schemas.home_orders import LabelCheck
from api.schemas.jobs import JobBody
from api.schemas.scans import NewLabelCheck

router = Router(prefix="/v1/label-checks", tags=["scans"])


@router.post(
    "",
    # It changes nothing of the catalog; the job that reads counts for its caller.
    rule=READ_ALL_ROWS.but(changes=True, idempotency_key="takes"),
    status_code=202,
    responses=BEGUN,
    example={"source": "a2d2", "labels": 500},
)
def post_label_check(body: NewLabelCheck, session: CurrentSession, response: Response) -> JobBody:
    """Look at a scanned source's labels: a job does, and its `result.json` says what is odd.

    Keys that no class has, classes that no label has, labels that look resized with interpolation
    or of other ids, and the problems of the last scans about pairs and files.
    """
    return begun(session.label_checks.begin(LabelCheck(**dict(body))), response)
