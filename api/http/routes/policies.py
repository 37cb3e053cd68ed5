"""/v1/policies: tags that are set on what a condition finds, on time or when told to.

The same policies as Spectrum Discover's policy engine has.
"""

import json
from typing import Annotated, Any, Literal

from fastapi import Path, Query, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from api.cli.commands.policy_actions import check
from api.http.dependencies import CurrentCaller, CurrentWorkspace
from api.http.pages import CurrentPage
from api.http.routes.jobs import BEGUN, job_begun
from api.http.routing import Router
from api.http.rules import READ_ALL_ROWS, WRITE_ALL_ROWS
from api.schemas.answers import JobBody
from api.schemas.base import PageAnswer
from api.services.policies import (
    PolicyBody,
    RunBody,
    listed,
    shown,
    start_due,
    started,
)
from api.workspace import Workspace
from catalog.policies import policies as policy_records
from catalog.policies.tables import Policy
from catalog.records.tables import Job
from catalog.text import bounded
from catalog.text.bounded import MOST_FEW, Sql
from catalog.text.bounded import Name as AnyName
from pipeline.policies import runs
from pipeline.policies.schedule import NOW, check_schedule

router = Router(prefix="/v1/policies", tags=["policies"], examples={"name": "bikes"})

Name = Annotated[str, Path(description="The policy.", examples=["bikes"])]
State = Literal["active", "inactive"]
Action = Literal["AUTOTAG", "IMPORT_TAGS", "DEEPINSPECT"]

_MOST_RUNS = 1_000
_PARAMETERS = "{tags: {TAG: VALUE}} for AUTOTAG; see docs/spectrum-discover.md for the others."


