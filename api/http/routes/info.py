"""/v1/info: where things are and how much there is."""

from api.http.dependencies import CurrentSession
from api.http.routing import Router
from api.http.rules import READ
from api.schemas.catalog import InfoAnswer

router = Router(prefix="/v1/info", tags=["server"])


@router.get("", rule=READ)
def get_info(session: CurrentSession) -> InfoAnswer:
    """Where things are and how much there is."""
    return session.info()
