"""The cookie of a browser that is logged in: it holds a token, and pages of HTML alone take it.

The token is the user's own where one was pasted, so that revoking it ends the session, and a new
one where a password or a link logged in. Sessions live through restarts of the server: tokens do.
"""

from datetime import timedelta

from starlette.datastructures import Headers
from starlette.requests import Request, cookie_parser
from starlette.responses import Response

LASTS = timedelta(hours=12)
"""A session that began with a password or a link."""


def cookie_name(headers: Headers) -> str:
    """The cookie's name, with the port: browsers send a host's cookies to all of its ports."""
    port = headers.get("host", "").rpartition("]")[2].partition(":")[2]
    return f"framesift-{port}" if port.isdecimal() else "framesift"


def token_in(headers: Headers) -> str:
    """The token that a browser sends; "" where it sends none."""
    return cookie_parser(headers.get("cookie", "")).get(cookie_name(headers), "")


def begin(request: Request, answer: Response, token: str) -> None:
    """Have the browser keep a token and send it to this server alone, to no script."""
    answer.set_cookie(
        cookie_name(request.headers), token, max_age=int(LASTS.total_seconds()), path="/",
        secure=request.url.scheme == "https", httponly=True, samesite="lax",
    )  # fmt: skip


def end(request: Request, answer: Response) -> None:
    """Have the browser forget the token."""
    answer.delete_cookie(
        cookie_name(request.headers), path="/",
        secure=request.url.scheme == "https", httponly=True, samesite="lax",
    )  # fmt: skip
