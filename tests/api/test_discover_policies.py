"""Policies and regular expressions, as clients of Spectrum Discover's policy engine send them."""

import json
import subprocess
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import update

from api.app import create_app
from api.settings import Settings
from catalog.records.policy_tables import Policy, PolicyRun
from catalog.values import now
from tests.api.servers import framesift
from tests.pipeline.homes import open_home

pytestmark = pytest.mark.wide

PATTERN = r"\b\d{3}\s\d{2}\s\d{4}\b"
GREP = 'grep -o \'"{}": "[^"]*\' | grep -o \'[^"]*$\''
"""How the tape scripts read one value of an answer."""


@pytest.fixture(scope="module")
def engine(shared_home: Path) -> Iterator[TestClient]:
    """Its policy engine."""
    app = create_app(Settings(home=shared_home, cache=None), authenticates=False)
    with TestClient(app, base_url="http://test/policyengine/v1/") as client:
        yield client


def grep(name: str, text: str) -> str:
    """The value of that name, as the scripts take it from an answer."""
    run = subprocess.run(
        ["bash", "-c", GREP.format(name)], input=text, capture_output=True, text=True, check=False
    )
    return run.stdout.strip()


def ended(engine: TestClient, policy: str) -> dict[str, Any]:
    """Its status once it runs no more, asked for as the scripts do."""
    for _ in range(1500):
        answer = engine.get(f"policies/{policy}/status")
        if grep("status", answer.text) not in ("running", "paused"):
            break
        time.sleep(0.2)
    status: dict[str, Any] = answer.json()
    return status


def search(engine: TestClient, query: str) -> list[dict[str, Any]]:
    """Records by a condition."""
    answer = engine.post("http://test/db2whrest/v1/search", content=json.dumps({"query": query}))
    rows: list[dict[str, Any]] = json.loads(answer.json()["rows"])
    return rows


def test_a_policy_from_the_first_request_to_the_last(engine: TestClient) -> None:
    """Documented replies letter by letter; it runs when it is sent, changed or started."""
    assert engine.get("policies").text == "[]"
    added = engine.post(
        "policies",
        content=(
            '{"pol_id":"pol2", "pol_filter":"filename LIKE (\'%front_center%\')", '
            '"action_id":"AUTOTAG", "action_params": {"tags": {"tag4":"val4", "tag5":"val5"}}, '
            '"schedule":"NOW"}'
        ),
    )
    assert (added.status_code, added.text) == (201, "Policy 'pol2' added")
    status = ended(engine, "pol2")
    count = len(search(engine, "filename like '%front_center%'"))
    assert list(status) == [
        "status", "total_count", "completed_count", "failed_count", "submitted_count",
        "start_time", "end_time",
    ]  # fmt: skip
    assert list(status.values())[:5] == ["complete", count, count, 0, count]
    time.strptime(status["start_time"], "%Y-%m-%d_%H:%M:%S")
    assert len(search(engine, "tag4 = 'val4' and tag5='val5'")) == count
    one = engine.get("policies/pol2")
    assert grep("pol_id", one.text) == "pol2"
    assert engine.get("policies").text == f"[{one.text}]"
    policy = one.json()
    info = json.loads(policy.pop("execution_info"))
    assert {name: info[name] for name in ("total_count", "skipped_count")} == {
        "total_count": count, "skipped_count": 0,
    }  # fmt: skip
    assert list(info) == [
        "start_time", "total_count", "submitted_count", "failed_count", "completed_count",
        "skipped_count", "run_id", "end_time",
    ]  # fmt: skip
    policy.pop("last_updated")
    assert policy == {
        "pol_id": "pol2", "action_id": "AUTOTAG",
        "action_params": {"tags": {"tag4": "val4", "tag5": "val5"}}, "schedule": "NOW",
        "pol_filter": "filename LIKE ('%front_center%')", "pol_state": "active",
        "pol_status": "complete", "explicit": "true", "collections": [], "policy_owner": "",
        "last_updated_by": "",
    }  # fmt: skip
    # The tape scripts' way to tag others: a policy that is there is updated, which runs it.
    changed = engine.put(
        "policies/pol2",
        content='{"pol_id": "pol2", "pol_filter": "filename like \'%front_left%\'", '
        '"pol_state": "Active", "action_params": { "tags": {"tag4": "false"} }, '
        '"schedule": "NOW" }',
    )
    assert changed.text == "Policy 'pol2' updated"
    others = ended(engine, "pol2")["completed_count"]
    assert len(search(engine, "tag4 = 'false'")) == others > 0
    assert len(search(engine, "tag4 = 'val4'")) == count
    started = engine.post("policies/pol2/start")
    assert (started.status_code, started.text) == (202, "Accepted")
    # It has yet to begin: it is told to wait, and waits before its first file.
    again = engine.post("policies/pol2/start")
    assert (again.status_code, again.json()["reason"]) == (
        400, "policy 'pol2' is running already",
    )  # fmt: skip
    assert engine.post("policies/pol2/pause").text == "Accepted"
    for method in ("PUT", "DELETE"):
        assert engine.request(method, "policies/pol2", content="{}").status_code == 400
    until = time.monotonic() + 300
    while engine.get("policies/pol2/status").json()["status"] == "running":
        assert time.monotonic() < until
        time.sleep(0.2)
    assert engine.get("policies/pol2/status").json()["status"] == "paused"
    assert engine.get("policies/pol2").json()["pol_status"] == "paused"
    assert engine.post("policies/pol2/resume").text == "Accepted"
    assert ended(engine, "pol2")["completed_count"] == others
    engine.post("policies/pol2/start")
    assert engine.post("policies/pol2/kill").text == "Accepted"
    assert ended(engine, "pol2")["status"] == "killed"
    assert [run["status"] for run in engine.get("policies/pol2/history").json()] == [
        "killed", "complete", "complete", "complete",
    ]  # fmt: skip
    for action in ("kill", "stop", "pause", "resume"):
        assert engine.post(f"policies/pol2/{action}").status_code == 400
    assert engine.delete("policies/pol2").text == "Policy 'pol2' deleted"
    assert engine.get("policies/pol2").status_code == 404
    assert len(search(engine, "tag4 = 'val4'")) == count


