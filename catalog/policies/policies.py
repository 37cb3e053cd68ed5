"""Policies: kept, found, changed and removed."""

from collections.abc import Mapping

from sqlalchemy import select
from sqlalchemy.orm import Session

from catalog.errors import AlreadyExists, InvalidInput, NotFound
from catalog.policies import runs as policy_runs
from catalog.records.expected_version import ExpectedVersion, to_change
from catalog.records.policy_tables import Policy
from catalog.records.store import RecordStore
from catalog.records.tables import now
from catalog.text.account_name import check_name, is_name

_LISTED = "framesift policy list, GET /v1/policies and GET /policyengine/v1/policies list them"


def add(records: RecordStore, policy: Policy) -> Policy:
    """Keep a new policy.

    Raises:
        AlreadyExists: Its name is taken.
    """
    check_name("policy", policy.name)
    with records.session() as session:
        if session.scalar(select(Policy.id).where(Policy.name == policy.name)) is not None:
            raise AlreadyExists("policy", policy.name, "change it by PUT, or delete it first")
        session.add(policy)
    return policy


def listed(records: RecordStore) -> list[Policy]:
    """Every policy, by name."""
    with records.reading() as session:
        return list(session.scalars(select(Policy).order_by(Policy.name)))


def recorded(records: RecordStore, name: str) -> Policy:
    """The policy of that name."""
    with records.reading() as session:
        return _get(session, name)


def none_named(name: str) -> NotFound:
    """The error of a policy that is not there, or not shown: nobody can tell which."""
    return NotFound("policy", name[:140], _LISTED)


def change(
    records: RecordStore,
    name: str,
    by: str,
    changes: Mapping[str, object],
    expected: ExpectedVersion | None = None,
) -> Policy:
    """Give a policy other values.

    Args:
        changes: New values by column of Policy.
    """
    with records.session() as session:
        policy = to_change("policy", name, expected, lambda: _get(session, name))
        _check_idle(session, policy)
        for column, value in changes.items():
            setattr(policy, column, value)
        policy.updated_by, policy.updated = by, now()
        return policy


def remove(records: RecordStore, name: str, expected: ExpectedVersion | None = None) -> None:
    """Forget a policy and its runs; the tags that it set stay."""
    with records.session() as session:
        policy = to_change("policy", name, expected, lambda: _get(session, name))
        _check_idle(session, policy)
        session.delete(policy)


def _check_idle(session: Session, policy: Policy) -> None:
    if policy_runs.active(session, policy.id) is not None:
        raise InvalidInput(
            f"policy '{policy.name}' is running: wait for its end, or kill it, and ask again"
        )


def _get(session: Session, name: str) -> Policy:
    query = select(Policy).where(Policy.name == name)
    policy = session.scalar(query) if is_name(name) else None
    if policy is None:
        raise none_named(name)
    return policy
