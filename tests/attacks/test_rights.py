"""What tokens, names and addresses give away, or let others do."""

from datetime import timedelta
from pathlib import Path

from catalog.accounts import tokens
from catalog.policies import policies as policy_records
from catalog.records.policy_tables import Policy
from catalog.records.store import RecordStore
from tests.attacks.arena import Server


def records_of(server: Server) -> RecordStore:
    """Those of its home."""
    return RecordStore(server.home / "records" / "records.sqlite")


def test_a_token_revokes_none_of_a_higher_scope(attacked: Server) -> None:
    """A read token that was stolen does not stop its owner's others; itself it may revoke."""
    records = records_of(attacked)
    secrets = {
        scope: tokens.create(records, "write", f"of-{scope}", scope, timedelta(days=1))
        for scope in ("read", "write")
    }
    (reads, reading), (writes, writing) = secrets["read"], secrets["write"]
    with attacked.client("read") as client:

        def revoked(number: int, text: str) -> int:
            headers = {"Authorization": f"Bearer {text}"}
            return client.delete(f"/v1/tokens/{number}", headers=headers).status_code

        assert revoked(writes.id, reading) == 403
        assert revoked(reads.id, reading) == 200
        other, _ = tokens.create(records, "write", "other", "read", timedelta(days=1))
        assert revoked(other.id, writing) == 200
        assert revoked(writes.id, writing) == 200


def test_a_hidden_policy_is_none(attacked: Server) -> None:
    """Its 404 has the words of one that is not there."""
    records = records_of(attacked)
    policy_records.add(
        records,
        Policy(
            name="hidden", owner="admin", action="AUTOTAG", parameters={"tags": {"x": "y"}},
            condition="", schedule=None, state="active", explicit="false", collections=[],
            updated_by="admin",
        ),
    )  # fmt: skip
    with attacked.client("read") as client:
        hidden, none = (
            client.get(f"/policyengine/v1/policies/{name}") for name in ("hidden", "absent")
        )
    assert (hidden.status_code, none.status_code) == (404, 404)
    assert hidden.text.replace("hidden", "absent") == none.text


def test_addresses_are_not_made_up(attacked: Server) -> None:
    """X-Forwarded-For of a client that is no configured proxy is not noted."""
    made_up = "203.0.113.77"
    with attacked.client("admin") as client:
        headers = {"X-Forwarded-For": made_up}
        body = {"name": "forwarded", "roles": ["datauser"]}
        assert client.post("/v1/users", json=body, headers=headers).status_code == 201
        entries = client.get("/v1/audit", params={"limit": 50}).json()["entries"]
    assert any("forwarded" in entry["note"] for entry in entries)
    assert made_up not in {entry["address"] for entry in entries}


def test_paths_of_the_server(attacked: Server) -> None:
    """A user of some rows is told none: of a dataset, its exports, and jobs."""
    folder = str(attacked.home)
    with attacked.client("collectionadmin") as client:
        response = client.post("/v1/datasets", json={"name": "mine"})
        assert response.status_code == 201, response.text
        name = f"{response.json()['name']}@1"
        staged = client.post("/v1/stagings", json={"dataset": name})
        assert staged.status_code == 202, staged.text
        job = staged.json()["name"]
        for path in (
            f"/v1/datasets/{name}", "/v1/datasets", f"/v1/jobs/{job}", "/v1/jobs",
            *(f"/v1/datasets/{name}/export?format={one}" for one in ("csv", "jsonl", "fiftyone")),
            f"/v1/datasets/{name}/export?format=files",
        ):  # fmt: skip
            answer = client.get(path)
            assert answer.status_code == 200, (path, answer.text)
            assert folder not in answer.text, path
            assert str(Path(__file__).parents[2]) not in answer.text, path
        assert folder not in response.text + staged.text
        exported = client.get(f"/v1/datasets/{name}/export?format=files").text
    assert exported.splitlines()[0].startswith("a2d2/camera_lidar_semantic/")
