"""/v1/policies: tags that are set on what a condition finds, on time or when told to.

The same policies as Spectrum Discover's policy engine has.
"""

from typing import Annotated

from fastapi import Path, Query, Response

from api.http.conditions import Expected, tagged
from api.http.dependencies import CurrentSession
from api.http.pages import CurrentPage
from api.http.routes.jobs import BEGUN, begun
from api.http.routing import Router
from api.http.rules import READ_ALL_ROWS, WRITE_ALL_ROWS
from api.schemas.jobs import JobBody
from api.schemas.policies import (
    Action,
    Due,
    NewPolicy,
    PoliciesAnswer,
    PolicyBody,
    PolicyChange,
    RunsAnswer,
    State,
)

router = Router(prefix="/v1/policies", tags=["policies"], examples={"name": "bikes"})

Name = Annotated[str, Path(description="The policy.", examples=["bikes"])]


@router.get("", rule=READ_ALL_ROWS)
def get_policies(
    session: CurrentSession,
    page: CurrentPage,
    action: Annotated[Action | None, Query(description="Only of this action.")] = None,
    state: Annotated[State | None, Query(description="Only in this state.")] = None,
) -> PoliciesAnswer:
    """Policies by name."""
    policies = [
        policy
        for policy in session.policies.list()
        if action in (None, policy.action) and state in (None, policy.state)
    ]
    listed, follows = page.page_of_all("policies", policies, lambda policy: (policy.name,), str)
    return PoliciesAnswer(policies=listed, next=follows)


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
def post_policy(body: NewPolicy, session: CurrentSession, response: Response) -> PolicyBody:
    """Keep a policy; it runs on its schedule, or when it is told to."""
    policy = session.policies.add(**dict(body))
    response.headers["Location"] = f"/v1/policies/{policy.name}"
    return policy


@router.post("/due", rule=WRITE_ALL_ROWS, status_code=202)
def post_due(session: CurrentSession) -> Due:
    """Start the policies whose time has come: for a timer that asks every minute."""
    return Due(started=session.policies.start_due())


@router.get("/{name}", rule=READ_ALL_ROWS)
def get_policy(name: Name, session: CurrentSession, response: Response) -> PolicyBody:
    """A policy, with its newest run."""
    return tagged(response, session.policies.get(name))


@router.patch("/{name}", rule=WRITE_ALL_ROWS, example={"state": "inactive"})
def patch_policy(
    name: Name, body: PolicyChange, session: CurrentSession, expected: Expected
) -> PolicyBody:
    """Change a policy that does not run just now."""
    changes = body.model_dump(exclude_unset=True)
    return session.policies.change(name, expected=expected, **changes)


@router.delete("/{name}", rule=WRITE_ALL_ROWS, status_code=204)
def delete_policy(name: Name, session: CurrentSession, expected: Expected) -> Response:
    """Forget a policy and its runs; tags that it set stay."""
    session.policies.remove(name, expected=expected)
    return Response(status_code=204)


@router.get("/{name}/runs", rule=READ_ALL_ROWS)
def get_runs(name: Name, session: CurrentSession, page: CurrentPage) -> RunsAnswer:
    """The newest thousand runs of a policy, newest first."""
    runs = session.policies.runs(name)
    listed, follows = page.page_of_all("runs", runs, lambda run: (-run.number,), int)
    return RunsAnswer(runs=listed, next=follows)


@router.post(
    "/{name}/runs",
    rule=WRITE_ALL_ROWS.but(idempotency_key="takes"),
    status_code=202,
    responses=BEGUN,
)
def post_run(name: Name, session: CurrentSession, response: Response) -> JobBody:
    """Run a policy now, whatever its schedule: a job does it."""
    return begun(session.policies.begin(name), response)
