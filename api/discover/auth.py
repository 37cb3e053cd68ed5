"""/auth/v1: a token for a name and a password, as Spectrum Discover gives it."""

import json
from uuid import NAMESPACE_URL, uuid5

from fastapi import Request, Response

from api.http.errors import refusal
from api.http.login_path import SERVICE, TOKEN
from api.http.middleware.authentication import Authentication
from api.http.middleware.request_context import RequestContext
from api.http.openapi.discover import Responses, json_answer
from api.http.routing import Router
from api.http.rules import OPEN, READ, Api
from api.services.accounts.callers import NOBODY_ASKED
from catalog.accounts.accounts import ROLES
from catalog.errors import LoginThrottled, NotAuthenticated

router = Router(api=Api.DISCOVER, prefix=SERVICE, tags=["Spectrum Discover"])

_TOKEN: Responses = {
    200: {
        "description": "The token, and no body.",
        "headers": {
            "X-Auth-Token": {
                "description": "To be sent as Authorization: Bearer TOKEN.",
                "schema": {"type": "string"},
                "example": "fs_...",
            }
        },
    }
}


_TOKEN_HEADER = b"X-Auth-Token"
"""Clients compare it letter by letter, and Starlette's headers would write it in lower case."""

_NO_TOKEN = "nobody-is-asked"  # noqa: S105  # opens nothing
"""Stands for a token where a server does not authenticate: clients want one to send."""


@router.head(TOKEN, rule=OPEN.but(audited_as="login"), include_in_schema=False)
@router.get(
    TOKEN,
    rule=OPEN.but(audited_as="login"),
    response_class=Response,
    responses=_TOKEN | {401: {}, 429: {}},
)
async def get_token(request: Request) -> Response:
    """A token for an hour in the header X-Auth-Token, for name and password; no body."""
    authentication: Authentication = request.state.authentication
    context: RequestContext = request.state.context
    try:
        token = _NO_TOKEN if context.caller is NOBODY_ASKED else await authentication.login(context)
    except (NotAuthenticated, LoginThrottled) as error:
        return refusal(request.scope, error)
    answer = Response(media_type="text/html", headers={"Cache-Control": "no-store"})
    answer.raw_headers.append((_TOKEN_HEADER, token.encode()))
    return answer


@router.get(
    "/roles",
    rule=READ,
    answers=json_answer(
        {"roles": [{"domain_id": None, "id": "f9cacd949cce580d9fabf7ccabb97cda", "name": "admin"}]}
    ),
)
async def get_roles() -> Response:
    """The roles that a user may have."""
    roles = [
        {"domain_id": None, "id": uuid5(NAMESPACE_URL, f"framesift:role:{name}").hex, "name": name}
        for name in ROLES
    ]
    return Response(json.dumps({"roles": roles}), media_type="application/json")
