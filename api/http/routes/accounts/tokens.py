"""/v1/tokens: one's own tokens; an admin's are everybody's."""

from typing import Annotated

from fastapi import Query, Response

from api.http.conditions import Expected, tagged
from api.http.dependencies import CurrentContext, CurrentSession
from api.http.pages import CurrentPage
from api.http.routing import Router
from api.http.rules import OWN_ACCOUNT, READ
from api.schemas.accounts.tokens import NewToken, NewTokenBody, TokenBody, TokensAnswer

router = Router(prefix="/v1/tokens", tags=["users"])


@router.get("", rule=READ.but(compressed=False))
def get_tokens(
    session: CurrentSession,
    page: CurrentPage,
    user: Annotated[str | None, Query(description="Only this user's.")] = None,
) -> TokensAnswer:
    """Tokens with a name; those of logins go by themselves after an hour."""
    tokens = session.tokens.list(user=user)
    listed, follows = page.page_of_all("tokens", tokens, lambda token: (token.id,), int)
    return TokensAnswer(tokens=listed, next=follows)


@router.post(
    "",
    rule=OWN_ACCOUNT.but(idempotency_key="refuses", compressed=False),
    status_code=201,
    example={"name": "notebook", "scope": "read", "days": 30},
)
def post_token(
    body: NewToken, session: CurrentSession, context: CurrentContext, response: Response
) -> NewTokenBody:
    """Make a token. It takes a password, or a token that may do everything its user may."""
    whose = body.user or session.caller.user
    context.about = f"token {body.name} of {whose}: scope {body.scope}, {body.days} days"
    token = session.tokens.create(body.name, user=body.user, scope=body.scope, days=body.days)
    response.headers["Location"] = f"/v1/tokens/{token.id}"
    response.headers["Cache-Control"] = "no-store"  # it holds the token
    return token


@router.get("/{number}", rule=READ.but(compressed=False))
def get_token(number: int, session: CurrentSession, response: Response) -> TokenBody:
    """A token, without what it is made of."""
    return tagged(response, session.tokens.get(number))


@router.delete("/{number}", rule=OWN_ACCOUNT.but(compressed=False))
def delete_token(
    number: int, session: CurrentSession, context: CurrentContext, expected: Expected
) -> TokenBody:
    """Revoke a token: its requests are refused, and it stays in the list.

    With a token one revokes those of its scope and lower ones, itself included.
    """
    revoked = session.tokens.revoke(number, expected=expected)
    context.about = f"token {revoked.name} of {revoked.user}: revoked"
    return revoked
