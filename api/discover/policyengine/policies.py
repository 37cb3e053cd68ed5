"""/policyengine/v1/policies: what to do with the files that a condition finds, and doing it."""

import json
from typing import Annotated, Any, Literal

from fastapi import Depends, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, Field, field_validator

from api.discover.db2whrest.search import body_schema, read_as
from api.discover.json_text import ALSO_IN_TEXT
from api.discover.policyengine.policy_bodies import of_policy, of_run, of_status
from api.discover.replies import discover_router, in_json, in_text, json_of
from api.discover.whole_home import WholeHome
from api.http.dependencies import CurrentCaller
from api.http.openapi.discover import json_answer, text_answer
from api.http.rules import READ, WRITE
from api.services.policies.actions import check
from api.services.policies.rights import PolicyRights
from api.workspace import Workspace
from catalog.errors import InvalidInput
from catalog.policies import policies as policy_records
from catalog.policies.tables import Policy, PolicyRun
from catalog.text.bounded import MOST_FEW, Content, Name, Sql
from pipeline.policies import runs
from pipeline.policies.schedule import NOW, check_schedule

router = discover_router("policyengine", examples={"action": "start"})

_COUNTS = {
    "total_count": 15000,
    "completed_count": 14000,
    "failed_count": 0,
    "submitted_count": 15000,
    "start_time": "2020-03-27_11:12:10",
}
_POLICY = {
    "pol_id": "pol2",
    "action_id": "AUTOTAG",
    "action_params": {"tags": {"tag4": "val4"}},
    "schedule": "NOW",
    "pol_filter": "filetype='jpg'",
    "pol_state": "active",
    "pol_status": "running",
    "explicit": "true",
    "collections": [],
    "execution_info": json.dumps(_COUNTS),
    "policy_owner": "sdadmin",
    "last_updated_by": "sdadmin",
    "last_updated": "2020-03-27_11:12:10",
}

_ACTIONS = ("start", "pause", "resume", "kill", "stop")


class PolicyChange(BaseModel):
    """Fields of a policy; those left out stay as they are, or take the default."""

    pol_id: Name | None = Field(default=None, description="Its name.")
    action_id: Name | None = Field(
        default=None, description="AUTOTAG, IMPORT_TAGS or DEEPINSPECT; never changes."
    )
    action_params: Annotated[Content | None, ALSO_IN_TEXT] = Field(
        default=None, description="See the action."
    )
    pol_filter: Sql | None = Field(default=None, description="A WHERE body in Db2's SQL.")
    schedule: Name | Content | None = Field(
        default=None, description='"NOW", or minute, hour, dayOfMonth, month, dayOfWeek, timezone.'
    )
    pol_state: Name | None = Field(default=None, description="active or inactive.")
    explicit: Literal["true", "false"] | None = None
    collections: list[Name] | None = Field(default=None, max_length=MOST_FEW, fail_fast=True)

    @field_validator("action_id")
    @classmethod
    def _upper(cls, value: str | None) -> str | None:
        return value and value.upper()

    @field_validator("explicit", mode="before")
    @classmethod
    def _boolean(cls, value: Any) -> Any:
        return json.dumps(value) if isinstance(value, bool) else value

    @field_validator("pol_state")
    @classmethod
    def _known_state(cls, value: str | None) -> str | None:
        if value is not None and value.lower() not in ("active", "inactive"):
            raise ValueError("expected active or inactive")
        return value

    def changes(self) -> dict[str, Any]:
        """The fields that were sent, by column of Policy.

        Raises:
            InvalidInput: The schedule is none.
        """
        columns = {
            "parameters": self.action_params,
            "condition": self.pol_filter,
            "schedule": self.schedule,
            "state": self.pol_state,
            "explicit": self.explicit,
            "collections": self.collections,
        }
        if isinstance(self.schedule, str) and self.schedule.upper() == NOW:
            columns["schedule"] = NOW
        elif self.schedule is not None:
            check_schedule(self.schedule)
        return {column: value for column, value in columns.items() if value is not None}