def test_policies_that_wait(engine: TestClient, shared_home: Path) -> None:
    """A scheduled or inactive one is kept and never ran; the timer's command starts what is due."""
    body = {
        "action_id": "autotag", "action_params": json.dumps({"tags": {"later": "1"}}),
        "pol_filter": "", "schedule": {"dayOfWeek": 4, "hour": 5, "minute": 15},
        "explicit": "true", "collections": [],
    }  # fmt: skip
    assert engine.post("policies/waits", json=body).text == "Policy 'waits' added"
    idle = {**body, "pol_id": "idle", "schedule": "NOW", "pol_state": "inactive"}
    assert engine.post("policies", json=idle).text == "Policy 'idle' added"
    for name in ("waits", "idle"):
        assert engine.get(f"policies/{name}/status").json() == {"status": "never run"}
        assert json.loads(engine.get(f"policies/{name}").json()["execution_info"]) == {}
    assert engine.get("policies/waits").json()["schedule"] == body["schedule"]
    assert engine.get("policies/waits").json()["action_params"] == {"tags": {"later": "1"}}
    assert "inactive" in engine.post("policies/idle/start").json()["reason"]
    assert json.loads(framesift(shared_home, "policy", "due", "--json").stdout) == []
    listed = json.loads(framesift(shared_home, "policy", "list", "--json").stdout)
    assert [(each["name"], each["last_run"]) for each in listed] == [
        ("idle", None),
        ("waits", None),
    ]
    run = framesift(shared_home, "policy", "run", "waits")
    assert run.stdout.startswith("policy waits complete: 75 files found, 75 done, 0 failed")
    lately = (now() - timedelta(minutes=5)).minute
    engine.put("policies/waits", json={"schedule": {"minute": lately}})
    workspace = open_home(shared_home)
    with workspace.records.session() as session:  # as if these had happened an hour ago
        session.execute(update(Policy).values(updated=now() - timedelta(hours=1)))
        session.execute(update(PolicyRun).values(started=now() - timedelta(hours=1)))
    workspace.close()
    due = json.loads(framesift(shared_home, "policy", "due", "--json").stdout)
    assert [each["policy"] for each in due] == ["waits"]
    assert json.loads(framesift(shared_home, "policy", "due", "--json").stdout) == []
    assert ended(engine, "waits")["status"] == "complete"
    for name in ("waits", "idle"):
        engine.delete(f"policies/{name}")


