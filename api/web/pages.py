"""A page of HTML: one base template, one set of headers, every value escaped.

Templates are Jinja's with escaping on, whatever their ending. Nothing stands in a page that the
policy below forbids: no script and no style within the HTML, nothing of another host. htmx's
attributes say what is asked for without leaving the page; `is_part` tells such a request.
"""

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from api.services.accounts.callers import NOBODY_ASKED
from api.web.moments import duration, moment
from api.web.plain_words import in_plain_words

NAVIGATION = (("/", "Find"), ("/datasets", "Build"), ("/jobs", "Run"), ("/operate", "Operate"))
"""Path and title of each page that the navigation names."""

STATIC = Path(__file__).with_name("static")

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # A part of a page has the page's URL: the browser must not take one for the other.
    "Cache-Control": "no-store",
}


def page(
    request: Request,
    template: str,
    context: Mapping[str, Any] | None = None,
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A page, or a part of one.

    Args:
        request: What is answered: templates know the caller by it.
        template: Name of a file in ``templates``.
        context: What it shows.
        status: Of the answer.
        headers: More of them.
    """
    of_request = getattr(request.state, "context", None)
    caller = of_request.caller if of_request is not None else None
    text = _templates().get_template(template).render(
        {
            "caller": caller,
            "user": caller.user if caller is not None else "",
            "may_log_out": _may_log_out(of_request),
            "may_write": caller is not None and caller.may("write") and caller.sees_all,
            "navigation": NAVIGATION,
            "here": request.url.path,
            "section": request.url.path,
            "version": request.app.version,
            **(context or {}),
        }
    )  # fmt: skip
    return HTMLResponse(text, status, {**HEADERS, **(headers or {})})


def _may_log_out(context: Any) -> bool:
    """Return whether a session ends by a logout: not that of a proxy, nor where nobody logs in."""
    is_known = context is not None and context.caller not in (None, NOBODY_ASKED)
    return is_known and not context.proxy_user


def elsewhere(path: str) -> Response:
    """Have the browser open a path of this server."""
    return RedirectResponse(path, 303, HEADERS)


def own_path(path: str) -> str:
    """The path to go on to; "/" where it might lead to another server."""
    is_own = path.startswith("/") and path[1:2] not in ("/", "\\") and path.isprintable()
    return path if is_own else "/"


def gone_on(request: Request, path: str) -> Response:
    """Have the browser open a path of this server after a form was sent, by htmx or without it."""
    if is_part(request):
        return Response(headers={**HEADERS, "HX-Redirect": path})
    return elsewhere(path)


def is_part(request: Request) -> bool:
    """Return whether a page asks for a part of itself, and no browser for a page."""
    headers = request.headers
    return "hx-request" in headers and "hx-history-restore-request" not in headers


def takes_html(request: Request) -> bool:
    """Return whether a browser asks: it names HTML, where programs take anything."""
    accept = ", ".join(request.headers.getlist("accept")).lower()
    return "text/html" in accept or "hx-request" in request.headers


def prefers_html(request: Request) -> bool:
    """Return whether a browser opens an address: it names HTML before all else, as no program does.

    What a page's script asks for, browsers tell apart by Sec-Fetch-Mode.
    """
    first = ", ".join(request.headers.getlist("accept")).partition(",")[0]
    is_first = first.partition(";")[0].strip().lower() == "text/html"
    return is_first and request.headers.get("sec-fetch-mode", "navigate") == "navigate"


@cache
def asset(name: str) -> str:
    """URL of a file in ``static``; it changes with the file, so that browsers may keep it."""
    digest = hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]
    return f"/static/{name}?v={digest}"


def _path_of(fkey: str) -> str:
    return quote(fkey, safe="/:")


def _value(value: object) -> str:
    """A tag's value as a caption has it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.5g}" if isinstance(value, float) else str(value)


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.globals["asset"] = asset
    environment.filters["path"] = _path_of
    environment.filters["value"] = _value
    environment.filters["plain_words"] = in_plain_words
    environment.filters["moment"] = moment
    environment.filters["duration"] = duration
    environment.filters["thousands"] = lambda number: f"{number:,}"
    return environment
