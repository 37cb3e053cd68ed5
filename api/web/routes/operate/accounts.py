"""/operate/tokens, /operate/users, /operate/audit: users, their rights and their actions."""

from typing import Annotated
from urllib.parse import urlencode

from fastapi import Path, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response

from api.http.dependencies import CurrentContext, CurrentSession
from api.http.routing import Router
from api.http.rules import ADMIN_READ, ADMIN_WRITE, OWN_ACCOUNT, READ, Api
from api.schemas.accounts.tokens import NewToken, TokenBody
from api.schemas.accounts.users import NewUser
from api.services.session import Session
from api.web.forms import Form, form_of, names
from api.web.narrowed import Holding, Narrowed, narrowed, narrowed_path
from api.web.operate import shown_to
from api.web.pages import gone_on, page
from catalog.errors import InvalidInput
from query.question.wrong_value import checked

router = Router(api=Api.WEB, prefix="/operate", include_in_schema=False)

_ENTRIES = 100
_ROLES = {
    "datauser": "reads the frames of their collections",
    "collectionadmin": "makes datasets and jobs of their collections' frames, too",
    "dataadmin": "reads and changes all data: tags, datasets, sources",
    "admin": "everything, users and the audit log included",
}
"""Each role that a user may have, and what it lets them do."""

_Number = Annotated[int, Path(ge=1, lt=2**63)]


@router.get("/tokens", rule=READ.but(compressed=False))
def get_tokens_page(request: Request, session: CurrentSession, holding: Holding = "") -> Response:
    """The caller's tokens, the newest first; an admin's are everybody's."""
    context = {"tokens": _tokens(session, holding), "made": None}
    return page(request, "operate/tokens.html", context | shown_to(session.caller))


@router.post("/tokens", rule=OWN_ACCOUNT.but(idempotency_key="refuses", compressed=False))
async def post_token_page(
    request: Request, session: CurrentSession, context: CurrentContext
) -> Response:
    """Make a token, and show it this once."""
    body = _new_token(await form_of(request))
    whose = body.user or session.caller.user
    context.about = f"token {body.name} of {whose}: scope {body.scope}, {body.days} days"

    def answer() -> Response:
        token = session.tokens.create(body.name, user=body.user, scope=body.scope, days=body.days)
        values = {"tokens": _tokens(session), "made": token}
        return page(request, "operate/tokens.html", values | shown_to(session.caller))

    return await run_in_threadpool(answer)


@router.post("/tokens/{number}/revoke", rule=OWN_ACCOUNT.but(compressed=False))
def post_revoke_page(
    number: _Number,
    request: Request,
    session: CurrentSession,
    context: CurrentContext,
    holding: Holding = "",
) -> Response:
    """Revoke a token; back to the list as it was."""
    revoked = session.tokens.revoke(number)
    context.about = f"token {revoked.name} of {revoked.user}: revoked"
    return gone_on(request, narrowed_path("/operate/tokens", holding))


@router.get("/users", rule=ADMIN_READ)
def get_users_page(request: Request, session: CurrentSession, holding: Holding = "") -> Response:
    """Users by name."""
    users = narrowed(session.users.list(), holding, lambda user: user.name)
    context = {"users": users, "roles": _ROLES}
    return page(request, "operate/users.html", context | shown_to(session.caller))


@router.post("/users", rule=ADMIN_WRITE.but(accounts=True, compressed=False))
async def post_user_page(
    request: Request, session: CurrentSession, context: CurrentContext
) -> Response:
    """Add a user."""
    body = _new_user(await form_of(request))
    context.about = f"user {body.name}: roles {', '.join(body.roles) or 'none'}"
    password = body.password.get_secret_value() if body.password is not None else None
    await run_in_threadpool(session.users.add, body.name, body.roles, password=password)
    return gone_on(request, "/operate/users")


@router.post("/users/change", rule=ADMIN_WRITE.but(accounts=True))
async def post_user_change_page(
    request: Request, session: CurrentSession, context: CurrentContext, holding: Holding = ""
) -> Response:
    """Give a user other roles, refuse or admit them, or remove them with their tokens.

    Back to the list as it was.
    """
    form = await form_of(request)
    name, action = form.get("name"), form.get("action")
    context.about = f"user {name}: {action}"[:500]
    if action == "remove":
        await run_in_threadpool(session.users.remove, name)
    elif action == "roles":
        roles = _roles_of(form)
        context.about = f"user {name}: roles {', '.join(roles) or 'none'}"[:500]
        await run_in_threadpool(lambda: session.users.set(name, roles=roles))
    elif action in ("disable", "enable"):
        disabled = action == "disable"
        await run_in_threadpool(lambda: session.users.set(name, disabled=disabled))
    else:
        raise InvalidInput(f"action '{action[:40]}': expected roles, disable, enable or remove")
    return gone_on(request, narrowed_path("/operate/users", holding))


@router.get("/audit", rule=ADMIN_READ)
def get_audit_page(
    request: Request,
    session: CurrentSession,
    who: str = "",
    outcome: str = "",
    before: Annotated[int | None, Query(ge=1, lt=2**63)] = None,
) -> Response:
    """The audit log, newest first, page by page."""
    entries = session.audit.list(
        who=who or None, outcome=outcome or None, before=before, limit=_ENTRIES + 1
    )
    older = ""
    if len(entries) > _ENTRIES:
        filters = {"who": who, "outcome": outcome, "before": entries[_ENTRIES - 1].id}
        older = urlencode({name: value for name, value in filters.items() if value})
    context = {"entries": entries[:_ENTRIES], "older": older, "who": who, "outcome": outcome}
    return page(request, "operate/audit.html", context | shown_to(session.caller))


def _tokens(session: Session, holding: str = "") -> Narrowed[TokenBody]:
    newest = session.tokens.list()[::-1]
    return narrowed(newest, holding, lambda token: f"{token.name}\n{token.user}")


def _roles_of(form: Form) -> tuple[str, ...]:
    """The roles that a form ticks; commas may separate several."""
    return tuple(name for text in form.all("roles") for name in names(text))


def _new_token(form: Form) -> NewToken:
    fields = {name: text for name in ("name", "user", "scope", "days") if (text := form.get(name))}
    return checked(NewToken, **fields)


def _new_user(form: Form) -> NewUser:
    fields: dict[str, object] = {"name": form.get("name"), "roles": _roles_of(form)}
    if password := form.get("password"):
        fields["password"] = password
    return checked(NewUser, **fields)