_NEW = {
    "pol_id": "pol2",
    "action_id": "AUTOTAG",
    "action_params": {"tags": {"tag4": "val4", "tag5": "val5"}},
    "pol_filter": "filetype='jpg'",
    "schedule": "NOW",
}
_CHANGED = {"pol_filter": "filename LIKE 'f0%'", "pol_state": "active", "schedule": "NOW"}


def _rights(caller: CurrentCaller, home: WholeHome) -> PolicyRights:
    return PolicyRights.of(caller, home)


_Rights = Annotated[PolicyRights, Depends(_rights)]


@router.get("/policies", rule=READ, answers=json_answer([_POLICY]))
async def get_policies(home: WholeHome, rights: _Rights) -> Response:
    """Every policy that the caller may see, with its last run."""
    return in_json(await run_in_threadpool(_all, home, rights))


@router.get("/policies/{policy}", rule=READ, answers=json_answer(_POLICY))
async def get_policy(policy: str, home: WholeHome, rights: _Rights) -> Response:
    """One policy, with its last run."""
    return in_json(
        await run_in_threadpool(lambda: of_policy(*_policy_and_run(home, policy, rights)))
    )


@router.post(
    "/policies",
    rule=WRITE,
    status_code=201,
    openapi_extra=body_schema(PolicyChange, _NEW),
    answers=text_answer("Policy 'pol2' added", status=201),
)
async def post_policy(request: Request, home: WholeHome, rights: _Rights) -> Response:
    """Keep a new policy; with schedule NOW, which is the default, it begins to run at once."""
    body = read_as(PolicyChange, await json_of(request))
    name = await run_in_threadpool(_add, home, body, body.pol_id, rights)
    return in_text(f"Policy '{name}' added", 201)


@router.post(
    "/policies/{policy}",
    rule=WRITE,
    status_code=201,
    openapi_extra=body_schema(PolicyChange, _NEW),
    answers=text_answer("Policy 'pol2' added", status=201),
)
async def post_named_policy(
    policy: str, request: Request, home: WholeHome, rights: _Rights
) -> Response:
    """The same, with its name in the address."""
    body = read_as(PolicyChange, await json_of(request))
    if body.pol_id not in (None, policy):
        raise InvalidInput(f"pol_id '{body.pol_id}' is not the policy of the address, '{policy}'")
    name = await run_in_threadpool(_add, home, body, policy, rights)
    return in_text(f"Policy '{name}' added", 201)


@router.put(
    "/policies/{policy}",
    rule=WRITE,
    openapi_extra=body_schema(PolicyChange, _CHANGED),
    answers=text_answer("Policy 'pol2' updated"),
)
async def put_policy(policy: str, request: Request, home: WholeHome, rights: _Rights) -> Response:
    """Change what is sent of a policy; where that is also schedule NOW, it begins to run."""
    body = read_as(PolicyChange, await json_of(request))
    await run_in_threadpool(_change, home, policy, body, rights)
    return in_text(f"Policy '{policy}' updated")


@router.delete("/policies/{policy}", rule=WRITE, answers=text_answer("Policy 'pol2' deleted"))
async def delete_policy(policy: str, home: WholeHome, rights: _Rights) -> Response:
    """Forget a policy and its runs; tags that it set stay."""
    await run_in_threadpool(_remove, home, policy, rights)
    return in_text(f"Policy '{policy}' deleted")


@router.get(
    "/policies/{policy}/status", rule=READ, answers=json_answer({"status": "running", **_COUNTS})
)
async def get_status(policy: str, home: WholeHome, rights: _Rights) -> Response:
    """Where the policy's last run stands."""
    _, run = await run_in_threadpool(_policy_and_run, home, policy, rights)
    return in_json(of_status(run))


@router.get(
    "/policies/{policy}/history",
    rule=READ,
    answers=json_answer([{"status": "complete", **_COUNTS}]),
)
async def get_history(policy: str, home: WholeHome, rights: _Rights) -> Response:
    """The policy's runs, newest first, 100 at most."""
    return in_json(await run_in_threadpool(_history, home, policy, rights))


