"""Collections as published clients of Discover ask for them: search, facet, filter, SQL."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from api.app import create_app
from api.settings import Settings
from catalog.accounts import row_collections, tokens, users
from catalog.records.store import RecordStore
from catalog.tags import tags
from tests.api.servers import framesift, wait_until
from tests.ingest.scene_folders import make_tree
from tests.pipeline.homes import open_home

POLICIES = "/policyengine/v1/policies"
RULES = {
    "front": "filename like '%frontcenter%'",
    "fronts": "filename like '%frontcenter%'",
    "all": "size > 0",
}
RECALLED = "select path, filename from metaocean where collection='{}' and state='resdnt'"
"""recallTagged.sh's statement with a collection."""


class Served:
    """A server's application that asks who is there."""

    def __init__(self, client: TestClient, secrets: dict[str, str]) -> None:
        self._client, self._secrets = client, secrets

    def ask(self, user: str, method: str, path: str, body: Any = None) -> Any:
        """The JSON of an answer to a user, or its text."""
        headers = {"Authorization": f"Bearer {self._secrets[user]}"}
        answer = self._client.request(method, path, headers=headers, json=body)
        assert answer.status_code < 400, answer.text
        return answer.json() if answer.text[:1] in ("{", "[") else answer.text

    def rows(self, user: str, statement: str) -> list[dict[str, Any]]:
        """The rows of a statement."""
        rows: list[dict[str, Any]] = self.ask(user, "POST", "/v1/sql", {"statement": statement})
        return rows


@pytest.fixture
def served(home: Path) -> Iterator[Served]:
    """Dora sees everything, otto one of the collections, cora two of them."""
    records = RecordStore(home / "records" / "records.sqlite")
    for name in ("front", "fronts", "all"):
        row_collections.add(records, name, RULES[name])
    secrets = {
        name: tokens.log_in(records, users.add(records, name, [role], None))
        for name, role in (("dora", "admin"), ("otto", "datauser"), ("cora", "collectionadmin"))
    }
    for name, collection in (("otto", "fronts"), ("cora", "all"), ("cora", "fronts")):
        row_collections.assign(records, collection, name)
    workspace = open_home(home)
    tags.add_tag(workspace.whole_catalog, "mark", "text", "Open")
    workspace.close()
    with TestClient(create_app(Settings(home=home, cache=None))) as client:
        yield Served(client, secrets)


def counted(served: Served, user: str) -> dict[str, int]:
    """Files of each collection that a user is shown, by the search's facet; it is SQL's, too."""
    body = {"query": "", "filters": [], "group_by": ["collection"], "sort_by": []}
    found = served.ask(user, "POST", "/db2whrest/v1/search", body)
    counts = {row["collection"]: int(row["count"]) for row in json.loads(found["rows"])}
    statement = "select collection, count(*) as n from metaocean group by collection"
    assert {row["collection"]: row["n"] for row in served.rows(user, statement)} == counts
    return counts


@pytest.mark.wide
def test_each_user_is_shown_their_own(served: Served) -> None:
    """The first that holds, of those that the user may know; a change holds at once."""
    everything = counted(served, "dora")
    assert set(everything) == {"front", "all"}
    assert counted(served, "otto") == {"fronts": everything["front"]}
    assert counted(served, "cora") == {"fronts": everything["front"], "all": everything["all"]}
    for user, names in (("dora", {"front"}), ("otto", {"fronts"}), ("cora", {"fronts"})):
        for name in ("front", "fronts"):
            rows = served.rows(user, RECALLED.format(name))
            assert len(rows) == (everything["front"] if name in names else 0)
    served.ask("dora", "DELETE", "/v1/collections/front")
    assert set(counted(served, "dora")) == {"fronts", "all"}


@pytest.mark.wide
def test_a_filter_of_a_search_and_of_a_policy(served: Served) -> None:
    """Both choose the collection's files alone."""
    search = {
        "query": "collection='front'", "sort_by": [], "group_by": [], "limit": 1000,
        "filters": [{"key": "collection", "operator": "=", "value": "front"}],
    }  # fmt: skip
    found = served.ask("dora", "POST", "/db2whrest/v1/search", search)
    policy = {
        "pol_id": "p", "action_id": "AUTOTAG", "action_params": {"tags": {"mark": "x"}},
        "pol_filter": "collection in ('front')", "schedule": "NOW",
    }  # fmt: skip
    served.ask("dora", "POST", POLICIES, policy)
    wait_until(lambda: served.ask("dora", "GET", f"{POLICIES}/p/status")["status"] == "complete")
    (front,) = served.rows("dora", f"select count(*) as n from metaocean where {RULES['front']}")
    assert served.rows("dora", "select count(*) as n from t_mark") == [front]
    assert len(json.loads(found["rows"])) == front["n"] > 0


@pytest.mark.wide
def test_it_says_how_many_files_a_rule_holds_for(tmp_path: Path) -> None:
    """The documents' own example holds for files of a folder; one that holds for none says so."""
    home, tree = tmp_path / "home", make_tree(tmp_path / "a2d2", 2)
    framesift(home, "source", "add", "a2d2", tree)
    assert framesift(home, "ingest", "a2d2").returncode == 0
    text = (Path(__file__).parents[2] / "docs" / "users-and-tokens.md").read_text()
    (line,) = [line for line in text.splitlines() if "framesift collection add munich" in line]
    rule = line.split('"')[1]
    added = framesift(home, "collection", "add", "munich", rule)
    assert "its rule holds for 4 files" in added.stdout, added.stderr
    nothing = framesift(home, "collection", "add", "m2", "filename like '%/20180807%'", "--json")
    assert json.loads(nothing.stdout)["note"].startswith("its rule holds for no file now; ")
    shown = framesift(home, "sql", "select distinct collection from metaocean order by 1")
    assert shown.stdout.split() == ['0,"munich"', "1,"], shown.stderr
