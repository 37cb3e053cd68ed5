"""Who may do what with which policy: owners, administrators of collections, everybody else."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from fastapi.testclient import TestClient

from api.app import create_app
from api.settings import Settings
from catalog.accounts import row_collections, tokens, users
from catalog.records.store import RecordStore
from catalog.tags import tags
from query.run.run_sql import run_sql
from tests.pipeline.homes import open_home

pytestmark = pytest.mark.wide

ROLES = {
    "dora": "dataadmin", "cora": "collectionadmin", "carl": "collectionadmin", "otto": "datauser",
}  # fmt: skip
IMAGES, JSON = "filetype = 'png'", "filetype = 'json'"


class Engine:
    """A policy engine that asks who is there."""

    def __init__(self, home: Path, client: TestClient, secrets: dict[str, str]) -> None:
        self.home, self._client, self._secrets = home, client, secrets

    def ask(self, user: str, method: str, path: str = "", body: Any = None) -> httpx.Response:
        """A request of a user about policies."""
        content = json.dumps(body) if body is not None else None
        headers = {"Authorization": f"Bearer {self._secrets[user]}"}
        answer: httpx.Response = self._client.request(
            method, f"/policyengine/v1/policies{path}", content=content, headers=headers
        )
        return answer

    def status(self, user: str, method: str, path: str = "", body: Any = None) -> int:
        """Its status code; a refusal has the documented form."""
        answer = self.ask(user, method, path, body)
        if answer.status_code >= 400:
            assert list(answer.json()) == ["reason", "status"], answer.text
        return answer.status_code

    def names(self, user: str) -> list[str]:
        """The policies that a user is shown."""
        return [policy["pol_id"] for policy in self.ask(user, "GET").json()]

    def ended(self, name: str) -> dict[str, Any]:
        """A policy's last run, once it has ended."""
        until = time.monotonic() + 300
        while True:
            status: dict[str, Any] = self.ask("dora", "GET", f"/{name}/status").json()
            if status["status"] not in ("running", "paused"):
                return status
            assert time.monotonic() < until, status
            time.sleep(0.2)

    def tagged(self, tag: str) -> list[tuple[str, str]]:
        """Kind of file and value, of every file that has the tag."""
        workspace = open_home(self.home)
        rows = run_sql(
            workspace.catalog,
            f"select distinct m.filetype, t.value from metaocean m, t_{tag} t "
            "where m.fkey = t.fkey order by 1, 2",
        ).rows
        workspace.close()
        return [(row["filetype"], row["value"]) for row in rows.to_pylist()]


def autotag(name: str = "", value: str = "1", **more: Any) -> dict[str, Any]:
    """An AUTOTAG policy that waits to be started."""
    named = {"pol_id": name} if name else {}
    params = {"tags": {"mark": value}}
    return {
        **named, "action_id": "AUTOTAG", "action_params": params, "pol_filter": "",
        "schedule": {"hour": 5}, **more,
    }  # fmt: skip


@pytest.fixture
def engine(home: Path) -> Iterator[Engine]:
    """Cora and otto see the images, carl the JSON files, dora everything."""
    records = RecordStore(home / "records" / "records.sqlite")
    row_collections.add(records, "images", IMAGES)
    row_collections.add(records, "texts", JSON)
    secrets = {
        name: tokens.log_in(records, users.add(records, name, [role], None))
        for name, role in ROLES.items()
    }
    for name, collection in (("cora", "images"), ("otto", "images"), ("carl", "texts")):
        row_collections.assign(records, collection, name)
    workspace = open_home(home)
    tags.add_tag(workspace.whole_catalog, "mark", "text", "Open")
    workspace.close()
    with TestClient(create_app(Settings(home=home, cache=None))) as client:
        yield Engine(home, client, secrets)


def test_a_collection_admins_policy_from_the_first_request_to_the_last(engine: Engine) -> None:
    """Made, run, changed, removed; of the collection's files alone, whoever starts it."""
    answer = engine.ask("cora", "POST", body=autotag("hers", schedule="NOW"))
    assert (answer.status_code, answer.text) == (201, "Policy 'hers' added")
    assert engine.ended("hers")["completed_count"] == 48
    assert engine.tagged("mark") == [("png", "1")]
    policy = engine.ask("cora", "GET", "/hers").json()
    assert (policy["policy_owner"], policy["collections"]) == ("cora", ["images"])
    changed = {"action_params": {"tags": {"mark": "2"}}, "collections": [], "schedule": "NOW"}
    assert engine.status("cora", "PUT", "/hers", changed) == 200
    engine.ended("hers")
    assert engine.ask("cora", "GET", "/hers").json()["collections"] == ["images"]
    assert engine.tagged("mark") == [("png", "2")]
    assert engine.ask("dora", "POST", "/hers/start").text == "Accepted"
    assert engine.ended("hers")["total_count"] == 48
    assert engine.tagged("mark") == [("png", "2")]
    assert engine.status("cora", "GET", "/hers/history") == 200
    assert engine.status("cora", "POST", "/hers/kill") == 400  # it does not run
    assert engine.status("cora", "DELETE", "/hers") == 200


