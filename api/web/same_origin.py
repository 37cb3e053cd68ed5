"""Middleware against changes that another site's page has a browser ask for (CSRF).

Browsers say which page a request comes from: by Sec-Fetch-Site where the connection is
trustworthy, by Origin with every POST. Nothing that runs in a page can change these headers. The
session's cookie is SameSite=Lax besides.

Source: OWASP, Cross-Site Request Forgery Prevention, "Fetch Metadata" and "Verifying Origin".
"""

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from api.http.errors import refusal
from api.http.routing import rule_of
from api.http.rules import Api
from catalog.errors import NotAllowed

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


class SameOrigin:
    """The middleware: 403 for a page's POST that does not come from a page of this server."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap an application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if scope["type"] != "http" or scope["method"] in _SAFE or _is_let_through(scope):
            await self._app(scope, receive, send)
            return
        error = NotAllowed(
            "Origin: this request comes from no page of this server; open the page here and send "
            "it again (programs: ask /v1, with a token)"
        )
        await refusal(scope, error)(scope, receive, send)


def _is_let_through(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    # A token in a header was put there by a program: browsers add none by themselves.
    if rule_of(scope).api is not Api.WEB or "authorization" in headers or "x-auth-token" in headers:
        return True
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    try:
        origin = urlsplit(headers.get("origin", "")).netloc
    except ValueError:
        return False
    return bool(origin) and origin.lower() == headers.get("host", "").lower()
