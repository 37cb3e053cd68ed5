"""What an asynchronous statement found is for who asked, while they still see the same rows."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from api.app import create_app
from api.discover.db2whrest.task_files import Limits, TaskFiles
from api.settings import Settings
from catalog.accounts import tokens, users
from tests.api.servers import wait_until
from tests.pipeline.homes import copy_home

ASYNC = "/db2whrest/v1/sql_query_async"
STATEMENT = "select filename from metaocean fetch first 3 rows only"


@pytest.fixture
def client(catalogued: Path, tmp_path: Path) -> Iterator[TestClient]:
    """A server that asks who they are; its requests come from its admin."""
    app = create_app(Settings(home=copy_home(catalogued, tmp_path), cache=None))
    with TestClient(app) as client:
        root = users.add(app.state.workspace.records, "root", ["admin"], None)
        header = f"Bearer {tokens.log_in(app.state.workspace.records, root)}"
        client.headers["authorization"] = header
        yield client


def add_user(client: TestClient, name: str, role: str) -> dict[str, str]:
    """A new user, and the header that lets them in."""
    body = {"name": name, "roles": [role]}
    assert client.post("/v1/users", json=body).status_code == 201
    response = client.post("/v1/tokens", json={"user": name, "name": "t", "scope": "write"})
    return {"Authorization": f"Bearer {response.json()['token']}"}


def task_of(client: TestClient, header: dict[str, str]) -> str:
    """Where the result of a user's task is, which is done."""
    location = client.post(ASYNC, content=STATEMENT, headers=header).headers["location"]
    wait_until(
        lambda: client.get(location, headers=header, follow_redirects=False).status_code != 303
    )
    return location


def look(client: TestClient, location: str, header: dict[str, str]) -> Any:
    """Status and rows."""
    answer = client.get(location, headers=header)
    peeked = client.get(f"{location}/peek", headers=header)
    assert peeked.status_code == answer.status_code
    return answer.status_code, answer.text.count("\n") if answer.status_code == 200 else 0


@pytest.mark.wide
def test_a_collection_that_was_withdrawn(client: TestClient) -> None:
    """And its result is there again when it is given back."""
    zoe = add_user(client, "zoe", "datauser")
    rule = {"name": "all", "rule": "size > 0"}
    assert client.post("/v1/collections", json=rule).status_code == 201
    assert client.put("/v1/collections/all/users/zoe").status_code == 200
    location = task_of(client, zoe)
    assert look(client, location, zoe) == (200, 3)
    assert client.delete("/v1/collections/all/users/zoe").status_code == 200
    assert look(client, location, zoe) == (404, 0)
    assert client.put("/v1/collections/all/users/zoe").status_code == 200
    assert look(client, location, zoe) == (200, 3)


def test_a_role_that_was_taken(client: TestClient) -> None:
    """Who saw everything sees the rows of collections now."""
    gus = add_user(client, "gus", "dataadmin")
    location = task_of(client, gus)
    assert look(client, location, gus) == (200, 3)
    assert client.patch("/v1/users/gus", json={"roles": ["datauser"]}).status_code == 200
    assert look(client, location, gus) == (404, 0)


def test_another_user_of_the_same_name(client: TestClient) -> None:
    """They are nobody's heir: of a task, of an answer that was kept by its key, of a dataset."""
    old = add_user(client, "gus", "dataadmin")
    location = task_of(client, old)
    keyed = {"Idempotency-Key": "one"}
    request = {"name": "mine"}
    response = client.post("/v1/datasets", json=request, headers=old | keyed)
    assert (response.status_code, response.json()["owner"]) == (201, "gus")
    assert client.delete("/v1/users/gus").status_code == 204
    assert client.get("/v1/datasets/mine").json()["owner"] == ""
    new = add_user(client, "gus", "dataadmin")
    assert look(client, location, new) == (404, 0)
    again = client.post("/v1/datasets", json=request, headers=new | keyed)
    assert "idempotency-replayed" not in again.headers
    assert again.status_code == 201


@pytest.mark.attacks
def test_room_is_made_among_those_who_keep_most(tmp_path: Path) -> None:
    """Results beyond the limits go by who has most of them, and theirs by their age."""

    def keep(files: TaskFiles, view: str, size: int = 10) -> str:
        output = files.new(view, "text/csv")
        output.write(b"x" * size)
        output.finish()
        return output.id

    files = TaskFiles(tmp_path / "tasks", Limits(kept=4, kept_bytes=10_000))
    first = keep(files, "anna")
    greedy = [keep(files, "greedy") for _ in range(6)]
    for age, task in enumerate([*reversed(greedy), first]):
        os.utime(tmp_path / "tasks" / f"{task}.result", (time.time() - age,) * 2)
    files.sweep()
    assert [task for task in greedy if files.view(task)] == greedy[3:]
    large = keep(files, "greedy", 20_000)
    files.sweep()
    assert files.view(first) == "anna"
    assert files.view(large) is None
