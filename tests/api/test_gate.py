"""Nobody gets past the gate: every route, every role, every kind of token."""

import base64
import itertools
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import update
from starlette.websockets import WebSocketDisconnect

from api.app import create_app
from api.settings import Settings
from catalog.accounts import audit_log, row_collections, tokens, users
from catalog.accounts.accounts import SCOPES
from catalog.records.store import RecordStore
from catalog.records.user_tables import LoginFailure, Token
from catalog.values import now
from tests.api.route_rules import OPEN, need_of
from tests.api.servers import wait_until
from tests.pipeline.homes import copy_home

PASSWORD = "a sentence is a good one"
ROLES = {
    "root": ["admin"],
    "dora": ["dataadmin"],
    "otto": ["datauser"],
    "cora": ["collectionadmin"],
}
SQL = "/db2whrest/v1/sql_query"


@dataclass
class House:
    """A served home with a user of each role, and a token of each scope for each.

    Attributes:
        tokens: By user and scope; a login's has the scope "login".
    """

    app: FastAPI
    client: TestClient
    records: RecordStore
    tokens: dict[tuple[str, str], str]

    def ask(
        self, method: str, path: str, user: str = "", scope: str = "login", **more: Any
    ) -> httpx.Response:
        """A request with a token, or without."""
        headers = dict(more.pop("headers", {}))
        if user:
            headers["Authorization"] = f"Bearer {self.tokens[user, scope]}"
        answer: httpx.Response = self.client.request(method, path, headers=headers, **more)
        return answer

    def last(self) -> tuple[str, str, str, str]:
        """Who, what, target and outcome of the newest entry of the audit log."""
        entry = audit_log.entries(self.records, limit=1)[0]
        return entry.who, entry.what, entry.target, entry.outcome


@pytest.fixture(scope="module")
def served(shared_home: Path) -> Iterator[House]:
    """The sample frames, served to those who may see them."""
    records = RecordStore(shared_home / "records" / "records.sqlite")
    secrets = {}
    for name, roles in ROLES.items():
        user = users.add(records, name, roles, PASSWORD)
        secrets[name, "login"] = tokens.log_in(records, user)
        for scope in SCOPES:
            secrets[name, scope] = tokens.create(records, name, scope, scope, timedelta(days=1))[1]
    row_collections.add(records, "mine", "size > 0")
    row_collections.add(records, "others", "size > 1")
    row_collections.assign(records, "mine", "cora")
    app = create_app(Settings(home=shared_home, cache=None))
    with TestClient(app) as client:
        yield House(app, client, records, secrets)


_addresses = itertools.count(1)


@pytest.fixture
def house(served: House) -> House:
    """The same, asked from an address that nobody was refused at."""
    address = f"192.0.2.{next(_addresses)}"
    return replace(served, client=TestClient(served.app, client=(address, 5000)))


def basic(name: str, password: str = PASSWORD) -> dict[str, str]:
    """The header of basic authentication."""
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


def routes(router: Any) -> list[tuple[str, str]]:
    """Every method and path that an application answers, as FastAPI includes routers."""
    pairs = []
    for route in router.routes:
        if included := getattr(route, "original_router", None):
            pairs += routes(included)
            continue
        path = getattr(route, "path", "").replace(":path}", "}")  # as OpenAPI has it
        assert path, f"{route!r}: a route of an unknown kind; is it refused without a token?"
        pairs += [(method, path) for method in sorted(getattr(route, "methods", None) or {"GET"})]
    return pairs


OPEN_STATUSES = {
    ("GET", "/auth/v1/token"): 401, ("HEAD", "/auth/v1/token"): 401,
    ("POST", "/login"): 403,  # it comes from no page of the server
    ("GET", "/login/oidc"): 404,  # no provider is set
    ("GET", "/login/oidc/callback"): 404,
    ("GET", "/static/{name}"): 404,
}  # fmt: skip
"""What open routes answer to a request that says nothing; else 200."""


