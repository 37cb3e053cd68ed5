"""/login/oidc: a browser logs in at the pages of the OpenID provider, and comes back."""

from typing import TYPE_CHECKING, Annotated

from fastapi import Query, Request
from fastapi.responses import RedirectResponse, Response

from api.http import browser_session
from api.http.middleware.authentication import Authentication
from api.http.routing import Router
from api.http.rules import OPEN, Api
from api.web.login_page import BY_PROVIDER, login_page
from api.web.pages import HEADERS, elsewhere, own_path
from api.workspace import Workspace
from catalog.errors import (
    FramesiftError,
    InvalidInput,
    NotAllowed,
    NotAuthenticated,
    NotFound,
    ProviderFails,
)

if TYPE_CHECKING:  # imported where a provider is set
    from cryptography.fernet import Fernet

    from api.services.accounts.provider_logins import ProviderLogins

router = Router(api=Api.WEB, include_in_schema=False)

_BACK = f"{BY_PROVIDER}/callback"

_LONGEST_TARGET = 2_000
"""Browsers keep cookies of up to 4,096 bytes."""


@router.get(BY_PROVIDER, rule=OPEN.but(compressed=False))
async def get_provider_login(
    request: Request, target: Annotated[str, Query(alias="next", max_length=20_000)] = "/"
) -> Response:
    """Have the browser open the provider's page, and keep what ties its way back to it."""
    from api.oidc.pending_login import LASTS_S, PendingLogin

    logins = _logins(request)
    back = str(request.url.replace(path=_BACK, query=""))
    pending = PendingLogin(back, own_path(target) if len(target) <= _LONGEST_TARGET else "/")
    try:
        url = await logins.flow.url(pending)
    except ProviderFails as error:
        return await login_page(request, target, wrong=error)
    answer = RedirectResponse(url, 303, HEADERS)
    answer.set_cookie(
        _cookie_name(request), pending.sealed(_cipher(request)), max_age=LASTS_S, path=BY_PROVIDER,
        secure=request.url.scheme == "https", httponly=True, samesite="lax",
    )  # fmt: skip
    return answer


@router.get(_BACK, rule=OPEN.but(compressed=False, audited_as="login"))
async def get_provider_answer(
    request: Request,
    code: Annotated[str, Query(max_length=8_000)] = "",
    state: Annotated[str, Query(max_length=200)] = "",
    iss: Annotated[str, Query(max_length=2_000)] = "",
    error: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Begin a session for the user that comes back, and go on to the page that was wanted."""
    from api.oidc.pending_login import PendingLogin

    _logins(request)
    cipher = _cipher(request)
    authentication: Authentication = request.state.authentication
    target = "/"
    try:
        sealed = request.cookies.get(_cookie_name(request), "")
        pending = PendingLogin.unsealed(cipher, sealed, state)
        target = pending.target
        if error or not code:
            raise _refused(error)
        token = await authentication.log_in_by_provider(request.state.context, pending, code, iss)
    except (NotAuthenticated, NotAllowed, InvalidInput, ProviderFails) as reason:
        answer = await login_page(request, target, wrong=reason)
    else:
        answer = elsewhere(target)
        browser_session.begin(request, answer, token)
    answer.delete_cookie(
        _cookie_name(request), path=BY_PROVIDER,
        secure=request.url.scheme == "https", httponly=True, samesite="lax",
    )  # fmt: skip
    return answer


def _refused(error: str) -> FramesiftError:
    if error == "access_denied":
        return NotAllowed("the provider says that you may not log in here (access_denied)")
    return NotAuthenticated(f"the provider logged nobody in: {error or 'it gave no code'}")


def _logins(request: Request) -> "ProviderLogins":
    logins: ProviderLogins | None = request.app.state.provider_logins
    if logins is None:
        raise NotFound("OpenID provider", "oidc", "FRAMESIFT_OIDC_ISSUER names one (docs/oidc.md)")
    return logins


def _cookie_name(request: Request) -> str:
    return f"{browser_session.cookie_name(request.headers)}-oidc"


def _cipher(request: Request) -> "Fernet":
    workspace: Workspace = request.app.state.workspace
    return workspace.secret_key.fernet(make=True)