def test_a_condition_finds_nothing_beyond_its_collections(engine: Engine) -> None:
    """Not by a subquery either, whose answer would be told by which files are tagged."""
    asks = "fkey in (select fkey from metaocean) and exists (select 1 from {} where {})"
    for number, (condition, count) in enumerate(
        [
            (asks.format("metaocean", JSON), 0),
            (asks.format("bluadmin.metaocean m", "m.filetype = 'npz'"), 0),
            (asks.format("metaocean_view", "filetype <> 'png'"), 0),
            ("size < (select count(*) * 1000000 from metaocean where filetype <> 'png')", 0),
            (asks.format("metaocean", IMAGES), 48),
            ("1=1) or (1=1", None),
            ("fkey in (select fkey from stored.main.files)", None),
            ("fkey in (select fkey from lake.main.files)", None),
        ]
    ):
        name = f"asks-{number}"
        body = autotag(name, pol_filter=condition, schedule="NOW")
        if count is None:
            assert engine.status("cora", "POST", body=body) == 400
        else:
            assert engine.status("cora", "POST", body=body) == 201, condition
            status = engine.ended(name)
            assert (status["status"], status["total_count"]) == ("complete", count), status
    # Bound by its collections is also what a data admin makes.
    body = autotag("bound", pol_filter=asks.format("metaocean", JSON), collections=["images"])
    assert engine.status("dora", "POST", body={**body, "schedule": "NOW"}) == 201
    assert engine.ended("bound")["total_count"] == 0


def test_what_goes_beyond_their_collections_is_refused(engine: Engine) -> None:
    """Others' collections, none, files of connections, new tags; and nothing is kept."""
    imported = {"source_connection": "a2d2", "tag_file_path": "a2d2/labels.csv"}
    rule = {"action": "split", "existingField": "path", "delimiter": "/", "newField": "new_tag"}
    for body in (
        autotag("x", collections=["texts"]),
        autotag("x", collections=["images", "texts"]),
        autotag("x", collections=["no such"]),
        autotag("x", action_params={"tags": {"new_tag": "1"}}),
        autotag("x", action_params={"tags": {"car": "1"}}),
        autotag("x", action_params={"rule": rule}),
        autotag("x", action_id="IMPORT_TAGS", action_params=imported),
    ):
        assert engine.status("cora", "POST", body=body) == 403, body
    assert engine.status("otto", "POST", body=autotag("x")) == 403
    assert engine.names("dora") == []
    records = RecordStore(engine.home / "records" / "records.sqlite")
    row_collections.withdraw(records, "images", "cora")
    assert engine.status("cora", "POST", body=autotag("x")) == 403


def test_who_sees_which_and_may_do_what_with_it(engine: Engine) -> None:
    """By the policy's collections; one that is not shown is as if it were not there."""
    for name, collections in (
        ("all", []), ("images", ["images"]), ("both", ["images", "texts"]), ("texts", ["texts"]),
    ):  # fmt: skip
        assert engine.status("dora", "POST", body=autotag(name, collections=collections)) == 201
    assert engine.names("dora") == ["all", "both", "images", "texts"]
    assert engine.names("cora") == engine.names("otto") == ["both", "images"]
    assert engine.names("carl") == ["both", "texts"]
    change, action = {"pol_state": "inactive"}, "/pause"
    # see, change, act on, remove; 400: it may, and nothing is running
    for user, name, expected in (
        ("cora", "all", (404, 404, 404, 404)), ("cora", "texts", (404, 404, 404, 404)),
        ("cora", "both", (200, 403, 400, 403)), ("cora", "images", (200, 200, 400, 200)),
        ("otto", "both", (200, 403, 403, 403)), ("otto", "all", (404, 403, 403, 403)),
        ("carl", "both", (200, 403, 400, 403)), ("dora", "both", (200, 200, 400, 200)),
    ):  # fmt: skip
        statuses = (
            engine.status(user, "GET", f"/{name}/status"),
            engine.status(user, "PUT", f"/{name}", change),
            engine.status(user, "POST", f"/{name}{action}"),
            engine.status(user, "DELETE", f"/{name}"),
        )
        assert statuses == expected, (user, name)
    # A policy cannot be carried over into another's collection, or away from one's own.
    assert engine.status("carl", "PUT", "/texts", {"collections": ["images"]}) == 403
    assert engine.status("carl", "PUT", "/texts", {"collections": ["texts", "images"]}) == 403


def test_an_owner_who_has_lost_the_collection(engine: Engine) -> None:
    """Sees the policy still, and neither runs nor changes it."""
    assert engine.status("cora", "POST", body=autotag("hers")) == 201
    records = RecordStore(engine.home / "records" / "records.sqlite")
    row_collections.withdraw(records, "images", "cora")
    assert engine.names("cora") == ["hers"]
    assert engine.status("cora", "POST", "/hers/start") == 403
    assert engine.status("cora", "PUT", "/hers", {"pol_filter": "size > 1"}) == 403
    assert engine.status("cora", "DELETE", "/hers") == 403
    assert engine.status("dora", "DELETE", "/hers") == 200
