"""The log: one line a request, whose id the client has, and nothing in it that is secret."""

import json
import logging
import queue
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from fastapi.testclient import TestClient

from api.app import create_app
from api.server.log_setup import JsonLines, TextLines, _BoundedHandler
from api.settings import Settings
from catalog.accounts import users
from catalog.records.store import RecordStore
from tests.api.servers import serving, wait_until

PASSWORD = "a sentence is a good one"


@pytest.mark.wide
def test_one_line_for_each_request(home: Path) -> None:
    """Who, what, how it ended, how long it took, how much was sent; JSON where it is asked for."""
    records = RecordStore(home / "records" / "records.sqlite")
    users.add(records, "anna", ["admin"], PASSWORD)
    arguments = ("--log-format", "json", "--log-level", "info")
    with serving(home, *arguments, authenticates=True) as (url, process):
        login = httpx.get(f"{url}/auth/v1/token", auth=("anna", PASSWORD))
        token = login.headers["x-auth-token"]
        headers = {"Authorization": f"Bearer {token}", "X-Request-Id": "r-1"}
        statement = "select+count(*)+from+metaocean+where+filename='hush'"
        answer = httpx.get(f"{url}/db2whrest/v1/sql_query?{statement}", headers=headers)
        assert answer.headers["x-request-id"] == "r-1"
        missing = httpx.get(f"{url}/v1/datasets/nobody?secret=hush", headers=headers)
        assert missing.json()["request_id"] == "r-1"
        refused = httpx.get(f"{url}/v1/classes", headers={"Authorization": "Bearer hush"})
        assert refused.json()["request_id"] == refused.headers["x-request-id"]
        httpx.get(f"{url}/v1/cl%0aasses%22", headers=headers | {"X-Request-Id": "bad id"})
        process.terminate()
        _, err = process.communicate(timeout=300)
    assert token not in err
    assert PASSWORD not in err
    assert "hush" not in err
    lines = requests_in(err)
    assert len(lines) == 5
    # By status: a line comes when all of its request is over, which may be after the next one's.
    seen = {
        (line["method"], line["route"], line["status"], line.get("user")): line for line in lines
    }
    assert seen.keys() == {
        ("GET", "/auth/v1/token", 200, "anna"),
        ("GET", "/db2whrest/v1/sql_query", 200, "anna"),
        ("GET", "/v1/datasets/{name}", 422, "anna"),
        ("GET", "/v1/classes", 401, None),
        ("GET", "(none)", 400, None),
    }
    assert seen["GET", "/db2whrest/v1/sql_query", 200, "anna"]["bytes"] == len(answer.content)
    assert all(line["ms"] >= 0 for line in lines)
    bad = seen["GET", "(none)", 400, None]
    assert bad["path"] == "/v1/cl%0aasses%22"
    assert len(bad["request_id"]) == 32


def requests_in(log: str) -> list[dict[str, Any]]:
    """The lines about requests: the snapshot's, when it is in memory, may be among the others."""
    lines: list[dict[str, Any]] = [json.loads(line) for line in log.splitlines()]
    return [line for line in lines if line["message"] == "request"]


LEFT = [
    ("/db2whrest/v1/sql_query", "text/plain"), ("/db2whrest/v1/sql_query_async", "text/plain"),
    ("/db2whrest/v1/search", "application/json"), ("/policyengine/v1/tags", "application/json"),
    ("/v1/tags/values?family=f", "text/csv"), ("/v1/sql", "application/json"),
    ("/v1/tags/map?family=f&within=1", "application/geo+json"), ("/mcp", "application/json"),
    ("/v1/datasets", "application/json"), ("/v1/users", "application/json"),
]  # fmt: skip


@pytest.mark.parametrize("size", [2, 200_000])
def test_a_client_that_leaves_before_its_body_has_come(home: Path, size: int) -> None:
    """499 without a traceback: nothing is wrong here, and nothing was done."""
    with serving(home, "--log-format", "json", "--log-level", "info") as (url, process):
        address = urlsplit(url)
        for path, kind in LEFT:
            head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
            head += f"Accept: application/json, text/event-stream\r\nContent-Length: {2 * size}"
            with socket.create_connection((address.hostname, address.port)) as connection:
                connection.sendall(head.encode() + b"\r\n\r\n" + b"[" * size)
        wait_until(lambda: left(httpx.get(f"{url}/metrics").text) >= len(LEFT))
        process.terminate()
        _, err = process.communicate(timeout=300)
    lines = requests_in(err)
    seen = {line["path"]: line["status"] for line in lines if line["path"] != "/metrics"}
    assert seen == {path.partition("?")[0]: 499 for path, _ in LEFT}
    assert "raceback" not in err
    assert {line["level"] for line in lines} == {"info"}


def left(metrics: str) -> float:
    """How many clients left, as the server counts."""
    matches = re.findall(
        r'^framesift_requests_total\{.*status="499"\} (\S+)$', metrics, re.MULTILINE
    )
    return sum(map(float, matches))


def test_text_is_for_people(home: Path) -> None:
    """The same, as words; the default."""
    with serving(home, "--log-level", "info") as (url, process):
        httpx.get(f"{url}/healthz", headers={"X-Request-Id": "r-2"})
        process.terminate()
        _, err = process.communicate(timeout=300)
    (line,) = [line for line in err.splitlines() if " request " in line]
    assert (
        ' info request request_id="r-2" address="127.0.0.1" method="GET" route="/healthz"' in line
    )


@pytest.fixture
def lines() -> Iterator["queue.Queue[logging.LogRecord]"]:
    """What is logged, formatted as JSON."""
    records: queue.Queue[logging.LogRecord] = queue.Queue(100)
    handler = _BoundedHandler(records)
    handler.setFormatter(JsonLines())
    logging.getLogger("api").addHandler(handler)
    yield records
    logging.getLogger("api").removeHandler(handler)


def test_a_traceback_has_the_id_of_its_request(
    tmp_path: Path, lines: "queue.Queue[logging.LogRecord]"
) -> None:
    """The client is told the id and no more."""
    app = create_app(Settings(home=tmp_path / "home"), authenticates=False)

    @app.get("/broken")
    def _broken() -> None:
        raise RuntimeError("secret path /home/somebody")

    with TestClient(app) as client:
        answer = client.get("/broken", headers={"X-Request-Id": "r-3"})
    assert answer.status_code == 500
    assert answer.json()["request_id"] == answer.headers["x-request-id"] == "r-3"
    assert "secret" not in answer.text
    logged = [json.loads(record.getMessage()) for record in lines.queue]
    (failed,) = [line for line in logged if "traceback" in line]
    assert failed["request_id"] == "r-3"
    assert "secret path" in failed["traceback"]
    assert failed["traceback"].startswith("Traceback")


def test_a_name_does_not_look_like_a_line_of_its_own() -> None:
    """Names that anybody may choose are quoted, in both formats."""
    record = logging.LogRecord("api", logging.INFO, "", 0, "request", None, None)
    record.fields = {"user": 'x"\n2026 error "'}
    for formatter in (TextLines(), JsonLines()):
        assert formatter.format(record).count("\n") == 0


def test_a_full_log_loses_lines_and_stops_nobody() -> None:
    """Whoever reads stderr may stop."""
    lines: queue.Queue[logging.LogRecord] = queue.Queue(1)
    handler = _BoundedHandler(lines)
    handler.setFormatter(TextLines())
    for _ in range(3):
        handler.emit(logging.LogRecord("api", logging.INFO, "", 0, "request", None, None))
    assert lines.qsize() == 1
