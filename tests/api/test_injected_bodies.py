"""SQL and the like in every text of every body: no error of ours, and no row is changed."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.documents import openapi_document
from tests.api.servers import serving
from tests.api.test_abuse import INJECTIONS

pytestmark = pytest.mark.slow

BODIES = [
    (method, path, example)
    for path, methods in openapi_document()["paths"].items()
    for method, operation in methods.items()
    for kind, body in operation.get("requestBody", {}).get("content", {}).items()
    if kind == "application/json"
    for example in (
        [body["example"]]
        if "example" in body
        else [one["value"] for one in body["examples"].values()]
    )
]


@pytest.fixture(scope="module")
def url(shared_home: Path) -> Iterator[str]:
    """A server that can begin no jobs: those would outlive it."""
    (shared_home / "jobs").touch()
    with serving(shared_home, variables={"FRAMESIFT_LOCK_WAIT_S": "5"}) as (address, _):
        yield address


def texts_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the texts of a body stand."""
    if isinstance(value, str):
        yield path
    for key, child in value.items() if isinstance(value, dict) else ():
        yield from texts_of(child, (*path, key))
    for number, child in enumerate(value) if isinstance(value, list) else ():
        yield from texts_of(child, (*path, number))


def put(body: Any, path: tuple[Any, ...], text: str) -> Any:
    """The body with another text there."""
    if not path:
        return text
    copied = copy.deepcopy(body)
    inner = copied
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = text
    return copied


def rows(url: str) -> str:
    """What a statement that got through would have changed."""
    statement = "select count(*), sum(size), sum(int(t_car.value)) from metaocean, t_car"
    endpoint = f"{url}/db2whrest/v1/sql_query"
    return httpx.post(endpoint, content=statement, timeout=300).text


def test_bodies_are_found() -> None:
    """Of both APIs."""
    assert len(BODIES) > 15
    assert {path.split("/")[1] for _, path, _ in BODIES} >= {"v1", "policyengine", "connmgr"}


@pytest.mark.parametrize(("method", "path", "example"), BODIES)
def test_every_text(url: str, method: str, path: str, example: Any) -> None:
    """Each text of a body in turn."""
    before = rows(url)
    target = url + path.replace("{", "").replace("}", "")
    with httpx.Client(timeout=300) as client:
        for keys in texts_of(example):
            for text in INJECTIONS:
                answer = client.request(
                    method,
                    target,
                    content=json.dumps(put(example, keys, text)),
                    headers={"Content-Type": "application/json"},
                )
                assert answer.status_code != 500, (keys, text[:60], answer.text)
                assert "root:" not in answer.text
    assert rows(url) == before
