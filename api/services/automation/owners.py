"""The session of a trigger's owner: what user and token may do when it starts, as they are then."""

from typing import TYPE_CHECKING

from api.services.accounts.callers import NOBODY_ASKED
from api.services.accounts.owners import caller_of
from api.services.session import Session
from catalog.values import COMMAND, Owner

if TYPE_CHECKING:
    from api.workspace import Workspace
    from catalog.records.automation.tables import Trigger


def session_of(workspace: "Workspace", trigger: "Trigger") -> Session:
    """The services of a home for the owner of a trigger."""
    if trigger.account == COMMAND:
        return Session(workspace, is_command=True)
    if not trigger.account:  # a server that does not authenticate
        return Session(workspace, NOBODY_ASKED)
    caller = caller_of(
        workspace.records,
        Owner(trigger.owner, trigger.account),
        trigger.scope,
        f"trigger {trigger.name}",
        "remove it, and have another user add it",
    )
    return Session(workspace, caller)
