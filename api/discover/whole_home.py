"""The home itself, for routes that decide by themselves what of it a caller is shown."""

from typing import Annotated

from fastapi import Depends, Request

from api.workspace import Workspace


def _whole(request: Request) -> Workspace:
    workspace: Workspace = request.app.state.workspace
    return workspace


WholeHome = Annotated[Workspace, Depends(_whole)]
"""The home with every row, whoever asks."""
