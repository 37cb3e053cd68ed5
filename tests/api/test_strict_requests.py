"""What a request may not be: parameters nobody knows, values that cannot be, bodies of no JSON."""

from pathlib import Path
from typing import Any, get_args

import httpx2 as httpx
import pytest
from fastapi.routing import iter_route_contexts

from api.app import create_app
from api.schemas.sources import Platform
from api.schemas.tags import Kind
from api.settings import Settings
from catalog.tags.tag_rules import LONGEST
from catalog.values import PLATFORMS


def paths(method: str, below: str = "/v1") -> list[str]:
    """Every path of a method, filled in."""
    contexts = iter_route_contexts(create_app(Settings(home=Path("/nowhere"))).router.routes)
    return [
        str(route.path).replace(":path}", "}").replace("{", "").replace("}", "")
        for route in contexts
        if method in (route.methods or ()) and str(route.path).startswith(below)
    ]


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_unknown_parameters_are_refused_on_every_route(server: str, method: str) -> None:
    """422 that names it, before anything is looked up; a body is of no use then."""
    with httpx.Client(base_url=server) as client:
        for path in paths(method):
            answer = client.request(method, path, params={"limitt": "1"})
            assert answer.status_code == 422, (method, path, answer.text)
            assert answer.headers["content-type"] == "application/problem+json"
            assert "limitt" in answer.text or "body" in answer.json()["detail"], answer.text


def test_the_message_says_what_was_meant(server: str) -> None:
    """And what there is; parameters of a model are known as others are."""
    detail = httpx.get(f"{server}/v1/tags", params={"kindd": "Open"}).json()["detail"]
    assert "kindd" in detail
    assert "did you mean 'kind'?" in detail
    assert "at, cursor, family, kind, limit" in detail
    assert "takes none" in httpx.get(f"{server}/v1/info?x").json()["detail"]
    known = {"range": "car=1:2", "limit": "1", "columns": "scene"}
    assert httpx.get(f"{server}/v1/frames", params=known).status_code == 200


def test_spectrum_discover_s_routes_ignore_what_they_do_not_know(server: str) -> None:
    """As the product's do, and its clients send it."""
    assert httpx.get(f"{server}/policyengine/v1/tags?colour=red").status_code == 200


@pytest.mark.parametrize(
    "parameter",
    ["tags?kind=bogus", "jobs?state=bogus", "jobs?kind=bogus", "audit?outcome=abc",
     "scans?state=bogus", "policies?state=bogus", "policies?action=bogus",
     "sources?platform=bogus"],
)  # fmt: skip
def test_filters_by_what_cannot_be(server: str, parameter: str) -> None:
    """422 and not an empty list; what can be is taken."""
    answer = httpx.get(f"{server}/v1/{parameter}")
    assert (answer.status_code, answer.json()["title"]) == (422, "InvalidRequest")
    real = {
        "tags?kind": ["Open"], "jobs?state": ["done", "unknown"], "audit?outcome": ["403", "done"],
        "jobs?kind": ["scan", "policy"], "scans?state": ["running"], "policies?state": ["inactive"],
        "policies?action": ["AUTOTAG"], "sources?platform": list(PLATFORMS),
    }  # fmt: skip
    for value in real[parameter.partition("=")[0]]:
        address = f"{server}/v1/{parameter.partition('=')[0]}={value}"
        assert httpx.get(address).status_code == 200, address


def test_the_sets_of_filters_are_those_of_the_catalog() -> None:
    """Written a second time, for types; no value may be missing."""
    assert set(get_args(Platform)) == set(PLATFORMS)
    assert set(get_args(Kind)) == set(LONGEST)


BODIES: list[tuple[bytes, str | None, int]] = [
    (b"{}", "text/plain", 415), (b"{}", None, 415), (b"{}", "application/xml", 415),
    (b"{}", "application/x-www-form-urlencoded", 415), (b"[]", "text/json;x=application/json", 415),
    (b"{half", "application/json", 400), (b"[" * 100_000, "application/json", 400),
    (b"\xff\xfe{}", "application/json", 400), (b"{}", "application/json", 422),
    (b"{}", "Application/JSON; charset=utf-8", 422), (b"{}", "application/merge-patch+json", 422),
    (b"", "text/plain", 422),
]  # fmt: skip


@pytest.mark.parametrize(("body", "kind", "status"), BODIES)
def test_bodies(server: str, body: bytes, kind: str | None, status: int) -> None:
    """415 for another type, 400 for no JSON, 422 for JSON of another schema."""
    headers = {} if kind is None else {"Content-Type": kind}
    for path in ("/v1/users", "/v1/jobs", "/v1/sql", "/v1/datasets"):
        answer = httpx.post(server + path, content=body, headers=headers)
        document: dict[str, Any] = answer.json()
        assert (answer.status_code, document["status"]) == (status, status), (path, answer.text)
        assert answer.headers["content-type"] == "application/problem+json"
        if status == 415:
            assert answer.headers["accept"] == "application/json"
