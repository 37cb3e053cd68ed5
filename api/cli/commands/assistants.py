"""framesift mcp."""

import asyncio
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from api.cli.commands.common import open_workspace
from catalog.errors import InvalidInput

if TYPE_CHECKING:
    from api.mcp.answers import Desk


def mcp() -> None:
    """Answer an assistant on standard input and output (MCP); nothing is changed.

    For a program that starts this itself. A server answers assistants at /mcp.
    """
    if find_spec("mcp") is None:
        raise InvalidInput("framesift mcp: needs the extra mcp: install framesift[mcp]")
    from api.mcp.answers import Desk
    from api.mcp.tools import server_of
    from api.services.session import Session

    desk = Desk(Session(open_workspace()))

    async def desk_of(_: Any) -> "Desk":
        return desk

    asyncio.run(server_of(desk_of).run_stdio_async())
