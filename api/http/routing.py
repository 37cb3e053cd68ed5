"""Finds the route that answers a request: once, before everything else.

The route that is found here is the one that answers (`Dispatch`): no piece of middleware can take a
request for another route's.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from fastapi import APIRouter, Depends, FastAPI
from fastapi.routing import APIRoute
from starlette._utils import get_route_path
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import BaseRoute, Match
from starlette.routing import Route as StarletteRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from api.http.middleware.known_parameters import check_parameters
from api.http.rules import Api, Rule
from api.services.accounts.callers import Permission
from catalog.accounts.accounts import SCOPES

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_FOUND = "framesift.route"

_ATTRIBUTES = ("example", "answers", "refuses")
"""Attributes of Route that a decorator passes on."""

_Endpoint = TypeVar("_Endpoint", bound=Callable[..., Any])


class Route(APIRoute):
    """A route of FastAPI's that knows its rule, and what the OpenAPI document tells of it."""

    rule: Rule
    example: Any = None
    """A body that could be sent."""
    examples: Mapping[str, Any] = {}  # which nobody changes
    """Values of parameters, by their names."""
    answers: Mapping[int | str, Mapping[str, Any]] = {}
    """What it answers, by status, in place of what FastAPI finds."""
    refuses: bool = False
    """Whether it always refuses, and no good answer is told."""
    takes_if_match: bool = False
    """Whether it changes the version only that If-Match names."""


class AsgiRoute(StarletteRoute):
    """An ASGI application at one path, with its rule."""

    def __init__(self, path: str, app: ASGIApp, methods: list[str], rule: Rule) -> None:
        """Answer these methods."""
        super().__init__(path, app, methods=methods, include_in_schema=False)
        self.rule = rule


class Router(APIRouter):
    """Routes of one prefix; each is declared with its rule."""

    def __init__(
        self,
        *,
        api: Api = Api.V1,
        examples: Mapping[str, Any] | None = None,
        route_class: type[Route] = Route,
        **options: Any,
    ) -> None:
        """None yet.

        Args:
            api: Whose conventions they follow.
            examples: Values of their parameters, for the OpenAPI document.
            options: As fastapi.APIRouter takes them.
        """
        checks = [Depends(check_parameters)] if api is Api.V1 else []
        super().__init__(route_class=route_class, dependencies=checks, **options)
        self.api, self.examples = api, examples or {}

    def get(  # type: ignore[override]  # a rule is no option
        self, path: str, *, rule: Rule, **options: Any
    ) -> Callable[[_Endpoint], _Endpoint]:
        """Declare a route of GET; so do the others of their methods.

        Args:
            path: Below the router's prefix.
            rule: What holds for it.
            options: ``example``, ``answers`` and ``refuses`` (see `Route`), and what FastAPI takes.
        """
        return self._declared("GET", path, rule, options)

    def head(  # type: ignore[override]  # a rule is no option
        self, path: str, *, rule: Rule, **options: Any
    ) -> Callable[[_Endpoint], _Endpoint]:
        """See `get`."""
        return self._declared("HEAD", path, rule, options)

    def post(  # type: ignore[override]  # a rule is no option
        self, path: str, *, rule: Rule, **options: Any
    ) -> Callable[[_Endpoint], _Endpoint]:
        """See `get`."""
        return self._declared("POST", path, rule, options)

    def put(  # type: ignore[override]  # a rule is no option
        self, path: str, *, rule: Rule, **options: Any
    ) -> Callable[[_Endpoint], _Endpoint]:
        """See `get`."""
        return self._declared("PUT", path, rule, options)

    def patch(  # type: ignore[override]  # a rule is no option
        self, path: str, *, rule: Rule, **options: Any
    ) -> Callable[[_Endpoint], _Endpoint]:
        """See `get`."""
        return self._declared("PATCH", path, rule, options)

    def delete(  # type: ignore[override]  # a rule is no option
        self, path: str, *, rule: Rule, **options: Any
    ) -> Callable[[_Endpoint], _Endpoint]:
        """See `get`."""
        return self._declared("DELETE", path, rule, options)

    def _declared(
        self, method: str, path: str, rule: Rule, options: dict[str, Any]
    ) -> Callable[[_Endpoint], _Endpoint]:
        of_discover = self.api is Api.DISCOVER
        attributes = {name: options.pop(name) for name in _ATTRIBUTES if name in options}
        own = replace(rule, api=self.api, compressed=rule.compressed and not of_discover)

        def declare(endpoint: _Endpoint) -> _Endpoint:
            self.add_api_route(path, endpoint, methods=[method], **options)
            route = self.routes[-1]
            assert isinstance(route, Route)
            route.rule, route.examples = own, self.examples
            vars(route).update(attributes)
            dependants = (route.dependant, *route.dependant.dependencies)
            headers = (header.alias for each in dependants for header in each.header_params)
            route.takes_if_match = "If-Match" in headers
            return endpoint

        return declare


@dataclass(frozen=True)
class Found:
    """The route of a request."""

    rule: Rule
    """What holds for the request, also where no route answers it."""
    route: BaseRoute | None = None
    """It; None where the server has no such path."""
    answers: bool = False
    """Whether it answers the request's method."""
    scope: Scope = field(default_factory=dict)
    """What it adds to the request's scope."""

    @property
    def template(self) -> str:
        """The route's path; empty where there is none."""
        return str(getattr(self.route, "path", ""))


