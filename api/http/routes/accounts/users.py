"""/v1/users: the users. Admins only."""

from urllib.parse import quote

from fastapi import Response

from api.http.conditions import Expected, tagged
from api.http.dependencies import CurrentContext, CurrentSession
from api.http.pages import CurrentPage
from api.http.routing import Router
from api.http.rules import ADMIN_READ, ADMIN_WRITE
from api.schemas.accounts.users import NewUser, UserBody, UserChange, UsersAnswer

router = Router(prefix="/v1/users", tags=["users"], examples={"name": "anna"})


@router.get("", rule=ADMIN_READ)
def get_users(session: CurrentSession, page: CurrentPage) -> UsersAnswer:
    """Users by name."""
    users = session.users.list()
    listed, follows = page.page_of_all("users", users, lambda user: (user.name,), str)
    return UsersAnswer(users=listed, next=follows)


@router.post(
    "",
    rule=ADMIN_WRITE.but(idempotency_key="takes", accounts=True),
    status_code=201,
    example={"name": "anna", "roles": ["datauser"]},
)
def post_user(
    body: NewUser, session: CurrentSession, context: CurrentContext, response: Response
) -> UserBody:
    """Add a user."""
    context.about = f"user {body.name}: roles {', '.join(body.roles) or 'none'}"
    password = body.password.get_secret_value() if body.password is not None else None
    user = session.users.add(body.name, body.roles, password=password)
    response.headers["Location"] = f"/v1/users/{quote(user.name, safe='')}"
    return user


@router.get("/{name}", rule=ADMIN_READ)
def get_user(name: str, session: CurrentSession, response: Response) -> UserBody:
    """A user."""
    return tagged(response, session.users.get(name))


@router.patch("/{name}", rule=ADMIN_WRITE.but(accounts=True), example={"roles": ["dataadmin"]})
def patch_user(
    name: str,
    change: UserChange,
    session: CurrentSession,
    context: CurrentContext,
    expected: Expected,
) -> UserBody:
    """Change roles, quotas or password, or refuse a user; a new password ends logins."""
    context.about = f"user {name}: {_change_text(change)}"
    password = None if change.password is None else change.password.get_secret_value()
    changes = dict(change) | {"password": password}
    return session.users.set(name, **changes, expected=expected)


def _change_text(change: UserChange) -> str:
    """The change, in words for the audit log."""
    changes = []
    if change.roles is not None:
        changes.append(f"roles {', '.join(change.roles) or 'none'}")
    if change.disabled is not None:
        changes.append("disabled" if change.disabled else "enabled")
    if change.password is not None:
        changes.append("a new password")
    if change.jobs is not None:
        changes.append(f"{change.jobs} jobs")
    if change.ranks is not None:
        changes.append(f"{change.ranks} ranks")
    return "; ".join(changes) or "nothing"


@router.delete("/{name}", rule=ADMIN_WRITE.but(accounts=True), status_code=204)
def delete_user(name: str, session: CurrentSession, expected: Expected) -> Response:
    """Remove a user and their tokens."""
    session.users.remove(name, expected=expected)
    return Response(status_code=204)
