"""Options of several commands, and a home for those that ask no server."""

from typing import TYPE_CHECKING, Annotated

import typer

from api.cli import destination

if TYPE_CHECKING:
    from api.workspace import Workspace


AtOption = Annotated[
    int | None, typer.Option(help="Number of the catalog snapshot to ask; else the newest.")
]


def open_workspace() -> "Workspace":
    """The home that the environment names (FRAMESIFT_HOME)."""
    return destination.home()


DetachFlag = Annotated[
    bool,
    typer.Option("--detach", help="Return once it is submitted; framesift jobs wait follows it."),
]
