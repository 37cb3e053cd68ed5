"""If-Match where a GET is no document: nothing waits for the end of a stream."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.api.servers import environment, serving
from tests.api.test_v1_jobs import recorded
from tests.pipeline.homes import copy_home, open_home
from tests.pipeline.test_datasets import make
from tests.zygote import run_python

STREAMS = [
    "/v1/classes", "/v1/statistics/histogram", "/v1/frames", "/v1/datasets/all/export",
    "/v1/images/{fkey}", "/v1/labels/{fkey}", "/v1/overlays/{fkey}", "/v1/jobs/ended/logs",
    "/v1/jobs/ended/events",
]  # fmt: skip
ACCEPTED = [
    "*/*", "text/csv", "application/x-ndjson", "application/vnd.apache.parquet",
    "application/vnd.apache.arrow.stream",
]  # fmt: skip

PROGRAM = """
import asyncio, json, sys
from pathlib import Path
from fastapi import Response
from fastapi.responses import StreamingResponse
from fastapi.testclient import TestClient
from api.http.app import create_app
from api.settings import Settings

app = create_app(Settings(home=Path(sys.argv[1])), authenticates=False)

async def parts(number):
    for _ in range(number):
        yield b"x"
        await asyncio.sleep(0.01)

@app.get("/v1/rows/{number}")
async def rows(number: int) -> Response:
    return StreamingResponse(parts(number), media_type="text/csv")

@app.put("/v1/rows/{number}")
async def changed(number: int) -> Response:
    return Response(status_code=204)

with TestClient(app) as client:
    for number in (0, 3, 10**9):
        for tag in ("*", '"x"', "x", ""):
            answer = client.put(f"/v1/rows/{number}", headers={"If-Match": tag})
            print(json.dumps([number, tag, answer.status_code]))
    print(json.dumps(client.get("/v1/rows/3").text))
"""


@pytest.fixture(scope="module")
def client(catalogued: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Of a server of one process, with a dataset and a job."""
    home = copy_home(catalogued, tmp_path_factory.mktemp("conditions"))
    workspace = open_home(home)
    make(workspace, "all", split="train=0.75,validation=0.25")
    recorded(workspace, "ended", "scan", "done")
    workspace.close()
    with serving(home) as (url, _), httpx.Client(base_url=url, timeout=120) as asking:
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


def test_a_stream_has_no_tag_but_is_there(tmp_path: Path) -> None:
    """What has no ETag is no state that a client could name; "*" asks only whether it is there."""
    home = tmp_path / "home"
    ran = run_python("-c", PROGRAM, home, env=environment(home))
    assert ran.returncode == 0, ran.stderr
    *answers, rows = [json.loads(line) for line in ran.stdout.splitlines()]
    assert rows == "xxx"
    expected = {"*": 204, '"x"': 412, "x": 412, "": 412}
    assert answers == [
        [number, tag, status] for number in (0, 3, 10**9) for tag, status in expected.items()
    ]
