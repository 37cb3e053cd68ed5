"""/v1/users: who may ask. Admins only."""

from urllib.parse import quote

from fastapi import Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ConfigDict, Field

from api.http.dependencies import CurrentPassage, CurrentWorkspace
from api.http.pages import CurrentPage
from api.http.routing import Router
from api.http.rules import ADMIN_READ, ADMIN_WRITE
from api.schemas.base import PageAnswer
from api.schemas.people import UserBody
from catalog.accounts import login_throttle, users
from catalog.accounts.user_tables import User
from catalog.records.store import RecordStore
from catalog.text.bounded import Name, Secret

router = Router(prefix="/v1/users", tags=["users"], examples={"name": "anna"})


class NewUser(BaseModel):
    """A user to be made."""

    model_config = ConfigDict(extra="forbid")

    name: Name = Field(examples=["anna"])
    roles: list[Name] = Field(max_length=16, fail_fast=True, examples=[["datauser"]])
    password: Secret | None = Field(
        default=None, description="Without one only tokens open the account."
    )


class UserChange(BaseModel):
    """What is to change; what is left out stays."""

    model_config = ConfigDict(extra="forbid")

    roles: list[Name] | None = Field(default=None, max_length=16, fail_fast=True)
    disabled: bool | None = None
    password: Secret | None = None


class UsersAnswer(PageAnswer):
    """Users by name."""

    users: list[UserBody]


@router.get("", rule=ADMIN_READ)
async def get_users(workspace: CurrentWorkspace, page: CurrentPage) -> UsersAnswer:
    """Users by name."""
    found = await run_in_threadpool(users.listed, workspace.records)
    shown, follows = page.page_of_all("users", found, lambda user: (user.name,), str)
    return UsersAnswer(users=[UserBody.of(user) for user in shown], next=follows)


@router.post(
    "",
    rule=ADMIN_WRITE.but(idempotency_key="takes", accounts=True),
    status_code=201,
    example={"name": "anna", "roles": ["datauser"]},
)
async def post_user(
    wanted: NewUser, workspace: CurrentWorkspace, passage: CurrentPassage, response: Response
) -> UserBody:
    """Add a user."""
    passage.about = f"user {wanted.name}: roles {', '.join(wanted.roles) or 'none'}"
    password = wanted.password.get_secret_value() if wanted.password is not None else None
    made = await run_in_threadpool(
        users.add, workspace.records, wanted.name, wanted.roles, password
    )
    response.headers["Location"] = f"/v1/users/{quote(made.name, safe='')}"
    return UserBody.of(made)


@router.get("/{name}", rule=ADMIN_READ)
async def get_user(name: str, workspace: CurrentWorkspace) -> UserBody:
    """A user."""
    return UserBody.of(await run_in_threadpool(users.found, workspace.records, name))


@router.patch("/{name}", rule=ADMIN_WRITE.but(accounts=True), example={"roles": ["dataadmin"]})
async def patch_user(
    name: str, change: UserChange, workspace: CurrentWorkspace, passage: CurrentPassage
) -> UserBody:
    """Change roles or password, or refuse a user; a new password ends what was logged in."""
    passage.about = f"user {name}: {_said(change)}"
    return UserBody.of(await run_in_threadpool(_changed, workspace.records, name, change))


def _said(change: UserChange) -> str:
    """What is to change, for the audit log."""
    said = []
    if change.roles is not None:
        said.append(f"roles {', '.join(change.roles) or 'none'}")
    if change.disabled is not None:
        said.append("disabled" if change.disabled else "enabled")
    if change.password is not None:
        said.append("a new password")
    return "; ".join(said) or "nothing"


def _changed(records: RecordStore, name: str, change: UserChange) -> User:
    if change.password is not None:
        users.set_password(records, name, change.password.get_secret_value())
        login_throttle.forget(records, name)
    if change.roles is not None:
        users.set_roles(records, name, change.roles)
    if change.disabled is not None:
        users.set_disabled(records, name, change.disabled)
    return users.found(records, name)


@router.delete("/{name}", rule=ADMIN_WRITE.but(accounts=True), status_code=204)
async def delete_user(name: str, workspace: CurrentWorkspace) -> Response:
    """Remove a user and their tokens."""
    await run_in_threadpool(users.remove, workspace.records, name)
    return Response(status_code=204)