def test_a_run_that_fails_says_why(engine: TestClient) -> None:
    """The documentation's own example names a column that there is not."""
    body = {
        "pol_id": "doc", "pol_filter": "user='research1'", "action_id": "AUTOTAG",
        "action_params": {"tags": {"tag4": "val4"}}, "schedule": "NOW",
    }  # fmt: skip
    assert engine.post("policies", json=body).text == "Policy 'doc' added"
    status = ended(engine, "doc")
    assert status["status"] == "failed"
    assert status["error"].startswith('SQL0206N  "USER" is not valid in the context')
    assert engine.delete("policies/doc").status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "words"),
    [
        ("GET", "/nope", "", 404, "no policy named 'nope'"),
        ("GET", "/nope/status", "", 404, "nope"),
        ("GET", "/nope/history", "", 404, "nope"),
        ("PUT", "/nope", "{}", 404, "nope"),
        ("DELETE", "/nope", "", 404, "nope"),
        ("POST", "/nope/start", "", 404, "nope"),
        ("POST", "", "{}", 400, "pol_id is missing"),
        ("POST", "", '{"pol_id": "a"}', 400, "action_id is missing"),
        ("POST", "", '{"pol_id": "a/b", "action_id": "AUTOTAG"}', 400, "action_params"),
        ("POST", "/a", '{"pol_id": "b"}', 400, "not the policy of the address"),
        ("POST", "", '{"pol_id": "a", "action_id": "DELETE"}', 400, "unknown action_id 'DELETE'"),
        ("POST", "", '{"pol_id": "a", "action_id": "contentsearch"}', 400, "searches no files"),
        ("POST", "", '{"pol_id": "a", "action_id": "AUTOTAG", "action_params": "["}', 400,
         "action_params: the text is no JSON"),
        ("POST", "", '{"pol_id": "a", "action_id": "AUTOTAG", "schedule": "SOON"}', 400,
         "schedule SOON"),
        ("POST", "", '{"pol_id": "a", "action_id": "AUTOTAG", "pol_state": "on"}', 400,
         "active or inactive"),
        ("POST", "", ('{"pol_id": "../x", "action_id": "AUTOTAG", '
         '"action_params": {"tags": {"x_": "1"}}}'), 400, "policy name"),
        ("POST", "", ('{"pol_id": "a", "action_id": "AUTOTAG", "pol_filter": "size >", '
         '"action_params": {"tags": {"x_": "1"}}}'), 400, "SQL0104N"),
        ("POST", "", ('{"pol_id": "a", "action_id": "IMPORT_TAGS", "action_params": '
         '{"source_connection": "none", "tag_file_path": "x.csv"}}'), 404, "no source named"),
        ("POST", "", ('{"pol_id": "a", "action_id": "IMPORT_TAGS", "action_params": '
         '{"source_connection": "a2d2", "tag_file_path": "x", "tag_file_type": "xls"}}'), 400,
         "tag_file_type"),
        ("POST", "", ('{"pol_id": "a", "action_id": "DEEPINSPECT", "action_params": '
         '{"agent": "/tmp/x.py:X"}}'), 400, "unknown extractor"),
        ("POST", "", '{"pol_id": "\\ud800"}', 400, "the body is no JSON"),
    ],
)  # fmt: skip
def test_what_is_refused(
    engine: TestClient, method: str, path: str, body: str, status: int, words: str
) -> None:
    """In the documented form, and nothing is kept."""
    answer = engine.request(method, f"policies{path}", content=body)
    assert answer.status_code == status, answer.text
    assert list(answer.json()) == ["reason", "status"]
    assert words in answer.json()["reason"]
    assert engine.get("policies").json() == []


def test_regular_expressions(engine: TestClient) -> None:
    """The documented one is registered, shown, changed, forgotten; what cannot run is refused."""
    body = {
        "regex_id": "US-SSN-blank-delimited", "pattern": PATTERN,
        "description": "US SSN delimited by white space, not dashes.",
    }  # fmt: skip
    assert engine.post("regex", json=body).status_code == 201
    assert engine.get("regex").json() == [engine.get("regex/US-SSN-blank-delimited").json()]
    assert list(engine.get("regex").json()[0].items()) == list(body.items())
    again = engine.post("regex", json=body)
    assert (again.status_code, again.json()["status"]) == (409, "error")
    for path, sent in (
        ("regex", {"regex_id": body["regex_id"], "pattern": "a"}),
        ("regex/US-SSN-blank-delimited", {"description": "b"}),
    ):
        changed = engine.put(path, json=sent)
        assert (changed.status_code, changed.text) == (200, "Accepted")
    assert engine.get("regex").json() == [{**body, "pattern": "a", "description": "b"}]
    for pattern in ("(", "(?=a)", r"(a)\1", "", "a" * 5000, "((a{100}){100}){100}"):
        refused = engine.put("regex/US-SSN-blank-delimited", json={"pattern": pattern})
        assert refused.status_code == 400, pattern
        assert "pattern" in refused.json()["reason"]
    for method, path in (("GET", "regex/x"), ("PUT", "regex/x"), ("DELETE", "regex/x")):
        assert engine.request(method, path, content="{}").status_code == 404
    assert engine.put("regex", json={}).status_code == 400
    assert engine.post("regex", json={"regex_id": "a b", "pattern": "a"}).status_code == 400
    assert engine.delete("regex/US-SSN-blank-delimited").text == "Accepted"
    assert engine.get("regex").text == "[]"