@pytest.mark.wide
def test_every_route_is_refused_without_a_token(house: House) -> None:
    """All that the application has, but for the list of those that are open on purpose."""
    walked = routes(house.app)
    described = house.client.get("/openapi.json").json()["paths"]
    assert set(described) <= {path for _, path in walked}
    assert {path for _, path in walked} >= OPEN
    wait_until(lambda: house.client.get("/readyz").status_code == 200)
    for method, path in walked:
        real = path.replace("{", "").replace("}", "")
        answer = house.ask(method, real)
        if path in OPEN:
            assert answer.status_code == OPEN_STATUSES.get((method, path), 200), path
            continue
        assert answer.status_code == 401, (method, path)
        assert answer.headers["www-authenticate"] in ("Basic", "Bearer")
    assert {
        "/healthz", "/readyz", "/auth/v1/token", "/openapi.json", "/docs", "/login",
        "/login/oidc", "/login/oidc/callback",
        "/static/{name}",
    } == OPEN  # fmt: skip


@pytest.mark.parametrize(
    "path",
    ["/", "/nothing", "/V1/classes", "/v1//classes", "//v1/classes", "/v1/classes/",
     "/healthz/../v1/classes", "/healthz/", "/healthz%2f..%2fv1%2fclasses", "/healthz;/v1/classes",
     "/v1/classes?/healthz", "/v1%2Fclasses", "/%76%31/classes", "/v1/./classes", "/metrics",
     "/auth/v1/token/", "/auth/v1/token/../roles"],
)  # fmt: skip
def test_no_spelling_of_a_path_gets_through(house: House, path: str) -> None:
    """What is no open path letter by letter needs a token, whatever it leads to."""
    with socket_client(house) as client:
        answer = client.request("GET", path)
    assert answer.status_code == 401


def socket_client(house: House) -> httpx.Client:
    """A client that sends paths as they are given."""
    return TestClient(house.app, follow_redirects=False)


def test_a_route_that_is_added_later_is_behind_the_gate(catalogued: Path, tmp_path: Path) -> None:
    """Also one on the application itself, mounted or not of FastAPI's making."""
    app = create_app(Settings(home=copy_home(catalogued, tmp_path), cache=None))

    @app.get("/later")
    async def _later() -> None:
        pass

    mounted = FastAPI()
    mounted.get("/healthz")(_later)
    app.mount("/sub", mounted)
    with TestClient(app) as client:
        for path in ("/later", "/sub/healthz", "/sub/openapi.json"):
            assert client.get(path).status_code == 401


def test_web_sockets_are_refused(house: House) -> None:
    """There are none; an upgrade leads nowhere."""
    with (
        pytest.raises(WebSocketDisconnect) as caught,
        house.client.websocket_connect("/v1/classes"),
    ):
        pass
    assert caught.value.code == 1008


HEADERS = [
    {}, {"Authorization": ""}, {"Authorization": "Bearer"}, {"Authorization": "Bearer "},
    {"Authorization": "Bearer fs_"}, {"Authorization": "Token {token}"},
    {"Authorization": "{token}"}, {"Authorization": "Bearer {token}x"},
    {"Authorization": "Bearer {token} {token}"}, {"Authorization": "Bearer {token},"},
    {"Authorization": "Basic {token}"}, {"Cookie": "token={token}"},
    {"X-Auth-Token": "{token}", "Authorization": "Bearer {token}"},
]  # fmt: skip


@pytest.mark.parametrize("headers", HEADERS, ids=str)
def test_what_is_no_token(house: House, headers: dict[str, str]) -> None:
    """Neither nothing nor a part, more than one, another scheme or another place."""
    token = house.tokens["root", "admin"]
    sent = {name: value.replace("{token}", token) for name, value in headers.items()}
    answer = house.ask("GET", "/v1/classes", headers=sent)
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["title"] == "NotAuthenticated"
    assert token not in answer.text


def test_a_token_in_any_case_of_bearer_and_in_x_auth_token(house: House) -> None:
    """As clients write it, and as a workshop's notes do."""
    token = house.tokens["root", "read"]
    for headers in (
        {"Authorization": f"Bearer {token}"},
        {"authorization": f"bearer {token}"},
        {"AUTHORIZATION": f"BEARER  {token} "},
        {"X-Auth-Token": token},
    ):
        assert house.ask("GET", "/v1/classes", headers=headers).status_code == 200
    assert house.client.get("/v1/classes", params={"token": token}).status_code == 401


