"""The owner of a trigger or a job as its caller: with the rights that the account has by now."""

from dataclasses import replace

from api.services.accounts.callers import Caller
from catalog.accounts import row_collections, users
from catalog.records.store import RecordStore
from catalog.values import Owner


def caller_of(records: RecordStore, owner: Owner, scope: str, of: str, remedy: str) -> Caller:
    """The owner as a caller.

    Args:
        records: All of the home.
        scope: Of the token by which the work was ordered.
        of: What is owned, for the error: "job train-1".
        remedy: What to do, for the error.
    """
    user = users.active(records, owner, of, remedy, scope)
    caller = Caller.of(user, scope, logged_in=False)
    if caller.sees_all:
        return caller
    return replace(caller, rules=row_collections.rules_of(records, user.name))