def add_routers(app: FastAPI, routers: Iterable[Router]) -> None:
    """Have an application answer these routes, each found once for each request.

    Raises:
        TypeError: One was declared without a rule.
    """
    services = []
    for router in routers:
        for route in router.routes:
            if not isinstance(getattr(route, "rule", None), Rule):
                raise TypeError(f"{route!r}: declare its rule, as in router.get(PATH, rule=READ)")
        app.router.routes.extend(router.routes)
        if router.api is not Api.V1 and router.prefix:
            services.append((router.prefix, router.api))
    app.state.services = tuple(services)
    app.router.middleware_stack = Dispatch(app.router.middleware_stack)


def find(scope: Scope) -> Found:
    """Look for a request's route, as Starlette does, and keep it in the scope."""
    match = scope[_FOUND] = _found(scope)
    return match


def find_none(scope: Scope) -> None:
    """Keep in the scope that no route answers the request: its error has its service's shape."""
    scope[_FOUND] = Found(_rule_of_nothing(scope))


def found_of(scope: Scope) -> Found:
    """The match of `find`; of a request that was answered before, the strictest rule."""
    match: Found | None = scope.get(_FOUND)
    return match or _NOT_LOOKED_FOR


_NOT_LOOKED_FOR = Found(Rule(Permission("admin", all_rows=True), changes=True))


def rule_of(scope: Scope) -> Rule:
    """The rule of a request's route."""
    return found_of(scope).rule


def _found(scope: Scope) -> Found:
    app = scope.get("app")
    other: tuple[BaseRoute, Scope] | None = None
    for route in _candidates(app, get_route_path(scope)) if app is not None else ():
        match, added = route.matches(scope)
        if match is Match.FULL:
            return Found(_rule(route, scope), route, True, added)
        if match is Match.PARTIAL and other is None:
            other = route, added
    if other is None:
        return Found(_rule_of_nothing(scope))
    if scope["method"] == "HEAD":
        by_get = _found({**scope, "method": "GET"})
        if by_get.answers:
            return replace(by_get, answers=False)
    route, added = other
    return Found(_of_other_methods(_rule(route, scope), scope["method"]), route, False, added)


@dataclass(frozen=True)
class _RoutesByStart:
    """Routes by the first two parts of their paths: patterns of 200 take 0.5 ms a request."""

    routes: tuple[BaseRoute, ...]
    """All of them, in their order."""
    of_start: Mapping[str, Sequence[BaseRoute]]
    """Those that may match a path that starts so."""
    of_others: Sequence[BaseRoute]
    """Those that may match any path."""

    @staticmethod
    def of(routes: tuple[BaseRoute, ...]) -> "_RoutesByStart":
        starts = [_start_of(getattr(route, "path", "{")) for route in routes]
        of_start = {
            start: [
                route
                for route, own in zip(routes, starts, strict=True)
                if own == start or "{" in own
            ]
            for start in {*starts, "{"}
        }
        return _RoutesByStart(routes, of_start, of_start["{"])


def _start_of(path: str) -> str:
    return "/".join(path.split("/", 3)[:3])


def _candidates(app: FastAPI, path: str) -> Sequence[BaseRoute]:
    """The routes that may match a path, in their order."""
    known: _RoutesByStart | None = getattr(app.state, "routes_by_start", None)
    routes = app.router.routes
    if known is None or len(known.routes) != len(routes):
        known = app.state.routes_by_start = _RoutesByStart.of(tuple(routes))
    return known.of_start.get(_start_of(path), known.of_others)


def _rule(route: BaseRoute, scope: Scope) -> Rule:
    """A route's rule; of what is not ours, such as a mounted application, the strictest."""
    rule = getattr(route, "rule", None)
    return rule if isinstance(rule, Rule) else _rule_of_nothing(scope)


def _rule_of_nothing(scope: Scope) -> Rule:
    """The rule of a path that no route answers: it is taken for every row of the catalog."""
    changes = scope["method"] not in _SAFE
    permission = Permission("write" if changes else "read", all_rows=True)
    return Rule(permission, changes, api=_api_of_nothing(scope))


def _api_of_nothing(scope: Scope) -> Api:
    """The API whose errors a path gets that no route answers: a page's, where one may be meant."""
    app, path = scope.get("app"), scope["path"]
    services: Iterator[tuple[str, Api]] = iter(getattr(app.state, "services", ()) if app else ())
    return next(
        (api for prefix, api in services if path == prefix or path.startswith(f"{prefix}/")),
        Api.V1 if scope["method"] not in _SAFE or (f"{path}/").startswith("/v1/") else Api.WEB,
    )


def _of_other_methods(rule: Rule, method: str) -> Rule:
    """The rule for a method that no route of the path answers: it reads and changes nothing.

    Where the path is open, it is not audited either: strangers would fill the disk.
    """
    permission = rule.permission
    changes = method not in _SAFE and permission is not None
    if changes and permission is not None:
        level = max(permission.level, "write", key=SCOPES.index)
        permission = replace(permission, level=level)
    return rule.but(
        permission=permission, changes=changes, idempotency_key="ignores", audited_as=""
    )


class Dispatch:
    """Middleware of the router: has the route answer that was found for the request.

    What a client left before it had all come is no request, and ends here: nothing was done, and
    there is nobody to be answered.
    """

    def __init__(self, router: ASGIApp) -> None:
        """Wrap a router, which is left what is no HTTP."""
        self._router = router

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request.

        Raises:
            HTTPException: 404, there is no such path; 405, it does not answer the method.
        """
        if scope["type"] != "http":
            await self._router(scope, receive, send)
            return
        match = found_of(scope)
        if match.route is None:
            raise HTTPException(404)
        scope.update(match.scope)
        with suppress(ClientDisconnect):
            await match.route.handle(scope, receive, send)
