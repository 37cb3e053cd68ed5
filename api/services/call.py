"""The caller and the home, which every service is given."""

import getpass
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from api.services.accounts.callers import NOBODY_ASKED, Caller
from api.workspace import Workspace
from catalog.records.reading import Records
from catalog.values import COMMAND, Owner

if TYPE_CHECKING:
    from catalog.records.store import RecordStore
    from pipeline.jobs.queue import JobQueue


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
            is_command: Whether a command does.
        """
        sees_all = caller.sees_all
        self.whole = workspace
        self.workspace = workspace if sees_all else workspace.limited_to(caller.rules, caller.owner)
        self.caller = caller
        self.is_command = is_command

    @property
    def owner(self) -> Owner:
        """The owner of jobs, triggers and webhooks: the caller; of commands the machine's user."""
        return Owner(user_here(), COMMAND) if self.is_command else self.caller.owner

    @property
    def records(self) -> "RecordStore":
        """The home's records."""
        return self.workspace.records

    @property
    def readable_records(self) -> Records:
        """The home's records, to be read only: see Workspace.readable_records."""
        return self.workspace.readable_records

    @property
    def job_queue(self) -> "JobQueue":
        """The home's jobs, submitted by the caller; those of a command by the machine's user.

        A user of a server may have as many as their account says, else as settings say.
        """
        queue, name, owner = self.workspace.job_queue, self.caller.user, self.owner
        if self.is_command or not name:
            return replace(
                queue, user=owner.name, account=owner.account, jobs_each=None, ranks_each=None
            )
        from catalog.accounts.users import quota

        jobs, ranks = quota(self.whole.records, name)
        of_settings = None if self.caller.sees_all else queue.jobs_each
        return replace(
            queue,
            user=owner.name,
            account=owner.account,
            jobs_each=jobs or of_settings,
            ranks_each=ranks or queue.ranks_each,
        )


class Service:
    """What can be done with a noun of a home, as far as a session's caller may.

    Its methods have the names and arguments of the client's (`framesift`), which documents them.
    """

    def __init__(self, session: Call) -> None:
        """Nothing is read yet."""
        self._session, self._workspace = session, session.workspace

    @property
    def _readable_records(self) -> Records:
        return self._session.readable_records

    @property
    def _records(self) -> "RecordStore":
        return self._session.records


def user_here() -> str:
    """The user of this machine whose process this is; the number where it has no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
