"""What routes ask for, as named types."""

from typing import Annotated

from fastapi import Depends, Request

from api.workspace import Workspace


def _workspace(request: Request) -> Workspace:
    workspace: Workspace = request.app.state.workspace
    return workspace


CurrentWorkspace = Annotated[Workspace, Depends(_workspace)]
"""The home that this server serves."""
