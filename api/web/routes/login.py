"""/login and /logout: a browser's session, by a token, a password, or a link of serve."""

from typing import Annotated

from fastapi import Query, Request
from fastapi.responses import Response

from api.http import browser_session
from api.http.middleware.authentication import Authentication
from api.http.middleware.request_context import RequestContext
from api.http.routing import Router
from api.http.rules import OPEN, OWN_ACCOUNT, Api
from api.services.accounts.callers import NOBODY_ASKED
from api.web.error_pages import LOGIN
from api.web.forms import Form, form_of
from api.web.login_page import LOGGED_OUT, login_page
from api.web.pages import elsewhere, own_path
from catalog.errors import LoginThrottled, NotAuthenticated

router = Router(api=Api.WEB, include_in_schema=False)

_Next = Annotated[str, Query(alias="next", max_length=20_000)]


@router.get(LOGIN, rule=OPEN.but(compressed=False))
async def get_login(
    request: Request,
    target: _Next = "/",
    link: Annotated[str, Query(max_length=100)] = "",
) -> Response:
    """The form; with a link of ``serve`` a button that takes it: to look changes nothing."""
    context: RequestContext = request.state.context
    if context.caller is NOBODY_ASKED or context.proxy_user:
        return elsewhere(own_path(target))
    return await login_page(request, target, link=link)


@router.post(LOGIN, rule=OPEN.but(compressed=False, audited_as="login"))
async def post_login(request: Request) -> Response:
    """Begin a session, and go on to the page that was wanted."""
    form = await form_of(request)
    target = own_path(form.get("next"))
    try:
        token = await _token(request, form)
    except (NotAuthenticated, LoginThrottled) as error:
        return await login_page(request, target, wrong=error)
    answer = elsewhere(target)
    browser_session.begin(request, answer, token)
    return answer


async def _token(request: Request, form: Form) -> str:
    authentication: Authentication = request.state.authentication
    context: RequestContext = request.state.context
    lasts = browser_session.LASTS
    if link := form.get("link"):
        return await authentication.log_in_by_link(context, link, lasts)
    if name := form.get("name"):
        return await authentication.log_in(context, name, form.get("password"), lasts)
    token = form.get("token")
    await authentication.know(context, token)
    return token


@router.post("/logout", rule=OWN_ACCOUNT.but(compressed=False))
async def post_logout(request: Request) -> Response:
    """End the session; a token that was pasted goes on to count elsewhere."""
    authentication: Authentication = request.state.authentication
    await authentication.log_out(request.state.context)
    answer = elsewhere(LOGIN if request.app.state.provider_logins is None else LOGGED_OUT)
    browser_session.end(request, answer)
    return answer
