"""Webhooks: jobs' ends told to a real HTTP server; signed, tried again, never redirected."""

import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import update
from typer.testing import CliRunner

import framesift as client_package
from api.app import create_app
from api.cli.commands.automation.webhook import webhook_app
from api.services.automation.delivering import AGAIN_S, notify_webhooks
from api.services.session import Session
from api.settings import Settings
from api.workspace import Workspace
from catalog.errors import InvalidInput
from catalog.records.automation.tables import WebhookDelivery
from catalog.records.tables import Job
from catalog.values import now
from tests.api.servers import serving, wait_until
from tests.pipeline.homes import copy_home


class Receiver:
    """A server on 127.0.0.1 that answers as it is told, and keeps what it was sent."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, dict[str, str]]] = []
        self.got: list[tuple[str, dict[str, str], bytes]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.got.append((self.path, dict(self.headers), body))
                status, headers = receiver.answers.pop(0) if receiver.answers else (204, {})
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Print nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self.server.server_port}"
        self.url = f"http://{self.host}/hook?team=a"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """One that listens."""
    one = Receiver()
    thread = threading.Thread(target=one.server.serve_forever)
    thread.start()
    yield one
    one.server.shutdown()
    thread.join()
    one.server.server_close()


@pytest.fixture
def home(catalogued: Path, tmp_path: Path, receiver: Receiver) -> Workspace:
    """A home whose settings allow the receiver."""
    folder = copy_home(catalogued, tmp_path)
    return Workspace(Settings(home=folder, cache=None, webhook_hosts=(receiver.host,)))


def ended(workspace: Workspace, name: str, state: str = "done", **columns: Any) -> None:
    """A job that ended just now."""
    folder = str(workspace.jobs / name)
    with workspace.records.session() as session:
        session.add(
            Job(
                name=name, kind="train", backend="local", state=state, handle="1:1",
                request={"stages": [], "settings": {"max_steps": 3}}, started=now(),
                finished=now(), metrics={"loss": 0.5}, paths={"folder": folder}, **columns,
            )
        )  # fmt: skip


def let_time_pass(workspace: Workspace) -> None:
    """What is to be tried later, is due."""
    with workspace.records.session() as session:
        session.execute(update(WebhookDelivery).values(due=now() - timedelta(seconds=1)))


def test_an_end_is_told_once_and_signed(home: Workspace, receiver: Receiver) -> None:
    """Proves body, signature and record; jobs that ended before, or otherwise, are not told."""
    ended(home, "before")
    webhooks = Session(home).webhooks
    secret = webhooks.add("ci", receiver.url, states=["failed"]).secret
    assert notify_webhooks(home) == 0
    ended(home, "well")
    ended(home, "badly", "failed", error="error: no memory")
    assert notify_webhooks(home) == 1
    assert notify_webhooks(home) == 0
    ((path, headers, body),) = receiver.got
    assert path == "/hook?team=a"
    parts = dict(part.split("=") for part in headers["X-Framesift-Signature"].split(","))
    signed = hmac.new(secret.encode(), parts["t"].encode() + b"." + body, hashlib.sha256)
    assert parts["v1"] == signed.hexdigest()
    told = json.loads(body)
    assert told["event"] == "job.failed"
    assert (told["job"]["name"], told["job"]["error"]) == ("badly", "error: no memory")
    assert told["job"]["metrics"] == {"loss": 0.5}
    assert not {"paths", "request", "settings"} & told["job"].keys()
    (row,) = webhooks.deliveries("ci")
    assert (row.job, row.state, row.tries, row.status) == ("badly", "delivered", 1, 204)
    assert headers["X-Framesift-Delivery"] == row.delivery == told["delivery"]
    assert secret not in str(home.records.location.read_bytes())  # type: ignore[union-attr]


def test_it_is_tried_again_and_given_up(home: Workspace, receiver: Receiver) -> None:
    """A receiver that fails is asked later, with the same delivery; in the end nobody asks it."""
    webhooks = Session(home).webhooks
    webhooks.add("ci", receiver.url)
    receiver.answers = [(500, {})]
    ended(home, "one")
    assert notify_webhooks(home) == 0
    (row,) = webhooks.deliveries("ci")
    assert (row.state, row.status, row.error) == (
        "pending", 500, "the receiver answered 500; expected 2xx",
    )  # fmt: skip
    assert notify_webhooks(home) == 0
    assert len(receiver.got) == 1  # not due yet
    let_time_pass(home)
    assert notify_webhooks(home) == 1
    first, second = (headers["X-Framesift-Delivery"] for _, headers, _ in receiver.got)
    assert first == second
    receiver.answers = [(503, {})] * 20
    ended(home, "two")
    lines: list[str] = []
    for _ in range(len(AGAIN_S) + 3):
        notify_webhooks(home, lines.append)
        let_time_pass(home)
    (row, _) = webhooks.deliveries("ci")
    assert (row.state, row.tries, row.due) == ("failed", len(AGAIN_S) + 1, None)
    assert len(lines) == 1
    assert "given up after 7 tries" in lines[0]


def test_a_redirect_is_not_followed(home: Workspace, receiver: Receiver) -> None:
    """Not even to the same host: nothing that was not allowed is asked."""
    webhooks = Session(home).webhooks
    webhooks.add("ci", receiver.url)
    receiver.answers = [(307, {"Location": f"http://{receiver.host}/other"})]
    ended(home, "one")
    assert notify_webhooks(home) == 0
    assert [path for path, _, _ in receiver.got] == ["/hook?team=a"]
    assert "which is not followed" in webhooks.deliveries("ci")[0].error


def test_only_allowed_hosts(home: Workspace, receiver: Receiver) -> None:
    """When it is added, and at each delivery; a silent address says so."""
    webhooks = Session(home).webhooks
    for url, words in (
        ("http://169.254.169.254/latest", "FRAMESIFT_WEBHOOK_HOSTS"),
        ("http://127.0.0.1:1/", "FRAMESIFT_WEBHOOK_HOSTS"),
        (f"http://a:b@{receiver.host}/", "has no place in its URL"),
        (f"http://{receiver.host}@evil.example/", "has no place in its URL"),
        (f"http://evil.example\\@{receiver.host}/", "expected https://HOST/PATH"),
        (f"file://{receiver.host}/etc/passwd", "expected https://HOST/PATH"),
        ("http://[::1", "expected https://HOST/PATH"),
    ):
        with pytest.raises(InvalidInput, match=words):
            webhooks.add("ci", url)
    webhooks.add("ci", receiver.url)
    ended(home, "one")
    strict = Workspace(Settings(home=home.home, cache=None))
    assert notify_webhooks(strict) == 0
    assert receiver.got == []
    assert "is not allowed" in webhooks.deliveries("ci")[0].error


@pytest.mark.wide
def test_by_command_rest_and_client(
    home: Workspace, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same webhook; a server's ticker tells it of an end."""
    monkeypatch.setenv("FRAMESIFT_HOME", str(home.home))
    monkeypatch.setenv("FRAMESIFT_WEBHOOK_HOSTS", receiver.host)

    def framesift(*words: str) -> str:
        run = CliRunner().invoke(webhook_app, words, catch_exceptions=False)
        assert run.exit_code == 0, run
        return run.output

    added = framesift("add", "ci", receiver.url, "--state", "failed", "--state", "done")
    assert added.startswith("added webhook ci; its secret, shown this once:\n")
    (listed,) = json.loads(framesift("list", "--json"))
    assert (listed["states"], "secret" in listed) == (["failed", "done"], False)
    with pytest.raises(InvalidInput, match="states"):
        Session(home).webhooks.add("ci2", receiver.url, states=["ended"])
    settings = Settings(home=home.home, cache=None, webhook_hosts=(receiver.host,))
    with TestClient(create_app(settings, authenticates=False)) as client:
        wrong = client.post("/v1/webhooks", json={"name": "x", "url": "http://other/"})
        assert (wrong.status_code, wrong.json()["title"]) == (400, "InvalidInput")
        assert client.get("/v1/webhooks/ci").json() == listed
    variables = {"FRAMESIFT_WEBHOOK_HOSTS": receiver.host}
    with (
        serving(home.home, variables=variables) as (url, _),
        client_package.connect(url) as remote,
    ):
        made = remote.webhooks.add("second", receiver.url, states=["cancelled"])
        assert len(made["secret"]) > 40
        ended(home, "one")
        wait_until(lambda: len(receiver.got) == 1)
        wait_until(lambda: next(iter(remote.webhooks.deliveries("ci")))["state"] == "delivered")
        assert [*remote.webhooks.deliveries("second")] == []
        remote.webhooks.remove("second")
        assert [webhook.name for webhook in remote.webhooks] == ["ci"]
    assert "one" in framesift("show", "ci")
    assert framesift("remove", "ci") == "removed webhook ci\n"
