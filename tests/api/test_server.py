"""The REST API, asked over real sockets."""

import json
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import httpx
import pytest
from fastapi.testclient import TestClient

from api.app import create_app
from api.cli.commands.server import _listen
from api.settings import Settings
from catalog.memory.snapshot import SnapshotInMemory
from tests.api.servers import counted, framesift, serving, until_ready, wait_until
from tests.needed_programs import needs
from tests.pipeline.homes import FRAMES

BICYCLES = """select platform,datasource,filename from metaocean,t_front,t_center,t_bicycle where \
t_front.fkey=metaocean.fkey and int(t_front.value)=1 and t_center.fkey=metaocean.fkey and \
int(t_center.value)=1 and t_bicycle.fkey=metaocean.fkey and int(t_bicycle.value)>0"""
ENDLESS = "select count(*) from " + ",".join(f"metaocean m{n}" for n in range(7))


def post_sql(server: str, statement: str, **headers: str) -> httpx.Response:
    """A statement as curl -d sends it."""
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    url = f"{server}/db2whrest/v1/sql_query"
    return httpx.post(url, content=statement.encode(), headers=form | headers, timeout=600)


def test_the_published_curl_line_works(server: str) -> None:
    """Curl -d as printed in the redbook: CSV without header, the row's number first."""
    needs("curl")
    run = subprocess.run(
        ["curl", "-s", "-i", "-H", "Authorization: Bearer token",
         f"{server}/db2whrest/v1/sql_query", "-X", "POST", "-d", BICYCLES],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    head, _, body = run.stdout.replace("\r\n", "\n").partition("\n\n")
    assert head.startswith("HTTP/1.1 200")
    assert "content-type: text/csv; charset=utf-8" in head.lower()
    lines = body.splitlines()
    assert lines
    for number, line in enumerate(lines):
        assert re.fullmatch(rf'{number},"IBM COS","a2d2","camera_lidar_semantic/.*\.png"', line)


@pytest.mark.parametrize("text", ["100%25", "a+b", "a&b=c", "x;y", "%x+y&z%", "ä€", "it''s", "= "])
def test_the_body_is_never_decoded_as_a_form(server: str, text: str) -> None:
    """Percent signs, plus, ampersands and semicolons arrive as they were sent."""
    answer = post_sql(server, f"select '{text}' from metaocean fetch first 1 rows only;")
    assert (answer.status_code, answer.text) == (200, f'0,"{text.replace(chr(39) * 2, chr(39))}"\n')


def test_the_query_string_is_the_statement(server: str) -> None:
    """GET: the whole query string, encoded, without a parameter's name."""
    statement = "select count(*) from metaocean where filename like '%+&%' or 1=1"
    url = f"{server}/db2whrest/v1/sql_query?{quote_plus(statement)}"
    everything = post_sql(server, "select count(*) from metaocean").text
    assert httpx.get(url).text == everything


def test_json_when_accept_asks_for_it(server: str) -> None:
    """A JSON array of objects, with a blank after the colon as clients of the product grep it."""
    statement = """select platform, int(t_car.value) as car from metaocean, t_car
        where t_car.fkey = metaocean.fkey order by car desc"""
    answer = post_sql(server, statement, Accept="application/json")
    rows = answer.json()
    assert len(rows) == FRAMES
    assert answer.headers["content-type"] == "application/json"
    assert [row["car"] for row in rows] == sorted((row["car"] for row in rows), reverse=True)
    assert '{"platform": "IBM COS", "car": ' in answer.text


def test_the_documented_error_body(server: str) -> None:
    """An unknown column: 400, and the text of an ODBC exception inside a JSON object."""
    answer = post_sql(server, "select ownerzzz from metaocean")
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/json"
    assert answer.text == (
        "{\"reason\": \"('42S22', '[42S22] [IBM][CLI Driver][DB2/LINUXX8664] SQL0206N  "
        '\\"OWNERZZZ\\" is not valid in the context where it is used.  SQLSTATE=42703\\\\n\')",'
        ' "status": "error"}'
    )


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("select * from nowhere", "SQL0204N"),
        ("delete from metaocean", "SQL0142N"),
        ("select 1 from metaocean; select 2 from metaocean", "SQL0142N"),
        ("", "SQL0198N"),
        ("select from where", "SQL0104N"),
        ("select " + "1+" * 50_000 + "1 from metaocean", "SQL0101N"),
        ("select * from read_csv('/etc/passwd')", "SQL"),
        ("\udcff".encode("utf-8", "surrogatepass").decode("latin-1"), "SQL"),
    ],
    ids=["table", "delete", "two", "empty", "syntax", "long", "file", "bytes"],
)
def test_every_bad_statement_has_that_shape(server: str, statement: str, code: str) -> None:
    """400, reason and status, a Db2 message number inside."""
    answer = post_sql(server, statement)
    assert answer.status_code == 400
    body = answer.json()
    assert set(body) == {"reason", "status"}
    assert body["status"] == "error"
    assert code in body["reason"]


