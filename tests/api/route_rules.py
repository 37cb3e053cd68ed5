"""The rules of an application's routes, as tests ask for them: by method and path."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fastapi import FastAPI
from starlette.routing import Route

from api.app import create_app
from api.http.routing import find
from api.http.rules import Rule
from api.settings import Settings

DISCOVER = (
    "/auth/v1", "/db2whrest/v1", "/policyengine/v1", "/connmgr/v1", "/api/application/v1",
)  # fmt: skip
"""Spectrum Discover's services."""


def below(path: str, prefixes: tuple[str, ...]) -> bool:
    """Return whether a path is one of these or lies below it."""
    return any(path == prefix or path.startswith(f"{prefix}/") for prefix in prefixes)


@cache
def application() -> FastAPI:
    """An application that is never started."""
    return create_app(Settings(home=Path("/nowhere")))


def rules() -> dict[tuple[str, str], Rule]:
    """By method and path, of every route."""
    declared: dict[tuple[str, str], Rule] = {}
    for route in application().router.routes:
        assert isinstance(route, Route)
        rule: Rule = route.rule  # type: ignore[attr-defined]
        declared |= {(method, route.path): rule for method in sorted(route.methods or ())}
    return declared


OPEN = {path for (_, path), rule in rules().items() if rule.permission is None}
"""Paths for which nobody is asked who they are."""


@dataclass(frozen=True)
class Need:
    """The permission that a request needs."""

    level: str
    all_rows: bool
    changes: bool


def need_of(method: str, path: str) -> Need:
    """The need of a request, whether a route answers it or not."""
    rule = find({"type": "http", "app": application(), "method": method, "path": path}).rule
    assert rule.permission is not None
    return Need(rule.permission.level, rule.permission.all_rows, rule.changes)