OF_LEVELS: list[tuple[str, str, object]] = [
    ("GET", "/v1/scans", None), ("POST", "/v1/sources", {}), ("GET", "/v1/users", None),
]  # fmt: skip
"""A request of each level, lowest first."""


@pytest.mark.parametrize("scope", ["read", "write", "admin", "login"])
@pytest.mark.parametrize("user", ROLES)
def test_roles_and_scopes(house: House, user: str, scope: str) -> None:
    """What is allowed is what both allow; whose rows are limited may see what is about none."""
    highest = {"root": 3, "dora": 2, "otto": 0, "cora": 0}[user]
    of_token = {"read": 1, "write": 2, "admin": 3, "login": 3}[scope]
    for level, (method, path, body) in enumerate(OF_LEVELS, 1):
        answer = house.ask(method, path, user, scope, json=body)
        if level <= min(highest, of_token):
            assert answer.status_code in (200, 422), (path, answer.text)
        else:
            assert answer.status_code == 403, (path, answer.text)
            assert answer.json()["title"] == "NotAllowed"


@pytest.mark.wide
def test_whose_rows_are_limited_is_refused_on_every_route_of_data(house: House) -> None:
    """403 on all but what a limited catalog answers, what is added later included."""
    for method, path in routes(house.app):
        if path in OPEN or path in LIMITED or path.startswith(NO_ROWS):
            continue
        if method in ("GET", "HEAD") and path in NAMES:
            continue
        real = path.replace("{", "").replace("}", "")
        for user in ("otto", "cora"):
            assert house.ask(method, real, user).status_code == 403, (method, path)
    answer = house.client.get("/db2whrest/v1/report", headers=basic("otto"))
    assert answer.status_code == 403
    assert answer.json()["status"] == "error"
    assert "dataadmin" in answer.json()["reason"]


LIMITED = {
    "/db2whrest/v1/sql_query_json",
    "/db2whrest/v1/sql_query", "/db2whrest/v1/sql_query_async", "/db2whrest/v1/search",
    "/db2whrest/v1/task_status/{task}", "/db2whrest/v1/task_status/{task}/peek",
    "/v1/selections", "/v1/selections/describe", "/v1/selections/schema",
    "/v1/selections/operators", "/v1/classes", "/v1/statistics/histogram",
    "/v1/statistics/facets", "/v1/sql",
    "/v1/frames", "/v1/frames/{fkey}", "/v1/images/{fkey}", "/v1/labels/{fkey}",
    "/v1/overlays/{fkey}", "/v1/predictions/{fkey}", "/v1/datasets", "/v1/datasets/{name}",
    "/v1/datasets/{name}/splits",
    "/v1/datasets/{name}/extensions", "/v1/datasets/{name}/diff", "/v1/datasets/{name}/export",
    "/v1/datasets/{name}/rebuild",
    "/v1/datasets/{name}/gaps",  # as far as they are seen: test_limited_datasets.py
    "/v1/stagings", "/v1/stagings/{number}", "/v1/stagings/plan", "/v1/stagings/running",
    "/v1/stagings/running/{name}", "/v1/stagings/running/{name}/cancel",
    "/v1/jobs", "/v1/jobs/{name}", "/v1/jobs/compare", "/v1/models",
    "/v1/jobs/{name}/cancel", "/v1/jobs/{name}/resume", "/v1/jobs/{name}/logs",
    "/v1/jobs/{name}/events", "/v1/jobs/{name}/timeline", "/v1/jobs/{name}/logs/sizes",
    "/v1/jobs/{name}/report", "/v1/jobs/{name}/files/{path}", "/v1/models/{name}",
    "/v1/statistics/correlation", "/v1/usage",  # one's own
    "/v1/sql/explain", "/v1/tags/{tag}/values",
    "/", "/facets", "/drag", "/steps", "/values", "/gallery", "/map", "/frames/{fkey}",
    "/pictures/images/{fkey}", "/pictures/labels/{fkey}", "/pictures/overlays/{fkey}",
    "/pictures/predictions/{fkey}",
    "/jobs", "/jobs/{name}", "/jobs/{name}/part", "/jobs/{name}/output", "/jobs/{name}/events",
    "/jobs/{name}/frames", "/curves", "/jobs/{name}/cancel", "/jobs/{name}/resume", "/new-job",
    "/jobs/{name}/predict",
    "/new-job/datasets", "/new-job/models", "/new-job/plan", "/new-job/estimate",
    "/new-job/trained", "/new-dataset/datasets", "/new-dataset/scores", "/overlays",
    "/datasets", "/datasets/{name}", "/datasets/{name}/gaps", "/datasets/{name}/diff",
    "/datasets/{name}/splits", "/datasets/{name}/extensions", "/new-dataset",
    "/operate",  # leads to their tokens
    "/datasets/{name}/change", "/datasets/{name}/remove",
    "/jobs/{name}/files/{path}",
    # theirs and those shared with all, counted on their rows: test_saved_questions.py
    "/v1/questions", "/v1/questions/{name}", "/v1/questions/{name}/see",
    "/questions", "/questions/{name}", "/questions/{name}/see", "/questions/{name}/remove",
    "/mcp",  # the tools that need more refuse it: test_mcp.py
}  # fmt: skip
NO_ROWS = (
    "/v1/tokens", "/v1/collections", "/v1/me", "/auth/v1", "/logout", "/operate/tokens",
    "/policyengine/v1/policies",  # by their collections: test_discover_policy_rights.py
)  # fmt: skip
NAMES = {
    "/policyengine/v1/tags", "/policyengine/v1/tags/{tag}", "/db2whrest/v1/buckets/{bucket}",
    "/v1/tags", "/v1/tags/{tag}", "/v1/info",
}  # fmt: skip