@router.post(
    "/policies/{policy}/{action}",
    rule=WRITE,
    status_code=202,
    answers=text_answer("Accepted", status=202),
)
async def post_action(policy: str, action: str, home: WholeHome, rights: _Rights) -> Response:
    """Start a run of the policy, or let it pause, resume, or end (kill, stop)."""
    await run_in_threadpool(_act, home, policy, action, rights)
    return in_text("Accepted", 202)


def _policy_and_run(
    home: Workspace, name: str, rights: PolicyRights
) -> tuple[Policy, PolicyRun | None]:
    policy = policy_records.recorded(home.records, name)
    rights.check_seen(policy)
    return policy, runs.newest(home.whole_catalog, home.records, policy)


def _all(home: Workspace, rights: PolicyRights) -> list[dict[str, Any]]:
    store, records = home.whole_catalog, home.records
    policies = filter(rights.sees, policy_records.listed(records))
    return [of_policy(policy, runs.newest(store, records, policy)) for policy in policies]


def _add(home: Workspace, body: PolicyChange, name: str | None, rights: PolicyRights) -> str:
    if not name:
        raise InvalidInput("pol_id is missing: expected the new policy's name")
    if not body.action_id:
        raise InvalidInput("action_id is missing: expected AUTOTAG, IMPORT_TAGS or DEEPINSPECT")
    defaults = {"parameters": {}, "condition": "", "schedule": NOW, "state": "active"}
    columns = {"explicit": "true", "collections": [], **defaults, **body.changes()}
    user = rights.user
    policy = Policy(name=name, action=body.action_id, owner=user, updated_by=user, **columns)
    rights.limit(home, policy)
    check(home, policy)
    policy_records.add(home.records, policy)
    _begin_if_now(home, policy)
    return name


def _change(home: Workspace, name: str, body: PolicyChange, rights: PolicyRights) -> None:
    policy, _ = _policy_and_run(home, name, rights)
    rights.check_change(policy)
    if body.pol_id not in (None, name):
        raise InvalidInput(f"pol_id '{body.pol_id}' is not the policy of the address, '{name}'")
    if body.action_id not in (None, policy.action):
        raise InvalidInput(
            f"policy '{name}' is of action {policy.action}, which cannot change: delete it first"
        )
    changes = body.changes()
    for column, value in changes.items():
        setattr(policy, column, value)
    rights.limit(home, policy)
    check(home, policy)
    if policy.collections:
        changes["collections"] = policy.collections
    changed = policy_records.change(home.records, name, rights.user, changes)
    if "schedule" in changes:
        _begin_if_now(home, changed)


def _begin_if_now(home: Workspace, policy: Policy) -> None:
    if policy.schedule == NOW and policy.state.lower() == "active":
        _start(home, policy)


def _remove(home: Workspace, name: str, rights: PolicyRights) -> None:
    policy, _ = _policy_and_run(home, name, rights)
    rights.check_change(policy)
    policy_records.remove(home.records, name)


def _history(home: Workspace, name: str, rights: PolicyRights) -> list[dict[str, Any]]:
    policy, _ = _policy_and_run(home, name, rights)
    listed = runs.history(home.whole_catalog, home.records, policy)
    return [{"status": run.state, **of_run(run)} for run in listed]


def _act(home: Workspace, name: str, action: str, rights: PolicyRights) -> None:
    policy, _ = _policy_and_run(home, name, rights)
    rights.check_run(policy)
    if action not in _ACTIONS:
        raise InvalidInput(f"action '{action[:40]}': expected one of {', '.join(_ACTIONS)}")
    if action == "start":
        _start(home, policy)
        return
    order = "kill" if action == "stop" else action
    runs.ask(home.whole_catalog, home.records, policy, order)


def _start(home: Workspace, policy: Policy) -> None:
    runs.start(home.whole_catalog, home.records, home.job_queue, policy, home.variables)
