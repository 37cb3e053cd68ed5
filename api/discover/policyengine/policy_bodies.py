"""Policies and their runs as Spectrum Discover shows them."""

import json
from datetime import datetime
from typing import Any

from catalog.policies.tables import Policy, PolicyRun

NEVER = "never run"
"""Status of a policy that has not run yet."""


def of_policy(policy: Policy, run: PolicyRun | None) -> dict[str, Any]:
    """A policy with its last run; ``execution_info`` is JSON in a string."""
    return {
        "pol_id": policy.name,
        "action_id": policy.action,
        "action_params": policy.parameters,
        "schedule": policy.schedule,
        "pol_filter": policy.condition,
        "pol_state": policy.state,
        "pol_status": NEVER if run is None else run.state,
        "explicit": policy.explicit,
        "collections": policy.collections,
        "execution_info": json.dumps({} if run is None else of_run(run)),
        "policy_owner": policy.owner,
        "last_updated_by": policy.updated_by,
        "last_updated": _time(policy.updated),
    }


def of_run(run: PolicyRun) -> dict[str, Any]:
    """A run; with end_time once it has ended, and error where it failed."""
    return {
        "start_time": _time(run.started),
        "total_count": run.total,
        "submitted_count": run.submitted,
        "failed_count": run.failed,
        "completed_count": run.completed,
        "skipped_count": run.skipped,
        "run_id": run.run_id,
        **_end(run),
    }


def of_status(run: PolicyRun | None) -> dict[str, Any]:
    """The answer of `/status`: of a policy that never ran the status alone."""
    if run is None:
        return {"status": NEVER}
    return {
        "status": run.state,
        "total_count": run.total,
        "completed_count": run.completed,
        "failed_count": run.failed,
        "submitted_count": run.submitted,
        "start_time": _time(run.started),
        **_end(run),
    }


def _end(run: PolicyRun) -> dict[str, Any]:
    ended = {} if run.finished is None else {"end_time": _time(run.finished)}
    return {**ended, "error": run.error} if run.error else ended


def _time(time: datetime) -> str:
    """A record's time as the product writes it: 2020-03-27_11:12:10, UTC."""
    return f"{time:%Y-%m-%d_%H:%M:%S}"
