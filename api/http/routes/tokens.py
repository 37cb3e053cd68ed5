"""/v1/tokens: one's own tokens; an admin's are everybody's."""

from datetime import timedelta
from typing import Annotated

from fastapi import Query, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ConfigDict, Field

from api.http.dependencies import CurrentCaller, CurrentPassage, CurrentWorkspace
from api.http.pages import CurrentPage
from api.http.routing import Router
from api.http.rules import OWN_ACCOUNT, READ
from api.schemas.base import PageAnswer
from api.schemas.people import NewTokenBody, TokenBody
from api.services.callers import Caller
from catalog.accounts import tokens
from catalog.accounts.accounts import MOST_DAYS
from catalog.accounts.tokens import SCOPES
from catalog.errors import InvalidInput, NotAllowed
from catalog.records.store import RecordStore
from catalog.text.bounded import Name

router = Router(prefix="/v1/tokens", tags=["users"])

DAYS = 365


class NewToken(BaseModel):
    """A token to be made."""

    model_config = ConfigDict(extra="forbid")

    name: Name = Field(examples=["notebook"])
    scope: Name = Field(default="read", description="read, write or admin; each has those before.")
    days: int = Field(default=DAYS, ge=1, le=MOST_DAYS, description="Until it expires.")
    user: Name | None = Field(default=None, description="Whose; one's own where it is left out.")


class TokensAnswer(PageAnswer):
    """Tokens, oldest first."""

    tokens: list[TokenBody]


@router.get("", rule=READ.but(compressed=False))
async def get_tokens(
    caller: CurrentCaller,
    workspace: CurrentWorkspace,
    page: CurrentPage,
    user: Annotated[str | None, Query(description="Only this user's.")] = None,
) -> TokensAnswer:
    """Tokens with a name; those of logins go by themselves after an hour."""
    whose = user if caller.may("admin") else caller.user
    if user not in (None, whose):
        raise _not_yours(caller)
    found = await run_in_threadpool(tokens.listed, workspace.records, whose)
    shown, follows = page.page_of_all("tokens", found, lambda each: (each[0].id,), int)
    return TokensAnswer(tokens=[TokenBody.of(token, name) for token, name in shown], next=follows)


@router.post(
    "",
    rule=OWN_ACCOUNT.but(idempotency_key="refuses", compressed=False),
    status_code=201,
    example={"name": "notebook", "scope": "read", "days": 30},
)
async def post_token(
    wanted: NewToken,
    caller: CurrentCaller,
    workspace: CurrentWorkspace,
    passage: CurrentPassage,
    response: Response,
) -> NewTokenBody:
    """Make a token. It takes a password, or a token that may do everything its user may."""
    whose = wanted.user or caller.user
    passage.about = f"token {wanted.name} of {whose}: scope {wanted.scope}, {wanted.days} days"
    if not whose:
        raise InvalidInput("user: say whose token it is; this server asks nobody who they are")
    if not caller.may("admin"):
        if whose != caller.user:
            raise _not_yours(caller)
        if not caller.logged_in:
            raise NotAllowed("a token makes no tokens: log in with the password to make one")
        if wanted.scope in tokens.SCOPES and not caller.may(wanted.scope):
            raise NotAllowed(f"scope {wanted.scope}: user '{caller.user}' may {caller.level} only")
    token, text = await run_in_threadpool(
        tokens.create,
        workspace.records,
        whose,
        wanted.name,
        wanted.scope,
        timedelta(days=wanted.days),
    )
    response.headers["Location"] = f"/v1/tokens/{token.id}"
    response.headers["Cache-Control"] = "no-store"  # it holds the token
    return NewTokenBody(**TokenBody.of(token, whose).model_dump(), token=text)


@router.get("/{number}", rule=READ.but(compressed=False))
async def get_token(number: int, caller: CurrentCaller, workspace: CurrentWorkspace) -> TokenBody:
    """A token, without what it is made of."""
    token, user = await run_in_threadpool(tokens.found, workspace.records, number)
    if not caller.may("admin") and user != caller.user:
        raise _not_yours(caller)
    return TokenBody.of(token, user)


@router.delete("/{number}", rule=OWN_ACCOUNT.but(compressed=False))
async def delete_token(
    number: int, caller: CurrentCaller, workspace: CurrentWorkspace, passage: CurrentPassage
) -> TokenBody:
    """Revoke a token: it counts no more, and stays in the list.

    With a token one revokes those of its scope and lower ones, itself included.
    """
    revoked = await run_in_threadpool(_revoked, workspace.records, number, caller)
    passage.about = f"token {revoked.name} of {revoked.user}: revoked"
    return revoked


def _revoked(records: RecordStore, number: int, caller: Caller) -> TokenBody:
    if not caller.may("admin"):
        token, user = tokens.found(records, number)
        if user != caller.user:
            raise _not_yours(caller)
        if SCOPES.index(token.scope) > SCOPES.index(caller.scope):
            raise NotAllowed(
                f"token {number} has scope {token.scope}, and a token of scope {caller.scope} "
                "revokes none of a higher one: log in with the password to revoke it"
            )
    return TokenBody.of(*tokens.revoke(records, number))


def _not_yours(caller: Caller) -> NotAllowed:
    return NotAllowed(f"user '{caller.user}' may see and change their own tokens only")