@pytest.mark.wide
def test_tags_and_buckets_are_read_by_all_and_changed_by_few(house: House) -> None:
    """The same for whoever sees some rows only; patterns and connections are closed to them."""
    tag = json.dumps({"tag": "mood", "type": "Open"})
    for user in ("otto", "cora"):
        for path in ("/policyengine/v1/tags", "/policyengine/v1/tags/car", BUCKET):
            answer = house.ask("GET", path, user)
            assert (answer.status_code, answer.text) == (200, house.ask("GET", path, "root").text)
        assert house.ask("POST", "/policyengine/v1/tags", user, content=tag).status_code == 403
        assert house.ask("PUT", "/policyengine/v1/tags/car", user, content="{}").status_code == 403
        assert house.ask("GET", "/policyengine/v1/tags", user, "read").status_code == 200
        for path in ("/policyengine/v1/regex", "/connmgr/v1/scan"):
            assert house.ask("GET", path, user).json()["status"] == "error"
    body = {
        "pol_id": "mine", "action_id": "AUTOTAG", "action_params": {"tags": {"mood": "good"}},
        "pol_state": "inactive",
    }  # fmt: skip
    for user, scope, status in (
        ("dora", "read", 403), ("cora", "login", 403), ("dora", "write", 201),
        ("root", "read", 403),
    ):  # fmt: skip
        answer = house.ask("POST", "/policyengine/v1/policies", user, scope, json=body)
        assert answer.status_code == status, answer.text
    assert house.last() == ("root", "POST", "/policyengine/v1/policies", "403")
    policy = house.ask("GET", "/policyengine/v1/policies/mine", "dora", "read").json()
    assert (policy["policy_owner"], policy["last_updated_by"]) == ("dora", "dora")
    # Who is no admin names no folder of this server that nobody let be named.
    connection = {
        "name": "x",
        "platform": "NFS",
        "cluster": "c",
        "datasource": "d",
        "mount_point": "/",
    }
    refused = house.ask("POST", "/connmgr/v1/connections", "dora", json=connection)
    assert (refused.status_code, refused.json()["status"]) == (403, "error")


BUCKET = "/db2whrest/v1/buckets/SizeRange"


