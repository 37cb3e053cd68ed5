"""The login page: by an OpenID provider, a token, a password, or a link of serve."""

from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from api.http.errors import status_of
from api.web.error_pages import LOGIN
from api.web.pages import own_path, page
from api.web.plain_words import in_plain_words
from catalog.errors import FramesiftError, ProviderFails

if TYPE_CHECKING:  # imported where a provider is set
    from api.services.accounts.provider_logins import ProviderLogins

BY_PROVIDER = f"{LOGIN}/oidc"
"""Where a login by the provider begins."""

LOGGED_OUT = f"{LOGIN}?left=1"
"""The page after a logout, which leads to the provider's own."""


async def login_page(
    request: Request,
    target: str,
    *,
    link: str = "",
    wrong: FramesiftError | None = None,
) -> Response:
    """The page.

    Args:
        request: What is answered.
        target: Path to go on to after the login.
        link: Of ``serve``.
        wrong: Why a login failed.
    """
    context = {
        "next": own_path(target),
        "link": link,
        "wrong": "" if wrong is None else in_plain_words(str(wrong)),
        "provider": await _provider(request, own_path(target)),
    }
    return page(request, "login.html", context, status=200 if wrong is None else status_of(wrong))


async def _provider(request: Request, target: str) -> dict[str, str] | None:
    """What the page says of the provider; None where there is none."""
    logins: ProviderLogins | None = request.app.state.provider_logins
    if logins is None:
        return None
    problem, logout = await logins.problem(), ""
    if not problem and request.query_params.get("left"):
        try:
            logout = await logins.flow.logout_url(str(request.url.replace(path=LOGIN, query="")))
        except ProviderFails as error:
            problem = str(error)
    return {
        "title": logins.title,
        "begin": f"{BY_PROVIDER}?next={quote(target, safe='/')}",
        "problem": problem,
        "logout": logout,
    }
