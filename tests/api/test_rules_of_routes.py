"""Every route has its rule; the table of all of them is there for a reviewer to read."""

import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from starlette.routing import Match, Route

from api.app import create_app
from api.http.routing import Router, add_routers, find
from api.http.rules import READ, Rule
from api.services.accounts.callers import Permission
from api.settings import Settings
from catalog.accounts import audit_log
from tests.api.route_rules import application, rules
from tests.pipeline.homes import copy_home, open_home

TABLE = Path(__file__).with_name("rules_of_routes.txt")
COLUMNS = ("method", "path", "level", "rows", "effect", "work", "body", "key", "coding", "api",
           "notes")  # fmt: skip


def row(method: str, path: str, rule: Rule) -> tuple[str, ...]:
    """A line of the table."""
    permission = rule.permission or Permission("-", all_rows=False)
    return (
        method, path, permission.level,
        "all" if permission.all_rows else "seen" if rule.permission else "-",
        "changes" if rule.changes else "reads", rule.work, rule.body,
        {"takes": "key", "refuses": "no-key", "ignores": "-"}[rule.idempotency_key],
        "compressed" if rule.compressed else "plain", rule.api.value,
        rule.audited_as or ("accounts" if rule.accounts else "-"),
    )  # fmt: skip


def test_the_table_of_rules_is_what_the_routes_say() -> None:
    """A changed rule changes a line of rules_of_routes.txt: read it as a change of permissions.

    The columns: what the caller must be allowed ("-": no credentials are asked for); whether the
    answer may be of all rows, or is of those that the caller may see; the kind of work; the largest
    body; Idempotency-Key taken ("key"), refused, or ignored; whether answers are compressed; whose
    conventions it follows; whether it decides who is let in, or is noted as a login.
    """
    table = [row(method, path, rule) for (method, path), rule in rules().items()]
    table = [COLUMNS, *sorted(table, key=lambda each: (each[1], each[0]))]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(each, widths, strict=True)).rstrip()
        for each in table
    ]
    assert lines == TABLE.read_text().splitlines()


def test_a_path_finds_the_route_that_is_the_first_to_match_it() -> None:
    """Routes are looked for by the start of a path only; paths that begin alike are neighbours."""
    app = application()
    templates = {route.path for route in app.router.routes if isinstance(route, Route)}
    paths = {re.sub(r"\{[^}]*\}", "7", template) for template in templates}
    neighbours = {f"{path}{end}" for path in paths for end in ("/", "x", "/x", "/x/y")}
    for path in (*paths, *neighbours, "", "/", "//", "/v1", "/v1/", "//v1/sql"):
        scope = {"type": "http", "method": "GET", "path": path, "app": app, "headers": []}
        matches = [route.matches(scope)[0] for route in app.router.routes]
        first = next((kind for kind in (Match.FULL, Match.PARTIAL) if kind in matches), None)
        expected = None if first is None else app.router.routes[matches.index(first)]
        assert find(scope).route is expected, path


def test_a_route_without_a_rule_is_refused_when_the_application_is_made() -> None:
    """However it came to a router."""
    router = Router(prefix="/v1/later")
    router.add_api_route("", lambda: None)
    with pytest.raises(TypeError, match=r"/v1/later.*rule=READ"):
        add_routers(application(), [router])
    with pytest.raises(TypeError, match="rule"):
        router.get("/x")  # type: ignore[call-arg]


def test_tools_of_assistants_need_no_more_than_their_routes() -> None:
    """They say so by READ: the routes that answer the same must say the same."""
    of = rules()
    for method, path in (
        ("GET", "/v1/classes"), ("POST", "/v1/sql"), ("POST", "/v1/selections"),
        ("GET", "/v1/statistics/histogram"), ("GET", "/v1/datasets/{name}/gaps"),
        ("GET", "/v1/datasets/{name}"), ("GET", "/v1/datasets"), ("GET", "/v1/images/{fkey:path}"),
        ("GET", "/v1/labels/{fkey:path}"), ("GET", "/v1/overlays/{fkey:path}"), ("POST", "/mcp"),
    ):  # fmt: skip
        assert of[method, path].permission == READ.permission, path


def test_strangers_do_not_fill_the_audit_log(catalogued: Path, tmp_path: Path) -> None:
    """By methods that an open path has not: nothing refuses these, so nothing would count them."""
    home = copy_home(catalogued, tmp_path)
    records = open_home(home).records
    client = TestClient(create_app(Settings(home=home, cache=None)))
    with client:
        for method, path, status in (
            ("OPTIONS", "/auth/v1/token", 204), ("PUT", "/auth/v1/token", 405),
            ("DELETE", "/healthz", 405), ("BREW", "/docs", 405),
        ):  # fmt: skip
            assert client.request(method, path).status_code == status
        assert not audit_log.entries(records, limit=1)
        assert client.get("/auth/v1/token").status_code == 401
    (entry,) = audit_log.entries(records, limit=2)
    assert (entry.what, entry.outcome) == ("login", "401")
