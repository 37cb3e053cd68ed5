"""If-Match: one version is changed once; what has none is not changed by it."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.servers import serving, wait_until
from tests.api.test_v1_jobs import recorded
from tests.pipeline.homes import open_home
from tests.pipeline.test_datasets import make

STREAMS = [
    "/v1/classes", "/v1/statistics/histogram", "/v1/frames", "/v1/datasets/all/export",
    "/v1/images/{fkey}", "/v1/labels/{fkey}", "/v1/overlays/{fkey}", "/v1/jobs/ended/logs",
    "/v1/jobs/ended/events",
]  # fmt: skip
ACCEPTED = [
    "*/*", "text/csv", "application/x-ndjson", "application/vnd.apache.parquet",
    "application/vnd.apache.arrow.stream",
]  # fmt: skip


@pytest.fixture(scope="module")
def client(shared_home: Path) -> Iterator[httpx.Client]:
    """Of a server of one process, with a dataset and a job."""
    workspace = open_home(shared_home)
    make(workspace, "all", split="train=0.75,validation=0.25")
    recorded(workspace, "ended", "scan", "done")
    workspace.close()
    with serving(shared_home) as (url, _), httpx.Client(base_url=url, timeout=120) as asking:
        yield asking


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "POST"])
@pytest.mark.parametrize("path", STREAMS)
def test_no_method_that_a_stream_does_not_have(
    client: httpx.Client, path: str, method: str
) -> None:
    """405 whatever the condition says, and the server answers everybody else."""
    fkey = client.get("/v1/frames?limit=1").json()["frames"][0]["fkey"]
    for tag in ('"x"', "*"):
        for accept in ACCEPTED:
            headers = {"If-Match": tag, "Accept": accept}
            answer = client.request(method, path.format(fkey=fkey), headers=headers)
            assert answer.status_code == 405, answer.text
    assert client.get("/healthz").status_code == 200


def test_what_is_nowhere_has_no_condition(client: httpx.Client) -> None:
    """404 of a path that there is not; 412 of a resource that there could be."""
    for path, status in (("/v1/nothing", 404), ("/v1/users/nobody", 412)):
        for tag in ('"x"', "*"):
            assert client.delete(path, headers={"If-Match": tag}).status_code == status


def test_of_changes_with_one_version_one_is_made(client: httpx.Client) -> None:
    """Eight clients have read one version: the first to change it wins, and the rest are told."""
    user = {"name": "many", "roles": ["datauser"]}
    assert client.post("/v1/users", json=user).status_code == 201
    for disabled in (True, False, True):
        etag = client.get("/v1/users/many").headers["etag"]
        ready = threading.Barrier(8)

        def change(etag: str = etag, disabled: bool = disabled, ready: Any = ready) -> int:
            ready.wait()
            headers = {"If-Match": etag}
            body = {"disabled": disabled}
            return client.patch("/v1/users/many", json=body, headers=headers).status_code

        with ThreadPoolExecutor(8) as pool:
            statuses = [each.result() for each in [pool.submit(change) for _ in range(8)]]
        assert sorted(statuses) == [200, *[412] * 7]
        assert client.get("/v1/users/many").json()["disabled"] is disabled


@pytest.mark.wide
def test_a_version_is_of_the_policy_and_not_of_its_runs(client: httpx.Client) -> None:
    """A run gives the document another ETag; a change by the one before is still made."""
    body = {"name": "left", "action": "AUTOTAG", "parameters": {"tags": {"turn": "left"}}}
    assert client.post("/v1/policies", json=body).status_code == 201
    before = client.get("/v1/policies/left").headers["etag"]
    client.post("/v1/policies/left/runs")
    wait_until(
        lambda: (client.get("/v1/policies/left").json()["last_run"] or {})["state"] == "complete"
    )
    after = client.get("/v1/policies/left").headers["etag"]
    assert before != after
    assert before.partition("-")[0] == after.partition("-")[0]
    change, headers = {"state": "inactive"}, {"If-Match": before}
    assert client.patch("/v1/policies/left", json=change, headers=headers).status_code == 200
    assert client.patch("/v1/policies/left", json=change, headers=headers).status_code == 412
    assert client.delete("/v1/policies/left", headers=headers).status_code == 412


def test_what_has_no_version_is_changed_by_none(client: httpx.Client) -> None:
    """If-Match is refused where it would say nothing: the header is never ignored."""
    for path in ("/v1/me/password", "/v1/collections/munich/users/anna"):
        for tag in ("*", '"x"', ""):
            answer = client.put(path, json={}, headers={"If-Match": tag})
            assert (answer.status_code, answer.json()["title"]) == (412, "PreconditionFailed")
            assert "send it without the header" in answer.json()["detail"]