def test_reading_by_post_changes_nothing() -> None:
    """Questions are posted and only read; any other method of any other path may change."""
    assert need_of("POST", SQL).level == need_of("GET", "/v1/whatever").level == "read"
    assert need_of("POST", "/v1/whatever").level == need_of("DELETE", SQL).level == "write"
    assert need_of("BREW", "/v1/whatever").changes
    assert need_of("GET", "/v1/usersx").level == "read"
    assert need_of("GET", "/v1/users/x").level == need_of("PATCH", "/v1/users").level == "admin"
    assert all(need_of(m, "/v1/whatever").all_rows for m in ("GET", "POST", "DELETE"))
    assert need_of("GET", "/v1/classes/").all_rows


def test_a_known_caller_is_asked_for_again(house: House) -> None:
    """A token that ends behind the server's back, as by the command, counts for moments only."""
    made = {}
    for end in ("revoked", "expired", "disabled"):
        users.add(house.records, end, ["datauser"], None)
        made[end] = tokens.create(house.records, end, "one", "read", timedelta(days=1))

    def status(end: str) -> int:
        header = {"Authorization": f"Bearer {made[end][1]}"}
        return house.client.get("/auth/v1/roles", headers=header).status_code

    assert [status(end) for end in made] == [200, 200, 200]
    tokens.revoke(house.records, made["revoked"][0].id)
    users.change(house.records, "disabled", disabled=True)
    with house.records.session() as session:
        expired = Token.id == made["expired"][0].id
        session.execute(update(Token).where(expired).values(expires=now()))
    for end in made:
        wait_until(lambda end=end: status(end) == 401, 60)  # type: ignore[misc]


