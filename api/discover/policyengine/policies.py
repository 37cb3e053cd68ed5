"""/policyengine/v1/policies: what to do with the files that a condition finds, and doing it."""

import json
from typing import Annotated, Any, Literal

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, Field, field_validator

from api.discover.bodies import body_as, body_schema
from api.discover.json_text import ALSO_IN_TEXT
from api.discover.policyengine.policy_bodies import of_policy, of_run, of_status
from api.discover.replies import discover_router, in_json, in_text
from api.http.dependencies import CurrentSession
from api.http.openapi.discover import json_answer, text_answer
from api.http.rules import READ, WRITE
from api.services.session import Session
from catalog.errors import InvalidInput
from catalog.text.bounded import MOST_FEW, Content, Name, Sql
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
_MOST_RUNS = 100
"""Most runs that a policy's history shows."""


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
        state = value and value.lower()
        if state not in (None, "active", "inactive"):
            raise ValueError("expected active or inactive")
        return state

    def changes(self) -> dict[str, Any]:
        """The fields that were sent, by column of Policy."""
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


@router.get("/policies", rule=READ, answers=json_answer([_POLICY]))
def get_policies(session: CurrentSession) -> Response:
    """Every policy that the caller may see, with its last run."""
    return in_json([of_policy(policy) for policy in session.policies.list()])


@router.get("/policies/{policy}", rule=READ, answers=json_answer(_POLICY))
def get_policy(policy: str, session: CurrentSession) -> Response:
    """One policy, with its last run."""
    return in_json(of_policy(session.policies.get(policy)))


@router.post(
    "/policies",
    rule=WRITE,
    status_code=201,
    openapi_extra=body_schema(PolicyChange, _NEW),
    answers=text_answer("Policy 'pol2' added", status=201),
)
async def post_policy(request: Request, session: CurrentSession) -> Response:
    """Keep a new policy; with schedule NOW, which is the default, it begins to run at once."""
    body = await body_as(PolicyChange, request)
    name = await run_in_threadpool(_add, session, body, body.pol_id)
    return in_text(f"Policy '{name}' added", 201)


@router.post(
    "/policies/{policy}",
    rule=WRITE,
    status_code=201,
    openapi_extra=body_schema(PolicyChange, _NEW),
    answers=text_answer("Policy 'pol2' added", status=201),
)
async def post_named_policy(policy: str, request: Request, session: CurrentSession) -> Response:
    """The same, with its name in the address."""
    body = await body_as(PolicyChange, request)
    if body.pol_id not in (None, policy):
        raise InvalidInput(f"pol_id '{body.pol_id}' is not the policy of the address, '{policy}'")
    name = await run_in_threadpool(_add, session, body, policy)
    return in_text(f"Policy '{name}' added", 201)


@router.put(
    "/policies/{policy}",
    rule=WRITE,
    openapi_extra=body_schema(PolicyChange, _CHANGED),
    answers=text_answer("Policy 'pol2' updated"),
)
async def put_policy(policy: str, request: Request, session: CurrentSession) -> Response:
    """Change what is sent of a policy; where that is also schedule NOW, it begins to run."""
    body = await body_as(PolicyChange, request)
    await run_in_threadpool(_change, session, policy, body)
    return in_text(f"Policy '{policy}' updated")


@router.delete("/policies/{policy}", rule=WRITE, answers=text_answer("Policy 'pol2' deleted"))
def delete_policy(policy: str, session: CurrentSession) -> Response:
    """Forget a policy and its runs; tags that it set stay."""
    session.policies.remove(policy)
    return in_text(f"Policy '{policy}' deleted")


@router.get(
    "/policies/{policy}/status", rule=READ, answers=json_answer({"status": "running", **_COUNTS})
)
def get_status(policy: str, session: CurrentSession) -> Response:
    """Where the policy's last run stands."""
    record = session.policies.get(policy)
    return in_json(of_status(record.last_run))


@router.get(
    "/policies/{policy}/history",
    rule=READ,
    answers=json_answer([{"status": "complete", **_COUNTS}]),
)
def get_history(policy: str, session: CurrentSession) -> Response:
    """The policy's runs, newest first, 100 at most."""
    runs = session.policies.runs(policy, limit=_MOST_RUNS)
    return in_json([{"status": run.state, **of_run(run)} for run in runs])


@router.post(
    "/policies/{policy}/{action}",
    rule=WRITE,
    status_code=202,
    answers=text_answer("Accepted", status=202),
)
def post_action(policy: str, action: str, session: CurrentSession) -> Response:
    """Start a run of the policy, or let it pause, resume, or end (kill, stop)."""
    _act(session, policy, action)
    return in_text("Accepted", 202)


def _add(session: Session, body: PolicyChange, name: str | None) -> str:
    if not name:
        raise InvalidInput("pol_id is missing: expected the new policy's name")
    if not body.action_id:
        raise InvalidInput("action_id is missing: expected AUTOTAG, IMPORT_TAGS or DEEPINSPECT")
    defaults = {"parameters": {}, "condition": "", "schedule": NOW, "state": "active"}
    columns = {"explicit": "true", "collections": [], **defaults, **body.changes()}
    session.policies.keep({"name": name, "action": body.action_id, **columns}, starts=True)
    return name


def _change(session: Session, name: str, body: PolicyChange) -> None:
    policy = session.policies.get(name)
    if body.pol_id not in (None, name):
        raise InvalidInput(f"pol_id '{body.pol_id}' is not the policy of the address, '{name}'")
    if body.action_id not in (None, policy.action):
        raise InvalidInput(
            f"policy '{name}' is of action {policy.action}, which cannot change: delete it first"
        )
    session.policies.keep_changes(name, body.changes(), starts=True)


def _act(session: Session, name: str, action: str) -> None:
    if action == "start":
        session.policies.begin(name)
    elif action in _ACTIONS:
        session.policies.tell(name, "kill" if action == "stop" else action)
    else:
        session.policies.get(name)  # a policy that is missing is the first error
        raise InvalidInput(f"action '{action[:40]}': expected one of {', '.join(_ACTIONS)}")