def test_classes(server: str) -> None:
    """Every class with frames and share; the shares of all classes are at most 1."""
    classes = httpx.get(f"{server}/v1/classes").json()["classes"]
    car = next(entry for entry in classes if entry["tag"] == "car")
    assert car["name"] == "Car"
    assert 0 < car["share"] <= car["share_where_present"] <= 1
    assert sum(entry["share"] for entry in classes) <= 1 + 1e-9


def test_selections(server: str) -> None:
    """Ranges and cameras choose frames; the answer says of which snapshot."""
    question = {"ranges": [{"tag": "car", "lowest": 10000}], "cameras": ["front_center"]}
    answer = httpx.post(f"{server}/v1/selections", json=question).json()
    assert answer["count"] == len(answer["frames"]) > 0
    assert all(f["car"] >= 10000 and f["camera"] == "front_center" for f in answer["frames"])
    assert answer["snapshot"] > 0
    assert answer["question"] == question | {"snapshot": answer["snapshot"]}
    assert answer["class_pixels"]["car"] == sum(f["car"] for f in answer["frames"])


def test_datasets(server: str) -> None:
    """Made, listed, found by name and by version."""
    request = {
        "name": "val-bikes", "question": {"ranges": [{"tag": "bicycle", "lowest": 1}]},
        "split": "a=0.5,b=0.5", "split_by": "frame",
    }  # fmt: skip
    response = httpx.post(f"{server}/v1/datasets", json=request)
    assert response.status_code == 201
    assert (response.json()["name"], response.json()["version"]) == ("val-bikes", 1)
    assert set(response.json()["splits"]) == {"a", "b"}
    assert Path(response.json()["manifest"], "manifest.json").is_file()
    assert httpx.post(f"{server}/v1/datasets", json=request).json() == response.json()
    assert response.json() in httpx.get(f"{server}/v1/datasets").json()["datasets"]
    layouts = {"layouts": [{"layout": "a2d2", "sources": ["a2d2"]}]}
    assert httpx.get(f"{server}/v1/datasets/val-bikes@1").json() == response.json() | layouts


PROBLEMS = [
    ("GET", "/nothing", None, 404, "Not Found"),
    ("DELETE", "/v1/classes", None, 405, "Method Not Allowed"),
    ("POST", "/v1/selections", b"{half", 400, "InvalidInput"),
    ("POST", "/v1/selections", b"[1]", 422, "InvalidRequest"),
    ("POST", "/v1/selections", b'{"colour": 1}', 422, "InvalidRequest"),
    ("POST", "/v1/selections", b'{"limit": 0}', 422, "InvalidRequest"),
    ("POST", "/v1/selections", b'{"where": "\\ud800"}', 422, "InvalidRequest"),
    ("POST", "/v1/selections", b'{"ranges": [{"tag": "car"}]}', 422, "InvalidRequest"),
    ("POST", "/v1/selections", b'{"ranges": [{"tag": "cra", "lowest": 1}]}', 400, "UnknownName"),
    ("POST", "/v1/selections", b'{"cameras": ["nose"]}', 400, "UnknownName"),
    ("POST", "/v1/selections", b'{"order": ["car sideways"]}', 400, "InvalidInput"),
    ("POST", "/v1/selections", b'{"where": "car >"}', 400, "SqlError"),
    ("POST", "/v1/datasets", b'{"name": "a/b", "question": {}}', 400, "InvalidInput"),
    ("POST", "/v1/datasets", b'{"name": "a", "question": {}, "split": "x"}', 400, "InvalidInput"),
    ("GET", "/v1/datasets/nobody", None, 404, "NotFound"),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "title"), PROBLEMS)
