"""No way of writing a path gives anybody more than the path itself does."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from fastapi.routing import iter_route_contexts
from fastapi.testclient import TestClient
from starlette.middleware import Middleware

from api.app import create_app
from api.http import rules
from api.http.dependencies import CurrentSession
from api.http.routing import Router, add_routers, rule_of
from api.settings import Settings
from catalog.accounts import audit_log, tokens, users
from catalog.records.store import RecordStore
from tests.api.raw_http import exchange
from tests.api.route_rules import OPEN
from tests.api.servers import serving

CALLERS = [("dora", "dataadmin", "admin"), ("otto", "datauser", "read"), ("rita", "admin", "read")]
"""Name, role and scope: rights that end in a role, in both, and in a token."""

SPELLINGS = [
    "{}%0a", "{}%0d%0a", "{}%00", "{}%c2%85", "{}%e2%80%a8", "/%0a{}", "/{}", "{}/", "{};x",
    "{}%20", "{}/%2e%2e", "{}%2f", "/x/%2e%2e{}", "{}%3fx",
]  # fmt: skip


@pytest.fixture(scope="module")
def served(shared_home: Path) -> Iterator[tuple[str, RecordStore, dict[str, str]]]:
    """URL, records, and a token of each caller."""
    records = RecordStore(shared_home / "records" / "records.sqlite")
    secrets = {}
    for name, role, scope in CALLERS:
        users.add(records, name, [role], None)
        secrets[name] = tokens.create(records, name, "t", scope, timedelta(days=1))[1]
    (shared_home / "jobs").touch()  # jobs that are begun would outlive the server
    with serving(shared_home, authenticates=True) as (url, _):
        yield url, records, secrets


def places() -> list[tuple[str, str]]:
    """Every method and path of the application, filled in."""
    app = create_app(Settings(home=Path("/nowhere")))
    pairs = []
    for route in iter_route_contexts(app.router.routes):
        path = str(route.path).replace(":path}", "}").replace("{", "").replace("}", "")
        pairs += [(method, path) for method in sorted(route.methods or {"GET"})]
    return pairs


def spelled(path: str) -> list[str]:
    """The path written in other ways."""
    upper, first = path.upper(), path[1]
    slashes = "/" + path[1:].replace("/", "%2f")
    return [
        *(spelling.format(path) for spelling in SPELLINGS), upper, path.replace("/", "//"),
        f"/%{ord(first):02x}{path[2:]}", f"/%25{ord(first):02x}{path[2:]}", slashes,
    ]  # fmt: skip


@pytest.mark.wide
@pytest.mark.parametrize("name", [name for name, _, _ in CALLERS])
def test_no_spelling_succeeds_where_the_path_is_refused(
    served: tuple[str, RecordStore, dict[str, str]], name: str
) -> None:
    """Every route that the caller is refused at (403), in every spelling."""
    url, _, secrets = served
    refused = 0
    with httpx.Client(headers={"Authorization": f"Bearer {secrets[name]}"}, timeout=300) as client:
        for method, path in places():
            if path in OPEN or path.endswith("/events"):
                continue
            if client.request(method, url + path).status_code != 403:
                continue
            refused += 1
            for written in spelled(path):
                answer = client.request(method, httpx.URL(url, raw_path=written.encode()))
                assert answer.status_code in (400, 403, 404, 405, 422), (method, written)
    assert refused > 5


def test_no_user_is_made_by_a_line_feed(
    served: tuple[str, RecordStore, dict[str, str]],
) -> None:
    """The request by which a dataadmin became an admin."""
    url, records, secrets = served
    evil = {"name": "evil", "roles": ["admin"], "password": "pw-evil-12345"}
    headers = {"Authorization": f"Bearer {secrets['dora']}"}
    for written in spelled("/v1/users"):
        target = httpx.URL(url, raw_path=written.encode())
        answer = httpx.post(target, json=evil, headers=headers)
        assert answer.status_code in (400, 403, 404), (written, answer.text)
    assert {user.name for user in users.listed(records)} == {name for name, _, _ in CALLERS}


@pytest.mark.parametrize("path", ["/v1/users%0a", "/healthz%00", "/policyengine/v1/tags%0a"])
def test_control_characters_are_refused_before_anything_else(
    served: tuple[str, RecordStore, dict[str, str]], path: str
) -> None:
    """400, whoever asks, and nothing is noted; on Discover's routes in Discover's shape."""
    url, records, _ = served
    before = audit_log.entries(records, limit=1)
    answer = exchange(url, f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    assert answer.statuses == [400]
    assert (b'"reason"' if path.startswith("/policyengine") else b'"detail"') in answer.raw
    assert [entry.id for entry in audit_log.entries(records, limit=1)] == [e.id for e in before]


def test_rights_are_of_the_route_that_answers() -> None:
    """What is looked up once is what answers: whatever is done to the path on the way."""
    app = create_app(Settings(home=Path("/nowhere")), authenticates=False)
    seen = []

    class Elsewhere:
        """The innermost middleware, which sends each request to another path."""

        def __init__(self, inner: Any) -> None:
            self._inner = inner

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            seen.append(rule_of(scope))
            await self._inner({**scope, "path": "/v1/users"}, receive, send)

    app.user_middleware.append(Middleware(Elsewhere))
    answer = TestClient(app).get("/healthz")
    assert answer.json() == {"status": "ok"}
    assert [rule.permission for rule in seen] == [None]


def test_a_session_takes_a_caller_whatever_the_rule(home: Path) -> None:
    """A route that is open by mistake still answers nobody who has no token."""
    app, router = create_app(Settings(home=home)), Router(prefix="/v1/mistake")

    @router.get("", rule=rules.OPEN)
    async def mistake(session: CurrentSession) -> str:
        return session.caller.level

    add_routers(app, [router])
    with TestClient(app) as client:
        assert client.get("/v1/mistake").status_code == 401
