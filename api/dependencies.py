"""What routes ask for, as named types."""

from typing import Annotated

from fastapi import Depends, Query, Request

from api.workspace import Workspace


def _workspace(request: Request) -> Workspace:
    workspace: Workspace = request.app.state.workspace
    return workspace


CurrentWorkspace = Annotated[Workspace, Depends(_workspace)]
"""The home that this server serves."""

At = Annotated[
    int | None,
    Query(ge=1, lt=2**63, description="Number of the catalog snapshot to ask; else the newest."),
]
"""Which state of the catalog is asked."""