def test_applications_are_extractors(engine: TestClient) -> None:
    """Listed by the name that a policy calls agent, with the tags they read, as JSON Schema."""
    assert engine.get("action_ids").text == '["AUTOTAG", "DEEPINSPECT", "IMPORT_TAGS"]'
    listed = engine.get("applications").json()
    assert {"agent": "image", "action_id": "DEEPINSPECT", "action_params": ["extract_tags"]} in (
        listed
    )
    assert listed[-1]["agent"] == "ImportTags"
    for query in ({}, {"action_id": "DEEPINSPECT"}, {"action_id": "deepinspect"}):
        schema = engine.get("applications/image/schema", params=query).json()
        assert "image_brightness" in schema["properties"]["extract_tags"]["items"]["enum"]
    # The documentation's own address.
    imports = engine.get("applications/ImportTags/schema?action_id=IMPORT_TAGS").json()
    assert imports["required"] == ["source_connection", "tag_file_path"]
    assert engine.get("applications/image/schema?action_id=MOVE").status_code == 400
    assert engine.get("applications/none/schema").status_code == 404


NEW_APPLICATION = {
    "action_agent": "extractapplication", "action_id": "DEEPINSPECT",
    "action_params": ["extract_tags"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "words"),
    [
        ("POST", "applications", NEW_APPLICATION, 400, "no work over Kafka"),
        ("POST", "applications", {**NEW_APPLICATION, "action_agent": "image"}, 409, "installed"),
        ("POST", "applications", {**NEW_APPLICATION, "action_id": "MOVE"}, 400, "DEEPINSPECT"),
        ("POST", "applications", {**NEW_APPLICATION, "action_agent": "a" * 65}, 400, "agent"),
        ("POST", "applications", {**NEW_APPLICATION, "action_agent": "a b"}, 400, "action_agent"),
        ("POST", "applications", {}, 400, "action_agent"),
        ("PATCH", "applications/image", {}, 400, "no work over Kafka"),
        ("DELETE", "applications/image", None, 400, "no work over Kafka"),
        ("PATCH", "applications/none", {}, 404, "there are boxes, bus, image"),
        ("GET", "tlscert", None, 404, "this server hands out no work over Kafka"),
    ],
)  # fmt: skip
def test_what_would_register_is_told_why_it_cannot(
    engine: TestClient, method: str, path: str, body: Any, status: int, words: str
) -> None:
    """In the documented form, with what there is in its place."""
    content = None if body is None else json.dumps(body)
    answer = engine.request(method, path, content=content)
    assert (answer.status_code, list(answer.json())) == (status, ["reason", "status"]), answer.text
    assert words in answer.json()["reason"]
    assert "certificate" not in answer.json()["reason"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "http://test/db2whrest/v1/nope", 404),
        ("GET", "http://test/connmgr/v1/internal/nope", 404),
        ("GET", "http://test/api/application/v1/nope", 404),
        ("GET", "nope", 404),
        ("DELETE", "http://test/db2whrest/v1/sql_query", 405),
        ("BREW", "tags", 405),
    ],
)
def test_an_address_that_is_none(engine: TestClient, method: str, path: str, status: int) -> None:
    """Refused in the documented form, too."""
    answer = engine.request(method, path)
    assert (answer.status_code, list(answer.json())) == (status, ["reason", "status"])
    assert '"status": "error"' in answer.text


def test_columns_that_no_source_fills_are_null(engine: TestClient) -> None:
    """As in the published reply of the proof of concept; state is what the file system tells."""
    answer = engine.post("http://test/db2whrest/v1/search", content='{"query": "", "limit": 1}')
    record = json.loads(answer.json()["rows"])[0]
    empty = ("collection", "temperature", "duplicate", "nodename", "filespace", "mgmtclass",
             "migloc", "tier")  # fmt: skip
    assert [record[name] for name in empty] == [None] * 8
    assert [record[name] for name in ("recordversion", "state")] == ["", "resdnt"]
