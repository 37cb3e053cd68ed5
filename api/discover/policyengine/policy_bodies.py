"""Policies and their runs as Spectrum Discover shows them."""

import json
from typing import Any

from api.discover.replies import product_time
from api.schemas.policies import PolicyBody, RunBody
from pipeline.policies.schedule import NOW

NEVER = "never run"
"""Status of a policy that has not run yet."""


def of_policy(policy: PolicyBody) -> dict[str, Any]:
    """A policy with its last run; ``execution_info`` is JSON in a string."""
    run = policy.last_run
    return {
        "pol_id": policy.name,
        "action_id": policy.action,
        "action_params": policy.parameters,
        "schedule": NOW if policy.schedule is None else policy.schedule,
        "pol_filter": policy.condition,
        "pol_state": policy.state,
        "pol_status": NEVER if run is None else run.state,
        "explicit": policy.explicit,
        "collections": policy.collections,
        "execution_info": json.dumps({} if run is None else of_run(run)),
        "policy_owner": policy.owner,
        "last_updated_by": policy.updated_by,
        "last_updated": product_time(policy.updated),
    }


def of_run(run: RunBody) -> dict[str, Any]:
    """A run; with end_time once it has ended, and error where it failed."""
    return {
        "start_time": product_time(run.started),
        "total_count": run.total,
        "submitted_count": run.submitted,
        "failed_count": run.failed,
        "completed_count": run.completed,
        "skipped_count": run.skipped,
        "run_id": run.run,
        **_end(run),
    }


def of_status(run: RunBody | None) -> dict[str, Any]:
    """The answer of `/status`: of a policy that never ran the status alone."""
    if run is None:
        return {"status": NEVER}
    return {
        "status": run.state,
        "total_count": run.total,
        "completed_count": run.completed,
        "failed_count": run.failed,
        "submitted_count": run.submitted,
        "start_time": product_time(run.started),
        **_end(run),
    }


def _end(run: RunBody) -> dict[str, Any]:
    ended = {} if run.finished is None else {"end_time": product_time(run.finished)}
    return {**ended, "error": run.error} if run.error else ended
