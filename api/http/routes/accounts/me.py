"""/v1/me: the caller, and their own password."""

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool

from api.http.dependencies import CurrentContext, CurrentSession
from api.http.middleware.authentication import Authentication
from api.http.routing import Router
from api.http.rules import OWN_ACCOUNT, READ
from api.schemas.accounts.users import MeBody, OwnPassword
from catalog.errors import InvalidInput

router = Router(prefix="/v1/me", tags=["users"])


@router.get("", rule=READ)
async def get_me(session: CurrentSession) -> MeBody:
    """The caller, and what they may do with this token."""
    return session.users.me()


@router.put(
    "/password",
    rule=OWN_ACCOUNT,
    status_code=204,
    example={
        "current": "the one until now",
        "password": "the one from now on",
    },
)
async def put_password(
    body: OwnPassword, request: Request, session: CurrentSession, context: CurrentContext
) -> Response:
    """Change one's own password, by the one until now; it ends what was logged in."""
    if not session.caller.user:
        raise InvalidInput("this server does not authenticate: you have no password here")
    authentication: Authentication = request.state.authentication
    await authentication.prove(context, session.caller.user, body.current.get_secret_value())
    password = body.password.get_secret_value()
    await run_in_threadpool(session.users.set_own_password, password)
    return Response(status_code=204)
