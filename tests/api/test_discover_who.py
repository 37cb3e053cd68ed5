"""Discover's services for users who see some rows only, and results that belong to who asked."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx2 as httpx
import pytest
from fastapi.testclient import TestClient

from api.app import create_app
from api.settings import Settings
from catalog.accounts import row_collections, tokens, users
from catalog.records.store import RecordStore

PASSWORD = "a sentence is a good one"
ENDLESS = "select count(*) from " + ",".join(f"metaocean m{n}" for n in range(9))
COUNT = "select count(*) from metaocean_view"


class Served:
    """A server that asks who is there."""

    def __init__(self, client: TestClient, secrets: dict[str, str]) -> None:
        self._client, self._secrets = client, secrets

    def ask(self, user: str, method: str, path: str, body: object = None) -> httpx.Response:
        """A request of a user."""
        content = body if isinstance(body, str) else json.dumps(body) if body else None
        headers = {"Authorization": f"Bearer {self._secrets[user]}"}
        answer: httpx.Response = self._client.request(
            method, f"/db2whrest/v1{path}", content=content, headers=headers
        )
        return answer

    def ended(self, user: str, task: str) -> httpx.Response:
        """What a task has come to."""
        until = time.monotonic() + 300
        while (answer := self.ask(user, "GET", f"/task_status/{task}")).status_code == 303:
            assert time.monotonic() < until, "the task runs on"
            time.sleep(0.05)
        return answer


@pytest.fixture(scope="module")
def served(shared_home: Path) -> Iterator[Served]:
    """Dora sees everything, cora and otto the PNG files."""
    records = RecordStore(shared_home / "records" / "records.sqlite")
    row_collections.add(records, "images", "filetype = 'png'")
    roles = {"dora": ["dataadmin"], "cora": ["collectionadmin"], "otto": ["datauser"]}
    secrets = {}
    for name, of_user in roles.items():
        secrets[name] = tokens.log_in(records, users.add(records, name, of_user, PASSWORD))
    for name in ("cora", "otto"):
        row_collections.assign(records, "images", name)
    with TestClient(create_app(Settings(home=shared_home, cache=None))) as client:
        yield Served(client, secrets)


@pytest.mark.wide
@pytest.mark.parametrize(("user", "files"), [("dora", 75), ("cora", 48), ("otto", 48)])
def test_a_search_finds_what_may_be_seen(served: Served, user: str, files: int) -> None:
    """Rows, counts beyond the limit, groups, facets and subqueries alike."""
    document = served.ask(user, "POST", "/search", {"limit": 60}).json()
    assert (document["count"], document["doc_count"]) == (min(files, 60), files)
    grouped = served.ask(user, "POST", "/search", {"group_by": ["filetype"]}).json()
    assert sum(row["count"] for row in json.loads(grouped["rows"])) == files
    for facet in grouped["facet_tree"].values():
        assert sum(row["count"] for row in json.loads(facet)) == files
    inside = {"query": "fkey in (select fkey from metaocean where filetype = 'json')"}
    assert served.ask(user, "POST", "/search", inside).json()["count"] == files - 48


@pytest.mark.parametrize(("user", "files"), [("dora", 75), ("otto", 48)])
def test_a_task_answers_for_who_began_it_and_for_nobody_else(
    served: Served, user: str, files: int
) -> None:
    """Also another user who may see as much: 404, as if there were none."""
    begun = served.ask(user, "POST", "/sql_query_async", COUNT)
    assert begun.status_code == 202
    task = urlsplit(begun.headers["location"]).path.rpartition("/")[2]
    endless = served.ask(user, "POST", "/sql_query_async", ENDLESS).headers["location"]
    running = urlsplit(endless).path.rpartition("/")[2]
    assert served.ask(user, "GET", f"/task_status/{running}").status_code == 303
    assert served.ended(user, task).text == f"0,{files}\n"
    for other in {"dora", "cora", "otto"} - {user}:
        for path in (
            f"/task_status/{task}",
            f"/task_status/{task}/peek",
            f"/task_status/{running}",
        ):
            assert served.ask(other, "GET", path).status_code == 404


def test_reports_are_for_who_sees_everything(served: Served) -> None:
    """As documented: the data admin's, and nobody else's."""
    body = {"name": "sizes", "group_by": ["filetype"]}
    assert served.ask("otto", "POST", "/report", body).status_code == 403
    response = served.ask("dora", "POST", "/report", body)
    report = response.json()["report"]
    for path in ("/report", f"/report/{report}", f"/report/{report}/download"):
        assert served.ask("otto", "GET", path).status_code == 403
        assert served.ask("dora", "GET", path).status_code == 200