def test_every_error_is_a_problem_document(
    server: str, method: str, path: str, body: bytes | None, status: int, title: str
) -> None:
    """RFC 9457: one content type and one shape for all errors of our own routes."""
    headers = {"Content-Type": "application/json"}
    answer = httpx.request(method, server + path, content=body, headers=headers)
    assert (answer.status_code, answer.headers["content-type"]) == (
        status, "application/problem+json",
    )  # fmt: skip
    document = answer.json()
    assert (document["type"], document["title"], document["status"]) == (
        "about:blank",
        title,
        status,
    )
    assert document["detail"]
    if title == "SqlError":
        assert (document["sqlcode"], document["sqlstate"]) == (-104, "42601")
    if title == "Method Not Allowed":
        assert answer.headers["allow"] == "GET, HEAD, OPTIONS"
    if b'"cra"' in (body or b""):
        assert "car" in document["nearest"]


def test_health(server: str) -> None:
    """Alive, and ready with the newest snapshot."""
    assert httpx.get(f"{server}/healthz").json() == {"status": "ok"}
    until_ready(server)
    ready = httpx.get(f"{server}/readyz").json()
    assert ready["status"] == "ready"
    assert ready["snapshot"] > 0


def test_the_description_lists_every_route(server: str) -> None:
    """/openapi.json says what there is."""
    paths = httpx.get(f"{server}/openapi.json").json()["paths"]
    assert {path: sorted(methods.keys() - {"head"}) for path, methods in paths.items()}.items() >= {
        "/healthz": ["get"],
        "/readyz": ["get"],
        "/db2whrest/v1/sql_query": ["get", "post"],
        "/v1/classes": ["get"],
        "/v1/selections": ["post"],
        "/v1/datasets": ["get", "post"],
        "/v1/datasets/{name}": ["delete", "get", "patch"],
    }.items()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", ""])
def test_only_this_machine_may_ask(catalogued: Path, host: str) -> None:
    """Where nobody is asked who they are another address is refused, in one line."""
    run = framesift(catalogued, "serve", "--no-auth", "--host", host, "--port", "0")
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr.startswith(f"error: host {host}: with --no-auth")
    assert run.stderr.count("\n") == 1


