"""The services of a home for one caller: what HTTP, Discover's dialect, MCP and commands call."""

from functools import cached_property
from typing import TYPE_CHECKING

from api.services.callers import NOBODY_ASKED, Caller
from api.workspace import Workspace

if TYPE_CHECKING:
    from api.services.tags import Tags


class Session:
    """The services of a home, for one caller; each is imported when it is first used.

    Attributes:
        workspace: The home, with as much of it as the caller may see.
        caller: Who calls; commands on a home may do everything.
    """

    def __init__(self, workspace: Workspace, caller: Caller = NOBODY_ASKED) -> None:
        """Open nothing yet.

        Args:
            workspace: The whole home.
            caller: Who calls.
        """
        sees_all = caller.sees_all
        self.workspace = workspace if sees_all else workspace.limited_to(caller.rules, caller.user)
        self.caller = caller

    @cached_property
    def tags(self) -> "Tags":
        """Tags and tag families."""
        from api.services.tags import Tags

        return Tags(self.workspace)
