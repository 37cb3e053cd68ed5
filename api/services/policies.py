"""Policies and their runs as JSON, in /v1 and behind --json, and what starts those that are due."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

from api.workspace import Workspace
from catalog.policies import policies as policy_records
from catalog.policies import runs as policy_runs
from catalog.policies.runs import ACTIVE
from catalog.policies.tables import Policy, PolicyRun
from catalog.records.tables import now
from pipeline.policies import runs
from pipeline.policies.schedule import NOW, is_due

_TIME = "2026-11-21T14:08:18Z"


class RunBody(BaseModel):
    """A run of a policy."""

    run: str = Field(
        description="What it is known by.", examples=["0f1c9a54d7e24d7c9a1f3f6c5f0e7b7a"]
    )
    policy: str = Field(examples=["bikes"])
    state: str = Field(description="running, paused, complete, killed or failed")
    job: str = Field(
        description="The job that runs it; empty where somebody does, at a terminal.",
        examples=["policy-bikes-1"],
    )
    total: int = Field(description="Files that the condition found.", examples=[160])
    submitted: int = Field(description="Those that were taken up.", examples=[160])
    completed: int = Field(description="Those that are done.", examples=[159])
    failed: int = Field(description="Those that cannot be used.", examples=[1])
    skipped: int = Field(description="Those that had nothing to give.", examples=[0])
    error: str = Field(examples=[""])
    started: str = Field(examples=[_TIME])
    finished: str | None = Field(examples=[_TIME])

    @classmethod
    def of(cls, run: PolicyRun, policy: str) -> "RunBody":
        """A record's."""
        return cls(
            run=run.run_id,
            policy=policy,
            state=run.state,
            job=run.job,
            total=run.total,
            submitted=run.submitted,
            completed=run.completed,
            failed=run.failed,
            skipped=run.skipped,
            error=run.error,
            started=_time(run.started),
            finished=None if run.finished is None else _time(run.finished),
        )


class PolicyBody(BaseModel):
    """A policy."""

    name: str = Field(examples=["bikes"])
    action: str = Field(description="AUTOTAG, IMPORT_TAGS or DEEPINSPECT", examples=["AUTOTAG"])
    parameters: dict[str, Any] = Field(
        description="Of the action.", examples=[{"tags": {"project": "bikes"}}]
    )
    condition: str = Field(
        description="A WHERE body over metaocean_view; empty for every file.",
        examples=["bicycle > 5000"],
    )
    schedule: dict[str, Any] | None = Field(
        description="Parts of a time; null where it runs when it is told to.",
        examples=[{"hour": 5, "minute": 15}],
    )
    state: str = Field(description="active or inactive", examples=["active"])
    collections: list[str] = Field(
        description="Only their files; every file where there are none.", examples=[[]]
    )
    owner: str = Field(examples=["dora"])
    updated_by: str = Field(examples=["dora"])
    updated: str = Field(examples=[_TIME])
    created: str = Field(examples=[_TIME])
    last_run: RunBody | None = Field(description="Null before the first.")

    @classmethod
    def of(cls, policy: Policy, last: PolicyRun | None) -> "PolicyBody":
        """A record's, with its newest run."""
        return cls(
            name=policy.name,
            action=policy.action,
            parameters=policy.parameters,
            condition=policy.condition,
            schedule=None if policy.schedule == NOW else policy.schedule,
            state=policy.state.lower(),
            collections=policy.collections,
            owner=policy.owner,
            updated_by=policy.updated_by,
            updated=_time(policy.updated),
            created=_time(policy.created),
            last_run=None if last is None else RunBody.of(last, policy.name),
        )


def shown(workspace: Workspace, policy: Policy) -> PolicyBody:
    """A policy as it stands now."""
    return PolicyBody.of(policy, runs.newest(workspace.catalog, workspace.records, policy))


def listed(workspace: Workspace) -> list[PolicyBody]:
    """Every policy by name, as it stands now."""
    return [shown(workspace, policy) for policy in policy_records.listed(workspace.records)]


def started(workspace: Workspace, policy: Policy) -> PolicyRun:
    """Run a policy as a job; the run's record, which names the job.

    Raises:
        InvalidInput: The policy is inactive, or running already.
        StorageError: The job cannot be started.
    """
    store, records = workspace.catalog, workspace.records
    begun = runs.start(store, records, workspace.job_queue, policy, workspace.variables)
    return policy_runs.found(records, begun.run_id) or begun


def start_due(workspace: Workspace) -> list[RunBody]:
    """Start the policies whose time has come, as jobs; their runs.

    Raises:
        StorageError: A job cannot be started.
    """
    begun = []
    for policy in policy_records.listed(workspace.records):
        last = runs.newest(workspace.catalog, workspace.records, policy)
        idle = last is None or last.state not in ACTIVE
        since = max(policy.updated, last.started) if last is not None else policy.updated
        if idle and policy.state.lower() == "active" and is_due(policy.schedule, since, now()):
            begun.append(RunBody.of(started(workspace, policy), policy.name))
    return begun


def _time(time: datetime) -> str:
    """A record's time as ISO 8601 in UTC."""
    return time.isoformat(timespec="seconds") + "Z"
