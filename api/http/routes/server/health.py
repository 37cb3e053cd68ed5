"""/healthz and /readyz."""

from fastapi import Request, Response

from api.http.errors import problem
from api.http.routing import Router
from api.http.rules import OPEN, Api
from api.workspace import Workspace

router = Router(api=Api.OTHER, tags=["health"])


@router.get(
    "/healthz",
    rule=OPEN.but(work="health"),
    responses={200: {"content": {"application/json": {"example": {"status": "ok"}}}}},
)
async def healthz() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@router.get(
    "/readyz",
    rule=OPEN.but(work="ready"),
    response_model=dict[str, object],
    responses={
        200: {"content": {"application/json": {"example": {"status": "ready", "snapshot": 3}}}},
        503: {
            "description": "The server is stopping, and is to be sent nothing more; or it has just "
            "started, and is loading the newest snapshot into memory."
        },
    },
)
def readyz(request: Request) -> dict[str, object] | Response:
    """The catalog answers; its newest snapshot."""
    if request.app.state.stopping.begun:
        return problem(503, "Stopping", "the server is stopping: ask another one, or later")
    workspace: Workspace = request.app.state.workspace
    catalog = workspace.whole_catalog  # the process is asked, whatever its caller may see
    snapshot = catalog.snapshot()  # which begins to load it
    return {"status": "ready", "snapshot": snapshot} if catalog.memory.tried else _loading(snapshot)


def _loading(snapshot: int) -> Response:
    detail = (
        f"snapshot {snapshot} is being loaded into memory; until then answers are slow: ask again "
        "in a second"
    )
    return problem(503, "Loading", detail, {"Retry-After": "1"})