def _of_whole_characters(content: dict[str, Any]) -> dict[str, Any]:
    try:
        json.dumps(content, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ValueError("a text holds half of a character; send whole ones") from error
    return content


Content = Annotated[bounded.Content, AfterValidator(_of_whole_characters)]
"""A document that is kept, and answered as it is."""


class NewPolicy(BaseModel):
    """A policy to be made."""

    model_config = ConfigDict(extra="forbid")

    name: AnyName = Field(description="Letters, digits and ._@-.", examples=["bikes"])
    action: Action = Field(examples=["AUTOTAG"])
    parameters: Content = Field(description=_PARAMETERS, examples=[{"tags": {"project": "bikes"}}])
    condition: Sql = Field(
        default="",
        description="A WHERE body over metaocean_view; empty for every file.",
        examples=["bicycle > 5000"],
    )
    schedule: Content | None = Field(
        default=None,
        description="minute, hour, dayOfMonth, month, dayOfWeek, timezone; null where it runs when "
        "it is told to.",
        examples=[{"hour": 5, "minute": 15}],
    )
    state: State = Field(default="active", description="An inactive one does not run.")
    collections: list[AnyName] = Field(
        default=[],
        max_length=MOST_FEW,
        fail_fast=True,
        description="Only their files; else every file.",
    )


class PolicyChange(BaseModel):
    """What is to change; what is left out stays."""

    model_config = ConfigDict(extra="forbid")

    parameters: Content | None = Field(default=None, description=_PARAMETERS)
    condition: Sql | None = Field(default=None, description="A WHERE body over metaocean_view.")
    schedule: Content | None = Field(
        default=None, description="Parts of a time; null where it runs when it is told to."
    )
    state: State | None = None
    collections: list[AnyName] | None = Field(default=None, max_length=MOST_FEW, fail_fast=True)


class PoliciesAnswer(PageAnswer):
    """Policies by name."""

    policies: list[PolicyBody]


class RunsAnswer(PageAnswer):
    """Runs of a policy, newest first."""

    runs: list[RunBody]


class Due(BaseModel):
    """The policies whose time had come."""

    started: list[RunBody] = Field(description="Their runs, each a job.")


@router.get("", rule=READ_ALL_ROWS)
async def get_policies(
    workspace: CurrentWorkspace,
    page: CurrentPage,
    action: Annotated[Action | None, Query(description="Only of this action.")] = None,
    state: Annotated[State | None, Query(description="Only in this state.")] = None,
) -> PoliciesAnswer:
    """Policies by name."""
    found = [
        policy
        for policy in await run_in_threadpool(listed, workspace)
        if action in (None, policy.action) and state in (None, policy.state)
    ]
    here, follows = page.page_of_all("policies", found, lambda policy: (policy.name,), str)
    return PoliciesAnswer(policies=here, next=follows)


@router.post(
    "",
    rule=WRITE_ALL_ROWS.but(idempotency_key="takes"),
    status_code=201,
    example={
        "name": "bikes",
        "action": "AUTOTAG",
        "parameters": {"tags": {"project": "bikes"}},
        "condition": "bicycle > 5000",
    },
)
async def post_policy(
    wanted: NewPolicy, caller: CurrentCaller, workspace: CurrentWorkspace, response: Response
) -> PolicyBody:
    """Keep a policy; it runs on its schedule, or when it is told to."""
    made = await run_in_threadpool(_added, workspace, wanted, caller.user)
    response.headers["Location"] = f"/v1/policies/{made.name}"
    return made


@router.post("/due", rule=WRITE_ALL_ROWS, status_code=202)
async def post_due(workspace: CurrentWorkspace) -> Due:
    """Start the policies whose time has come: for a timer that asks every minute."""
    return Due(started=await run_in_threadpool(start_due, workspace))


@router.get("/{name}", rule=READ_ALL_ROWS)
async def get_policy(name: Name, workspace: CurrentWorkspace) -> PolicyBody:
    """A policy, with its newest run."""
    return await run_in_threadpool(
        lambda: shown(workspace, policy_records.found(workspace.records, name))
    )


@router.patch("/{name}", rule=WRITE_ALL_ROWS, example={"state": "inactive"})
async def patch_policy(
    name: Name, wanted: PolicyChange, caller: CurrentCaller, workspace: CurrentWorkspace
) -> PolicyBody:
    """Change a policy that does not run just now."""
    return await run_in_threadpool(_changed, workspace, name, wanted, caller.user)


@router.delete("/{name}", rule=WRITE_ALL_ROWS, status_code=204)
async def delete_policy(name: Name, workspace: CurrentWorkspace) -> Response:
    """Forget a policy and its runs; tags that it set stay."""

    def remove() -> None:
        _idle_on_paper(workspace, name)
        policy_records.remove(workspace.records, name)

    await run_in_threadpool(remove)
    return Response(status_code=204)


@router.get("/{name}/runs", rule=READ_ALL_ROWS)
async def get_runs(name: Name, workspace: CurrentWorkspace, page: CurrentPage) -> RunsAnswer:
    """The newest thousand runs of a policy, newest first."""

    def found() -> RunsAnswer:
        policy = policy_records.found(workspace.records, name)
        had = runs.history(workspace.catalog, workspace.records, policy, _MOST_RUNS)
        here, follows = page.page_of_all("runs", had, lambda run: (-run.id,), int)
        return RunsAnswer(runs=[RunBody.of(run, name) for run in here], next=follows)

    return await run_in_threadpool(found)


@router.post(
    "/{name}/runs",
    rule=WRITE_ALL_ROWS.but(idempotency_key="takes"),
    status_code=202,
    responses=BEGUN,
)
async def post_run(name: Name, workspace: CurrentWorkspace, response: Response) -> JobBody:
    """Run a policy now, whatever its schedule: a job does it."""

    def begin() -> Job:
        run = started(workspace, policy_records.found(workspace.records, name))
        return workspace.records.job(run.job)

    return job_begun(workspace, await run_in_threadpool(begin), response)


def _added(workspace: Workspace, wanted: NewPolicy, user: str) -> PolicyBody:
    given = wanted.model_dump()
    given["schedule"] = _kept(wanted.schedule)
    policy = Policy(owner=user, updated_by=user, **given)
    check(workspace, policy)
    return PolicyBody.of(policy_records.add(workspace.records, policy), None)


def _changed(workspace: Workspace, name: str, wanted: PolicyChange, user: str) -> PolicyBody:
    policy = _idle_on_paper(workspace, name)
    changes = wanted.model_dump(exclude_unset=True)
    if "schedule" in changes:
        changes["schedule"] = _kept(wanted.schedule)
    changes = {column: value for column, value in changes.items() if value is not None}
    for column, value in changes.items():
        setattr(policy, column, value)
    check(workspace, policy)
    return shown(workspace, policy_records.change(workspace.records, name, user, changes))


def _idle_on_paper(workspace: Workspace, name: str) -> Policy:
    """The policy; a run of it whose process has ended is recorded as ended."""
    policy = policy_records.found(workspace.records, name)
    runs.newest(workspace.catalog, workspace.records, policy)
    return policy


def _kept(schedule: dict[str, Any] | None) -> Any:
    """A schedule as records have it."""
    if schedule is None:
        return NOW
    check_schedule(schedule)
    return schedule
