"""Errors of pages: the problem document as a page in plain words, for browsers alone."""

import json
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from api.http.routing import rule_of
from api.http.rules import Api
from api.web.labels import labelled, labels_of
from api.web.pages import HEADERS, NAVIGATION, elsewhere, is_part, page, prefers_html, takes_html
from api.web.plain_words import in_plain_words

LOGIN = "/login"

_TITLES = {
    400: "This cannot be used as it is", 401: "This address is for programs",
    403: "You may not do this", 404: "Not found",
    405: "This page does not take that", 409: "This does not go with what is there",
    412: "It was changed meanwhile", 413: "This is too much at once",
    415: "This cannot be used as it is", 422: "This cannot be used as it is",
    429: "Too many requests at once", 500: "Something went wrong on the server",
    502: "A service behind this server failed", 503: "The server cannot answer now",
    507: "The server could not use its files",
}  # fmt: skip

_SECTIONS = {
    "/new-dataset": "/datasets", "/datasets": "/datasets", "/new-job": "/jobs", "/jobs": "/jobs",
    "/operate": "/operate",
}  # fmt: skip
"""The page of the navigation that paths belong to, by their beginnings."""


def for_browser(request: Request, problem: JSONResponse) -> Response:
    """A problem as the client reads it: a page where a page was asked for, else as it is.

    Of REST a page where a browser opens the address; its login does not count there.

    Who is not logged in is led to the login, and from there to where they wanted to go.
    """
    api = rule_of(request.scope).api
    of_rest = api is Api.V1 and request.method == "GET" and prefers_html(request)
    if not of_rest and (api is not Api.WEB or not takes_html(request)):
        return problem
    # What the audit log notes is the error, and not that a browser is led elsewhere.
    if (of_request := getattr(request.state, "context", None)) is not None:
        of_request.problem = problem.status_code
    body = json.loads(bytes(problem.body))
    if problem.status_code == 401 and not of_rest:
        if is_part(request):
            return Response(status_code=401, headers={**HEADERS, "HX-Redirect": LOGIN})
        target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return elsewhere(f"{LOGIN}?next={quote(target, safe='/')}")
    headers = {
        name: value
        for name, value in problem.headers.items()
        if name not in ("content-type", "content-length")
    }
    template = "_problem.html" if is_part(request) else "problem.html"
    if of_rest:
        headers["Vary"] = "Accept"
    context = _told(body, request) | {"ways": _ways_back(request)}
    return page(request, template, context, status=problem.status_code, headers=headers)


def _told(problem: dict[str, Any], request: Request) -> dict[str, Any]:
    """Title, detail, number and field of a problem document as a page says them."""
    status = problem["status"]
    title = _TITLES.get(status) or HTTPStatus(status).phrase
    is_unexpected = problem["title"] == "InternalError"
    detail, field = "Its log says more.", ""
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        of_form = rule_of(request.scope).api is Api.WEB
        detail = (
            "The address is where a form is sent to, and no page: open the form's page."
            if of_form
            else "The address takes what programs send, and is no page."
        )
    elif status == HTTPStatus.UNAUTHORIZED:
        detail = (
            "It takes a token that a program sends, and no browser's login, which opens the pages "
            "alone."
        )
    elif not is_unexpected:
        path, form = request.url.path, getattr(request.state, "form", None)
        kind = form.get("kind") if form is not None else ""
        labels = labels_of(path, kind)
        said = labelled(problem["detail"], labels, of_job=path.startswith("/new-job"))
        detail, field = in_plain_words(said.text), said.field
    is_ours = status >= HTTPStatus.INTERNAL_SERVER_ERROR
    number = problem.get("request_id", "") if is_ours else ""
    return {"title": title, "detail": detail, "number": number, "field": field}


def _ways_back(request: Request) -> list[tuple[str, str]]:
    """Path and text of links: the page before, the list that the path is of, and Find."""
    path = request.url.path
    ways = []
    referer = urlsplit(request.headers.get("referer", ""))
    before = referer.path + (f"?{referer.query}" if referer.query else "")
    is_own = referer.netloc == request.headers.get("host") and before.startswith("/")
    if is_own and before[1:2] != "/" and before != request.url.path:
        ways.append((before, "Back to the page before"))
    titles = dict(NAVIGATION)
    section = next((to for start, to in _SECTIONS.items() if path.startswith(start)), "/")
    ways += [(to, titles[to]) for to in dict.fromkeys((section, "/"))]
    return ways