def test_a_port_in_use_is_one_line(catalogued: Path) -> None:
    """The port is named, and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        run = framesift(catalogued, "serve", "--port", str(port))
    assert run.returncode == 1
    assert run.stderr.startswith(f"error: 127.0.0.1:{port}: Address already in use")
    assert run.stderr.count("\n") == 1


def test_a_home_that_cannot_be_used_is_said_at_the_start(tmp_path: Path) -> None:
    """Not at the first request."""
    (tmp_path / "file").touch()
    run = framesift(tmp_path / "file", "serve", "--port", "0")
    assert run.returncode == 1
    assert run.stderr.startswith("error: ")
    assert run.stderr.count("\n") == 1


@pytest.mark.wide
def test_others_are_answered_while_a_query_runs_and_sigterm_ends_both(home: Path) -> None:
    """One long statement does not hold up another request, nor the end of the server."""
    limit = {"FRAMESIFT_QUERY_TIMEOUT_S": "1200"}
    with serving(home, variables=limit) as (url, process):
        long = threading.Thread(target=lambda: _ignore(url), daemon=True)
        long.start()
        wait_until(lambda: counted(url) == (1, 0))
        assert httpx.get(f"{url}/healthz").status_code == 200
        assert len(post_sql(url, "select fkey from metaocean").text.splitlines()) > FRAMES
        wait_until(lambda: counted(url) == (1, 0))
        assert long.is_alive()
        process.send_signal(signal.SIGTERM)
        process.wait(120)


def _ignore(url: str) -> None:
    with suppress(httpx.HTTPError):
        post_sql(url, ENDLESS)


@pytest.mark.wide
def test_a_query_that_takes_too_long_is_given_up(home: Path) -> None:
    """FRAMESIFT_QUERY_TIMEOUT_S: SQL0952N, and the server goes on."""
    with serving(home, variables={"FRAMESIFT_QUERY_TIMEOUT_S": "0.5"}) as (url, _):
        answer = post_sql(url, ENDLESS)
        assert answer.status_code == 400
        assert "SQL0952N" in json.loads(answer.text)["reason"]
        until_ready(url)


@pytest.mark.wide
def test_sigterm_ends_an_idle_server_at_once(home: Path) -> None:
    """Nothing on stderr, and long before the time that requests would have."""
    with serving(home, "--shutdown-timeout", "600") as (url, process):
        until_ready(url)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=300)
        assert err == ""
        assert process.returncode == 0


def test_a_server_that_holds_the_snapshot_in_memory(home: Path, server: str) -> None:
    """The setting reaches the store, and the answers are those of a server without it."""
    text = "select count(*), sum(int(t_car.value)) from t_car"
    app = create_app(Settings(home=home, snapshot_memory_mb=200), authenticates=False)
    with TestClient(app) as client:
        for _ in range(2):  # before it is loaded, and after
            answer = client.post("/db2whrest/v1/sql_query", content=text)
            assert answer.text == post_sql(server, text).text
            assert app.state.workspace.catalog.memory.wait(300)


@pytest.mark.wide
def test_it_is_ready_when_the_snapshot_is_in_memory(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """/readyz begins the load and says so; a later commit does not take it back."""
    goes_on = threading.Event()

    def held_up(work: Callable[..., Any]) -> Callable[..., Any]:
        def later(*arguments: Any) -> Any:
            assert goes_on.wait(300)
            return work(*arguments)

        return later

    for name in ("_load", "refreshed"):
        monkeypatch.setattr(SnapshotInMemory, name, held_up(getattr(SnapshotInMemory, name)))
    app = create_app(Settings(home=home, snapshot_memory_mb=200), authenticates=False)
    with TestClient(app) as client:
        for _ in range(2):
            answer = client.get("/readyz")
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
            assert answer.json()["title"] == "Loading"
        assert client.get("/healthz").status_code == 200
        assert client.get("/v1/frames?limit=1").status_code == 200
        goes_on.set()
        wait_until(lambda: client.get("/readyz").status_code == 200)
        assert app.state.workspace.catalog.memory.at(None) is not None
        goes_on.clear()
        assert client.post("/v1/tags", json={"tag": "late"}).status_code < 300
        assert client.get("/readyz").status_code == 200
        assert app.state.workspace.catalog.memory.at(None) is None
        goes_on.set()


@pytest.mark.wide
def test_nothing_is_loaded_and_it_is_ready(home: Path) -> None:
    """Without memory for a snapshot there is nothing to wait for, nor where it does not fit."""
    for megabytes in (0, 1):
        app = create_app(Settings(home=home, snapshot_memory_mb=megabytes), authenticates=False)
        with TestClient(app) as client:
            until = time.monotonic() + 300
            while client.get("/readyz").status_code != 200:
                assert megabytes
                assert time.monotonic() < until


def test_small_answers_do_not_wait_for_acknowledgements() -> None:
    """Accepted connections have TCP_NODELAY."""
    with (
        _listen("127.0.0.1", 0) as listener,
        socket.create_connection(listener.getsockname()),
        listener.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
