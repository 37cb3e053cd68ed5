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
from typing import TYPE_CHECKING, Literal

from catalog.errors import InvalidInput
from catalog.records.kinds import POLICY_RUNS
from catalog.records.reading import Records
from catalog.values import now

if TYPE_CHECKING:  # reading does without SQLAlchemy
    from sqlalchemy.orm import Session

    from catalog.records.policy_tables import Policy, PolicyRun
    from catalog.records.store import RecordStore

ACTIVE = ("running", "paused")
"""States that a run leaves by itself."""

Wanted = Literal["run", "pause", "kill"]
"""Requests to a run."""


@dataclass
class RunCounts:
    """Files of a run."""

    total: int = 0
    """Those that its condition found."""
    submitted: int = 0
    """Those that were taken up."""
    completed: int = 0
    """Those that are done."""
    failed: int = 0
    """Those whose value or content cannot be used."""
    skipped: int = 0
    """Those that had nothing to give."""


def begin(records: "RecordStore", policy: "Policy") -> "PolicyRun":
    """Record a new run.

    Raises:
        InvalidInput: The policy is running already.
    """
    from catalog.records.policy_tables import PolicyRun

    with records.session() as session:
        if active(session, policy.id) is not None:
            raise InvalidInput(f"policy '{policy.name}' is running already")
        run = PolicyRun(policy_id=policy.id, run_id=uuid.uuid4().hex, state="running")
        session.add(run)
    return run


def active(session: "Session", policy_id: int) -> "PolicyRun | None":
    """The policy's run that has not ended, as it is recorded."""
    from sqlalchemy import select

    from catalog.records.policy_tables import PolicyRun

    return session.scalar(
        select(PolicyRun).where(PolicyRun.policy_id == policy_id, PolicyRun.state.in_(ACTIVE))
    )


def last(records: Records, policy_id: int) -> "PolicyRun | None":
    """A policy's newest run; None before the first."""
    return next(iter(of_policy(records, policy_id, limit=1)), None)


def of_policy(records: Records, policy_id: int, limit: int = 100) -> "Sequence[PolicyRun]":
    """A policy's newest runs, newest first."""
    of_it = "policy_id = :policy"
    return records.select(POLICY_RUNS, of_it, order="id DESC", limit=limit, policy=policy_id)


def recorded(records: Records, run_id: str) -> "PolicyRun | None":
    """The run that clients know by this; None where there is none."""
    rows = records.select(POLICY_RUNS, "run_id = :run", run=run_id)
    return rows[0] if rows else None


def set_job(records: "RecordStore", number: int, job: str) -> None:
    """Keep which job runs it."""
    from catalog.records.policy_tables import PolicyRun

    with records.session() as session:
        session.get_one(PolicyRun, number).job = job


def want(records: "RecordStore", number: int, order: Wanted) -> None:
    """Ask something of a run; it looks between two batches."""
    from catalog.records.policy_tables import PolicyRun

    with records.session() as session:
        session.get_one(PolicyRun, number).wanted = order


def requested_state(records: "RecordStore", number: int) -> str:
    """The state that users ask of a run: "run", "pause" or "kill"."""
    from catalog.records.policy_tables import PolicyRun

    with records.reading() as session:
        return session.get_one(PolicyRun, number).wanted


def update(records: "RecordStore", number: int, state: str, counts: RunCounts) -> str:
    """Keep state and counts of a run under way; what is asked of it."""
    from catalog.records.policy_tables import PolicyRun

    with records.session() as session:
        run = session.get_one(PolicyRun, number)
        run.state = state
        _put(run, counts)
        return run.wanted


def finish(
    records: "RecordStore", number: int, state: str, counts: RunCounts | None, error: str = ""
) -> "PolicyRun":
    """Record how a run ended, if that is not known yet; counts stay as they were when None."""
    from catalog.records.policy_tables import PolicyRun

    with records.session() as session:
        run = session.get_one(PolicyRun, number)
        if run.state in ACTIVE:
            run.state, run.finished, run.error = state, now(), error
            if counts is not None:
                _put(run, counts)
        return run


def _put(run: "PolicyRun", counts: RunCounts) -> None:
    run.total, run.submitted, run.completed = counts.total, counts.submitted, counts.completed
    run.failed, run.skipped = counts.failed, counts.skipped
