"""Errors of pages: the problem document as a page, for browsers alone."""

import json
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from api.http.routing import rule_of
from api.http.rules import Api
from api.web.pages import HEADERS, elsewhere, is_part, page, takes_html

LOGIN = "/login"


def for_browser(request: Request, problem: JSONResponse) -> Response:
    """A problem as the client reads it: a page where a page was asked for, else as it is.

    Who is not logged in is led to the login, and from there to where they wanted to go.
    """
    if rule_of(request.scope).api is not Api.WEB or not takes_html(request):
        return problem
    # What the audit log notes is the error, and not that a browser is led elsewhere.
    if (of_request := getattr(request.state, "context", None)) is not None:
        of_request.problem = problem.status_code
    body = json.loads(bytes(problem.body))
    if problem.status_code == 401:
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
    return page(request, template, {"problem": body}, status=problem.status_code, headers=headers)
