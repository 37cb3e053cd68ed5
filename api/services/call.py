"""The caller and the home, which every service is given."""

import getpass
import os
from typing import TYPE_CHECKING

from api.services.accounts.callers import NOBODY_ASKED, Caller
from api.workspace import Workspace

if TYPE_CHECKING:
    from catalog.records.store import RecordStore


class Call:
    """A home, for one caller.

    Attributes:
        whole: The home with every row, for what goes by other rights than rows.
        workspace: The home, with as much of it as the caller may see.
        caller: Who calls; commands on a home may do everything.
        is_command: Whether a command does, on the machine that has the home.
    """

    def __init__(
        self, workspace: Workspace, caller: Caller = NOBODY_ASKED, *, is_command: bool = False
    ) -> None:
        """Open nothing yet.

        Args:
            workspace: The whole home.
            caller: Who calls.
            is_command: Whether a command does: services then write the audit log, which HTTP's
                middleware writes of requests.
        """
        sees_all = caller.sees_all
        self.whole = workspace
        self.workspace = workspace if sees_all else workspace.limited_to(caller.rules, caller.user)
        self.caller = caller
        self.is_command = is_command

    @property
    def records(self) -> "RecordStore":
        """The home's records."""
        return self.workspace.records

    def note(self, what: str, target: str) -> None:
        """Write a command's change into the audit log: the machine's user made it."""
        if not self.is_command:
            return
        from catalog.accounts import audit_log

        try:
            name = getpass.getuser()
        except (KeyError, OSError):
            name = str(os.getuid())
        audit_log.add(self.records, f"command line ({name})", what, target, audit_log.DONE)
