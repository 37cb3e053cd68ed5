"""A team's PostgreSQL that goes away and comes back under a running server: every door says so."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from api.app import create_app
from api.http.middleware import authentication
from api.settings import Secret, Settings
from api.workspace import Workspace
from catalog.accounts import row_collections, tokens, users
from tests.api.servers import wait_until
from tests.pipeline.homes import SAMPLE, add_source
from tests.postgres_server import PASSWORD, PostgresServer, own_postgres

pytestmark = pytest.mark.wide

SCENE = "20260311_130314"
_CALL = {
    "jsonrpc": "2.0", "id": 1, "method": "tools/call",
    "params": {"name": "describe_catalog", "arguments": {}},
}  # fmt: skip
_HTML = {"Accept": "text/html"}
_MCP = {"Accept": "application/json, text/event-stream"}
DOORS: list[tuple[str, str, dict[str, Any]]] = [
    ("GET", "/v1/classes", {}),
    ("GET", "/v1/datasets", {}),
    ("GET", "/v1/jobs", {}),
    ("GET", "/v1/info", {}),
    ("GET", "/v1/frames?limit=1", {}),
    ("GET", "/v1/me", {}),
    ("POST", "/v1/datasets", {"json": {"name": "x", "question": {}}}),
    ("POST", "/v1/selections", {"json": {}}),
    ("POST", "/v1/sql", {"json": {"statement": "select count(*) from metaocean"}}),
    ("POST", "/db2whrest/v1/sql_query", {"content": "select count(*) from metaocean"}),
    ("POST", "/db2whrest/v1/search", {"json": {"query": "", "limit": 1}}),
    ("GET", "/policyengine/v1/policies", {}),
    ("GET", "/connmgr/v1/connections", {}),
    ("GET", "/", {"headers": _HTML}),
    ("GET", "/jobs", {"headers": _HTML}),
    ("POST", "/jobs", {"headers": _HTML}),
    ("GET", "/nothing", {}),
]
ANSWERED = {
    *(("root", *one) for one in [("GET", "/v1/me", 200), ("POST", "/jobs", 405),
                                 ("GET", "/nothing", 404)]),
    *(("cora", *one) for one in [("GET", "/v1/me", 200), ("POST", "/jobs", 405),
                                 ("GET", "/nothing", 403), ("GET", "/connmgr/v1/connections", 403)])
}  # fmt: skip
"""What a known caller is answered without a database."""


@pytest.fixture
def database() -> Iterator[PostgresServer]:
    """A PostgreSQL of this test's own."""
    with own_postgres() as server:
        yield server


@pytest.mark.parametrize("trusted_s", [0.0, 1e9], ids=["unknown callers", "known callers"])
def test_a_database_that_is_away(
    database: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trusted_s: float
) -> None:
    """503 with Retry-After everywhere, without password; nothing stays broken afterwards.

    A caller is known for some seconds without a look into the records: both within and after them.
    A limited user learns nothing of where the database is.
    """
    monkeypatch.setattr(authentication, "_TRUSTED_S", trusted_s)
    settings = Settings(
        home=tmp_path / "home", cache=None, lock_wait_s=1,
        records=Secret(database.url(database.new_database())),
        catalog_metadata=Secret(database.url(database.new_database())),
    )  # fmt: skip
    workspace = Workspace(settings)
    add_source(workspace, "a2d2", SAMPLE)
    records, secrets = workspace.records, {}
    row_collections.add(records, "some", f"filename like '%/{SCENE}/%'")
    for name, role in (("root", "admin"), ("cora", "collectionadmin")):
        users.add(records, name, [role], None)
        secrets[name] = tokens.create(records, name, "t", "admin", timedelta(days=1))[1]
    row_collections.assign(records, "some", "cora")
    workspace.close()
    records.engine.dispose()
    with TestClient(create_app(settings), follow_redirects=False) as client:

        def ask(name: str, method: str, path: str, **more: object) -> tuple[int, str, str]:
            sent = dict(more)
            headers = {
                "Authorization": f"Bearer {secrets[name]}", **dict(sent.pop("headers", {}))  # type: ignore[call-overload]
            }  # fmt: skip
            answer = client.request(method, path, headers=headers, **sent)  # type: ignore[arg-type]
            return answer.status_code, answer.headers.get("retry-after", ""), answer.text

        for name in secrets:
            assert ask(name, "GET", "/v1/classes")[0] == 200
            assert ask(name, "GET", "/v1/datasets")[0] == 200
        database.kill()
        for _ in range(2):  # the second time connections are known to be broken
            for name in secrets:  # a tool that meets it answers so, within the protocol
                status, retry, text = ask(name, "POST", "/mcp", json=_CALL, headers=_MCP)
                assert (status, retry) == (503, "5") or '"isError":true' in text
                assert ("127.0.0.1" not in text) or name == "root"
            answers = [
                (name, method, path, *ask(name, method, path, **more))
                for name in secrets
                for method, path, more in DOORS
            ]
            others = {one[:4] for one in answers if one[3:5] != (503, "5")}
            assert others <= (ANSWERED if trusted_s else set())
            assert not any(PASSWORD in answer[-1] for answer in answers)
            assert not any("127.0.0.1" in one[-1] for one in answers if one[0] == "cora")
        for path in ("/readyz", "/auth/v1/token"):
            answer = client.get(path, auth=("root", "a password of anybody"))
            assert (answer.status_code, answer.headers.get("retry-after")) == (503, "5")
            assert "127.0.0.1" not in answer.text
        assert client.get("/healthz").status_code == 200
        database.start()
        wait_until(lambda: ask("root", "GET", "/v1/classes")[0] == 200)
        for name in secrets:
            for path in ("/v1/classes", "/v1/datasets", "/v1/frames?limit=1", "/jobs"):
                assert ask(name, "GET", path)[0] == 200
