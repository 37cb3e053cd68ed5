"""The session of a trigger's owner: what user and token may do when it starts, as they are then."""

from dataclasses import replace
from typing import TYPE_CHECKING

from api.services.accounts.callers import NOBODY_ASKED, Caller
from api.services.automation.triggers import COMMAND
from api.services.session import Session
from catalog.accounts import row_collections, users
from catalog.errors import NotAllowed, NotFound

if TYPE_CHECKING:
    from api.workspace import Workspace
    from catalog.records.automation.tables import Trigger


def session_of(workspace: "Workspace", trigger: "Trigger") -> Session:
    """The services of a home for the owner of a trigger.

    Raises:
        NotAllowed: The owner is no user any more, is disabled, or may not write any more.
    """
    if trigger.account == COMMAND:
        return Session(workspace, is_command=True)
    if not trigger.account:  # a server that does not authenticate
        return Session(workspace, NOBODY_ASKED)
    try:
        user = users.recorded(workspace.records, trigger.owner)
    except NotFound as error:
        raise _refused(trigger, "was removed") from error
    caller = Caller.of(user, trigger.scope, logged_in=False)
    if caller.account != trigger.account:
        raise _refused(trigger, "was removed")
    if user.disabled:
        raise _refused(trigger, "is disabled")
    if not caller.may("write"):
        raise _refused(trigger, "may not write any more")
    if not caller.sees_all:
        caller = replace(caller, rules=row_collections.rules_of(workspace.records, user.name))
    return Session(workspace, caller)


def _refused(trigger: "Trigger", why: str) -> NotAllowed:
    owner = f"owner {trigger.owner}".rstrip()
    return NotAllowed(
        f"trigger {trigger.name}: its {owner} {why}; remove it, and have another user add it"
    )