def test_name_and_password_on_spectrum_discover_s_routes_only(house: House) -> None:
    """Curl -u works there, also with the domain; elsewhere a token is wanted."""
    for name in ("root", "default/root"):
        answer = house.client.post(SQL, content="select 1 from metaocean", headers=basic(name))
        assert answer.status_code == 200
    assert house.client.get("/v1/classes", headers=basic("root")).status_code == 401
    for headers in (
        basic("root", "wrong"), basic("other/root"), basic(""), basic("robot", ""),
        {"Authorization": "Basic !!!"}, {"Authorization": "Basic cm9vdA=="},
        {"Authorization": "Basic /////w=="},
    ):  # fmt: skip
        answer = house.client.get(f"{SQL}?select+1+from+metaocean", headers=headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Basic"
        assert answer.json()["status"] == "error"


def test_discover_s_token(house: House) -> None:
    """GET and HEAD: empty body, the token in its header; it opens what its user may."""
    for method in ("GET", "HEAD"):
        answer = house.client.request(method, "/auth/v1/token", headers=basic("dora"))
        assert (answer.status_code, answer.content) == (200, b"")
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert answer.headers["content-length"] == "0"
        assert answer.headers["cache-control"] == "no-store"
        bearer = {"Authorization": f"Bearer {answer.headers['x-auth-token']}"}
        assert house.client.get("/v1/classes", headers=bearer).status_code == 200
        assert house.last() == ("dora", "login", "/auth/v1/token", "200")
    for headers in ({}, basic("dora", "wrong"), {"Authorization": "Bearer fs_x"}):
        answer = house.client.get("/auth/v1/token", headers=headers)
        assert answer.status_code == 401
        assert "x-auth-token" not in answer.headers
    assert (
        '"roles": [{"domain_id": null, "id": "' in house.ask("GET", "/auth/v1/roles", "otto").text
    )


def test_guessing_is_slowed_down(house: House) -> None:
    """429 with the time to wait, also for the right password; tokens go on; then it is right."""
    for guess in range(9):  # the fifth waits 1 s, which a busy machine needs itself; the ninth 16
        if guess:
            _wait_no_longer(house)
        house.client.get("/auth/v1/token", headers=basic("cora", "wrong"))
    for password in ("wrong", PASSWORD):
        answer = house.client.get("/auth/v1/token", headers=basic("cora", password))
        assert answer.status_code == 429
        assert 1 <= int(answer.headers["retry-after"]) <= 16
    assert house.ask("GET", "/v1/tokens", "cora").status_code == 200
    assert house.last() == ("cora", "login", "/auth/v1/token", "429")
    _wait_no_longer(house)
    assert house.client.get("/auth/v1/token", headers=basic("cora")).status_code == 200


def _wait_no_longer(house: House) -> None:
    with house.records.session() as session:
        session.execute(update(LoginFailure).values(blocked_until=LoginFailure.last))


def test_changes_and_refusals_are_noted(house: House) -> None:
    """Who, what, target and outcome; what only reads is not; the request's id is answered."""
    house.ask("POST", "/v1/datasets", "dora", json={"name": "a/b", "question": {}})
    assert house.last() == ("dora", "POST", "/v1/datasets", "400")
    house.ask("GET", "/v1/users", "dora")
    assert house.last() == ("dora", "GET", "/v1/users", "403")
    answer = house.ask("POST", "/v1/selections", "dora", json={}, headers={"X-Request-Id": "r-1"})
    assert answer.headers["x-request-id"] == "r-1"
    assert house.last() == ("dora", "GET", "/v1/users", "403")
    answer = house.ask("DELETE", "/v1/users/nobody", "root", headers={"X-Request-Id": "a b\t"})
    assert len(answer.headers["x-request-id"]) == 32
    assert house.last() == ("root", "DELETE", "/v1/users/nobody", "404")
    page = house.ask("GET", "/v1/audit", "root", params={"limit": 2}).json()
    assert [entry["outcome"] for entry in page["entries"]] == ["404", "403"]
    assert page["entries"][0]["request_id"] == answer.headers["x-request-id"]
    assert page["entries"][0]["address"].startswith("192.0.2.")
    following = house.ask("GET", "/v1/audit", "root", params={"cursor": page["next"]}).json()
    assert following["entries"][0]["id"] < page["entries"][1]["id"]
    only = house.ask("GET", "/v1/audit", "root", params={"who": "dora", "outcome": "403"}).json()
    assert {(entry["who"], entry["outcome"]) for entry in only["entries"]} == {("dora", "403")}


def test_triggers_and_webhooks_are_noted(house: House) -> None:
    """What was made, changed and removed; of a webhook's URL the host alone, its path is secret."""
    trigger = {"name": "t", "when": "car>1", "then": [{"kind": "train"}, {"kind": "validate"}]}
    hook = {"name": "w", "url": "https://ci.example/secret?key=k", "states": ["failed", "done"]}
    for method, path, body, note in (
        ("POST", "/v1/triggers", trigger, "trigger t: car>1; then train, validate"),
        ("PATCH", "/v1/triggers/t", {"enabled": False}, "trigger t: disabled"),
        ("DELETE", "/v1/triggers/t", None, "trigger t: removed"),
        ("POST", "/v1/webhooks", hook, "webhook w: ci.example, failed, done"),
        ("DELETE", "/v1/webhooks/w", None, "webhook w: removed"),
    ):
        house.ask(method, path, "root", json=body)
        entry = audit_log.entries(house.records, limit=1)[0]
        assert (entry.what, entry.target, entry.note) == (method, path, note)


_BROWSER = {"Accept": "text/html", "Origin": "http://testserver"}


@pytest.mark.parametrize(
    ("method", "path", "headers", "body", "status", "outcome"),
    [
        ("GET", "/v1/classes", {}, "", 401, "401"),
        # A browser is led to the login: what is noted and counted is the refusal.
        ("POST", "/logout", _BROWSER, "", 303, "401"),
        ("POST", "/datasets", _BROWSER, "name=x", 303, "401"),
        ("POST", "/logout", {**_BROWSER, "HX-Request": "true"}, "", 401, "401"),
        ("POST", "/v1/datasets", _BROWSER, "{}", 401, "401"),
        ("POST", "/login", _BROWSER, "token=none", 401, "401"),
        # Other errors of requests that need no token, each of which is noted.
        ("POST", "/login", _BROWSER, "x" * 2_000_000, 413, "413"),
        ("GET", "/auth/v1/token", {}, "", 401, "401"),
        ("GET", "/auth/v1/token", {"Authorization": "Basic ?"}, "", 401, "401"),
    ],
)
def test_refusals_do_not_fill_the_disk(
    house: House, method: str, path: str, headers: dict[str, str], body: str, status: int,
    outcome: str,
) -> None:  # fmt: skip
    """Who has no token writes some thirty entries a minute, whatever is asked, and how."""
    before, began = audit_log.entries(house.records, limit=1)[0].id, time.monotonic()
    sent = {"Content-Type": "application/x-www-form-urlencoded", **headers}
    address = f"203.0.113.{next(_addresses)}"
    with TestClient(house.app, client=(address, 1), follow_redirects=False) as client:
        for _ in range(70):
            answer = client.request(method, path, headers=sent, content=body)
            assert answer.status_code == status
    entry = audit_log.entries(house.records, limit=1)[0]
    assert (entry.outcome, entry.address, entry.note) == (outcome, address, "")
    minutes = (time.monotonic() - began) // 60 + 2  # in which these requests fell, at most
    assert 0 < audit_log.entries(house.records, limit=1)[0].id - before <= 30 * minutes + 1


def test_users_over_rest(house: House) -> None:
    """Made, changed, refused and removed; what they hold counts from that moment on."""
    response = house.ask("POST", "/v1/users", "root", json={"name": "eve", "roles": ["dataadmin"], "password": PASSWORD})  # fmt: skip  # noqa: E501
    assert response.status_code == 201
    assert response.json()["roles"] == ["dataadmin"]
    assert "password" not in response.json()
    assert PASSWORD not in response.text
    secret = house.client.get("/auth/v1/token", headers=basic("eve")).headers["x-auth-token"]
    house.tokens["eve", "login"] = secret
    assert house.ask("GET", "/v1/classes", "eve").status_code == 200
    changed = house.ask("PATCH", "/v1/users/eve", "root", json={"roles": ["datauser"]})
    assert changed.json()["roles"] == ["datauser"]
    assert house.ask("GET", "/v1/scans", "eve").status_code == 403
    house.ask("PATCH", "/v1/users/eve", "root", json={"disabled": True})
    assert house.ask("GET", "/v1/tokens", "eve").status_code == 401
    house.ask("PATCH", "/v1/users/eve", "root", json={"disabled": False})
    assert house.ask("GET", "/v1/tokens", "eve").status_code == 200
    house.ask("PATCH", "/v1/users/eve", "root", json={"password": PASSWORD + "!"})
    assert house.ask("GET", "/v1/tokens", "eve").status_code == 401
    assert "eve" in [user["name"] for user in house.ask("GET", "/v1/users", "root").json()["users"]]
    assert house.ask("DELETE", "/v1/users/eve", "root").status_code == 204
    assert house.ask("GET", "/v1/users/eve", "root").status_code == 404
    for body, status in (
        ({"name": "a b", "roles": ["admin"]}, 400), ({"name": "\ud800", "roles": ["admin"]}, 422),
        ({"name": "x", "roles": ["king"]}, 400), ({"name": "x", "roles": []}, 400),
        ({"name": "root", "roles": ["admin"]}, 409), ({"name": "x"}, 422),
        ({"name": "x", "roles": ["admin"], "password": "short"}, 400),
        ({"name": "x", "roles": ["admin"], "password": "\ud800" * 12}, 400),
        ({"name": "x", "roles": ["admin"], "id": 1}, 422),
    ):  # fmt: skip
        answer = house.client.post(
            "/v1/users",
            content=json.dumps(body),
            headers={
                "Authorization": f"Bearer {house.tokens['root', 'login']}",
                "Content-Type": "application/json",
            },
        )
        assert answer.status_code == status, (body, answer.text)
    last_admin = house.ask("DELETE", "/v1/users/root", "root")
    assert (last_admin.status_code, last_admin.json()["title"]) == (400, "InvalidInput")


def test_tokens_over_rest(house: House) -> None:
    """One's own, of a scope that one has; shown once; revoked at once; none by a token."""

    def make(caller: str, by: str = "login", **body: object) -> httpx.Response:
        return house.ask("POST", "/v1/tokens", caller, by, json=body)

    response = make("dora", name="n1", scope="write", days=3)
    assert response.status_code == 201
    assert response.json()["state"] == "valid"
    house.tokens["dora", "new"] = response.json()["token"]
    assert house.ask("GET", "/v1/classes", "dora", "new").status_code == 200
    listed = house.ask("GET", "/v1/tokens", "dora")
    assert response.json()["token"] not in listed.text
    assert {token["user"] for token in listed.json()["tokens"]} == {"dora"}
    number = response.json()["id"]
    assert house.ask("DELETE", f"/v1/tokens/{number}", "otto").status_code == 403
    assert house.ask("GET", "/v1/classes", "dora", "new").status_code == 200
    assert house.ask("DELETE", f"/v1/tokens/{number}", "dora").json()["state"] == "revoked"
    assert house.ask("GET", "/v1/classes", "dora", "new").status_code == 401
    for answer, status in (
        (make("dora", name="n2", scope="admin"), 403),  # more than the role
        (make("otto", name="n2", scope="write"), 403),
        (make("dora", "admin", name="n2", scope="read"), 403),  # by a token
        (make("root", "write", name="n2", scope="write"), 403),
        (make("dora", name="n2", user="root"), 403),  # somebody else's
        (make("dora", name="n1"), 409),
        (make("dora", name="n2", days=0), 422),
        (make("dora", name="n2", scope="king"), 400),
        (make("root", "admin", name="n2", user="otto"), 201),
        (house.ask("GET", "/v1/tokens", "otto", params={"user": "root"}), 403),
        (house.ask("DELETE", "/v1/tokens/99999", "otto"), 404),
    ):
        assert answer.status_code == status, answer.text
    everybody = house.ask("GET", "/v1/tokens", "root").json()["tokens"]
    assert {token["user"] for token in everybody} >= set(ROLES)


def test_collections_over_rest(house: House) -> None:
    """Admins make them; a collection admin assigns users to the own ones; others see their own."""
    put = "/v1/collections/{}/users/otto"
    for user, name, status in (
        ("cora", "mine", 200), ("cora", "others", 403), ("cora", "none", 403),
        ("otto", "mine", 403), ("dora", "mine", 403), ("root", "others", 200),
    ):  # fmt: skip
        assert house.ask("PUT", put.format(name), user).status_code == status, (user, name)
    assert house.ask("PUT", put.format("mine"), "cora", "read").status_code == 403
    seen = {
        user: {c["name"] for c in house.ask("GET", "/v1/collections", user).json()["collections"]}
        for user in ROLES
    }
    assert seen["root"] == seen["dora"] == seen["otto"] == {"mine", "others"}
    assert seen["cora"] == {"mine"}
    assert house.ask("DELETE", put.format("mine"), "cora").json()["users"] == ["cora"]
    body = {"name": "new", "rule": "datasource = 'a2d2'"}
    for user, status in (("cora", 403), ("dora", 403), ("root", 201), ("root", 409)):
        assert house.ask("POST", "/v1/collections", user, json=body).status_code == status
    bad = {"name": "bad", "rule": "car > 1"}
    assert house.ask("POST", "/v1/collections", "root", json=bad).status_code == 400
    assert house.ask("DELETE", "/v1/collections/new", "cora").status_code == 403
    assert house.ask("DELETE", "/v1/collections/new", "root").status_code == 204


def test_a_server_that_asks_nobody(catalogued: Path, tmp_path: Path) -> None:
    """Everything is open; a token must be said to be somebody's."""
    app = create_app(
        Settings(home=copy_home(catalogued, tmp_path), cache=None), authenticates=False
    )
    with TestClient(app) as client:
        assert client.get("/v1/users").json() == {"users": [], "next": None}
        assert client.post("/v1/tokens", json={"name": "x"}).status_code == 400
        # Published clients take the token out of the header before they ask anything.
        for method in ("GET", "HEAD"):
            for headers in ({}, basic("nobody"), {"Authorization": "Bearer bad"}):
                answer = client.request(method, "/auth/v1/token", headers=headers)
                assert (answer.status_code, answer.content) == (200, b"")
                assert (b"X-Auth-Token", b"nobody-is-asked") in answer.headers.raw
        bearer = {"Authorization": f"Bearer {answer.headers['x-auth-token']}"}
        assert client.get("/auth/v1/roles", headers=bearer).status_code == 200
