"""The user whom a trusted proxy names by a header: docs/decisions/0121."""

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from api.settings import Settings
from catalog.errors import InvalidInput

PROXY_USERS = "framesift.proxy_users"
"""Key of a request's scope: what its headers of that name hold, where a proxy sent them."""


class ProxyUser:
    """Notes a header of connections from proxies; others' says nothing."""

    def __init__(self, app: ASGIApp, proxies: ProxyHeadersMiddleware, header: str) -> None:
        """Wrap what changes the client's address to that which a proxy names."""
        self._app, self._proxies = app, proxies.trusted_hosts
        self._header = header.lower().encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through."""
        if scope["type"] == "http" and (scope.get("client") or ("",))[0] in self._proxies:
            scope[PROXY_USERS] = tuple(
                value.decode("latin-1").strip()
                for name, value in scope["headers"]
                if name == self._header
            )
        await self._app(scope, receive, send)


def behind_proxies(app: ASGIApp, settings: Settings, *, authenticates: bool = True) -> ASGIApp:
    """An application that believes trusted proxies what they say of clients, and of users.

    Raises:
        InvalidInput: A header for users is set without proxies that may send it, or for a server
            that does not authenticate.
    """
    proxies, header = settings.trusted_proxies, settings.trusted_user_header
    if header and not authenticates:
        raise InvalidInput(
            f"FRAMESIFT_TRUSTED_USER_HEADER={header} with --no-auth: everybody may do everything, "
            "whoever a proxy names; unset it, or leave --no-auth out"
        )
    if header and (not proxies or "*" in proxies):
        raise InvalidInput(
            f"FRAMESIFT_TRUSTED_USER_HEADER={header}: name the addresses of the proxies that send "
            "it in FRAMESIFT_TRUSTED_PROXIES; anybody else could be everybody"
        )
    if not proxies:
        return app
    believing = ProxyHeadersMiddleware(app, [*proxies])  # type: ignore[arg-type]
    if not header:
        return believing  # type: ignore[return-value]
    return ProxyUser(believing, believing, header)  # type: ignore[arg-type]
