"""Policies: kept, found, changed and removed."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from catalog.errors import InvalidInput
from catalog.policies import runs as policy_runs
from catalog.records.expected_version import ExpectedVersion, to_change
from catalog.records.kinds import POLICIES
from catalog.records.named import Named
from catalog.values import now

if TYPE_CHECKING:  # reading does without SQLAlchemy
    from sqlalchemy.orm import Session

    from catalog.records.policy_tables import Policy
    from catalog.records.store import RecordStore

_POLICIES = Named(
    "policy",
    POLICIES,
    "framesift policy list, GET /v1/policies and GET /policyengine/v1/policies list them",
    "change it by PUT, or delete it first",
)
add, listed, recorded = _POLICIES.add, _POLICIES.listed, _POLICIES.recorded

none_named = _POLICIES.missing
"""The error of a policy that is not there, or not shown: nobody can tell which."""


def change(
    records: "RecordStore",
    name: str,
    by: str,
    changes: Mapping[str, object],
    expected: ExpectedVersion | None = None,
) -> "Policy":
    """Give a policy other values.

    Args:
        changes: New values by column of Policy.
    """
    with records.session() as session:
        policy = to_change("policy", name, expected, lambda: _POLICIES.get(session, name))
        _check_idle(session, policy)
        for column, value in changes.items():
            setattr(policy, column, value)
        policy.updated_by, policy.updated = by, now()
        return policy


def remove(records: "RecordStore", name: str, expected: ExpectedVersion | None = None) -> None:
    """Forget a policy and its runs; the tags that it set stay."""
    with records.session() as session:
        policy = to_change("policy", name, expected, lambda: _POLICIES.get(session, name))
        _check_idle(session, policy)
        session.delete(policy)


def _check_idle(session: "Session", policy: "Policy") -> None:
    if policy_runs.active(session, policy.id) is not None:
        raise InvalidInput(
            f"policy '{policy.name}' is running: wait for its end, or kill it, and ask again"
        )
