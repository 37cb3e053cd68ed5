"""Runs of policies: what each has done so far, and what is asked of it.

running     at work, or about to be
paused      waits between two batches of files
complete    through with every file that its condition found
killed      ended on request, between two batches
failed      ended by an error
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import select
from sqlalchemy.orm import Session

from catalog.errors import InvalidInput
from catalog.records.policy_tables import Policy, PolicyRun
from catalog.records.store import RecordStore
from catalog.records.tables import now

ACTIVE = ("running", "paused")
"""States that a run leaves by itself."""

Wanted = Literal["run", "pause", "kill"]
"""Requests to a run."""


@dataclass
class RunCounts:
    """Files of a run.

    Attributes:
        total: Those that its condition found.
        submitted: Those that were taken up.
        completed: Those that are done.
        failed: Those whose value or content cannot be used.
        skipped: Those that had nothing to give.
    """

    total: int = 0
    submitted: int = 0
    completed: int = 0
    failed: int = 0
    skipped: int = 0


def begin(records: RecordStore, policy: Policy) -> PolicyRun:
    """Record a new run.

    Raises:
        InvalidInput: The policy is running already.
    """
    with records.session() as session:
        if active(session, policy.id) is not None:
            raise InvalidInput(f"policy '{policy.name}' is running already")
        run = PolicyRun(policy_id=policy.id, run_id=uuid.uuid4().hex, state="running")
        session.add(run)
    return run


def active(session: Session, policy_id: int) -> PolicyRun | None:
    """The policy's run that has not ended, as it is recorded."""
    return session.scalar(
        select(PolicyRun).where(PolicyRun.policy_id == policy_id, PolicyRun.state.in_(ACTIVE))
    )


def last(records: RecordStore, policy_id: int) -> PolicyRun | None:
    """A policy's newest run; None before the first."""
    return next(iter(of_policy(records, policy_id, limit=1)), None)


def of_policy(records: RecordStore, policy_id: int, limit: int = 100) -> Sequence[PolicyRun]:
    """A policy's newest runs, newest first."""
    query = select(PolicyRun).where(PolicyRun.policy_id == policy_id)
    with records.reading() as session:
        return session.scalars(query.order_by(PolicyRun.id.desc()).limit(limit)).all()


def recorded(records: RecordStore, run_id: str) -> PolicyRun | None:
    """The run that clients know by this; None where there is none."""
    with records.reading() as session:
        return session.scalar(select(PolicyRun).where(PolicyRun.run_id == run_id))


def set_job(records: RecordStore, number: int, job: str) -> None:
    """Keep which job runs it."""
    with records.session() as session:
        session.get_one(PolicyRun, number).job = job


def want(records: RecordStore, number: int, order: Wanted) -> None:
    """Ask something of a run; it looks between two batches."""
    with records.session() as session:
        session.get_one(PolicyRun, number).wanted = order


def requested_state(records: RecordStore, number: int) -> str:
    """The state that users ask of a run: "run", "pause" or "kill"."""
    with records.reading() as session:
        return session.get_one(PolicyRun, number).wanted


def update(records: RecordStore, number: int, state: str, counts: RunCounts) -> str:
    """Keep state and counts of a run under way; what is asked of it."""
    with records.session() as session:
        run = session.get_one(PolicyRun, number)
        run.state = state
        _put(run, counts)
        return run.wanted


def finish(
    records: RecordStore, number: int, state: str, counts: RunCounts | None, error: str = ""
) -> PolicyRun:
    """Record how a run ended, if that is not known yet; counts stay as they were when None."""
    with records.session() as session:
        run = session.get_one(PolicyRun, number)
        if run.state in ACTIVE:
            run.state, run.finished, run.error = state, now(), error
            if counts is not None:
                _put(run, counts)
        return run


def _put(run: PolicyRun, counts: RunCounts) -> None:
    run.total, run.submitted, run.completed = counts.total, counts.submitted, counts.completed
    run.failed, run.skipped = counts.failed, counts.skipped
