"""Bodies of any kind: Discover's services answer or refuse them, and never fail."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from api.app import create_app
from api.settings import Settings
from tests.pipeline.homes import copy_home

ROUTES = [
    ("POST", "/db2whrest/v1/search"),
    ("POST", "/db2whrest/v1/report"),
    ("PUT", "/db2whrest/v1/summary_tables/mrcapacity"),
    ("POST", "/policyengine/v1/tags"),
    ("PUT", "/policyengine/v1/tags/car"),
    ("POST", "/db2whrest/v1/sql_query"),
    ("POST", "/db2whrest/v1/sql_query_async"),
]
NAMES = st.sampled_from(
    ["query", "filters", "group_by", "sort_by", "limit", "name", "key", "operator", "value", "tag",
     "type", "enabled", "schedule", "minute", "owner", "size", "asc"]
)  # fmt: skip
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), NAMES,
    st.sampled_from(["=", "in", "is", "asc", "Open", "Restricted", "car > 1"]),
)  # fmt: skip
BODIES = st.recursive(
    LEAVES,
    lambda part: st.lists(part, max_size=3) | st.dictionaries(NAMES, part, max_size=4),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def client(catalogued: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A server that asks nobody who they are."""
    home = copy_home(catalogued, tmp_path_factory.mktemp("fuzz"))
    app = create_app(Settings(home=home, cache=None), authenticates=False)
    with TestClient(app, raise_server_exceptions=False) as found:
        yield found


@pytest.mark.parametrize(("method", "path"), ROUTES)
@given(body=st.one_of(BODIES.map(json.dumps).map(str.encode), st.binary(max_size=20)))
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_body(client: TestClient, method: str, path: str, body: bytes) -> None:
    """No 500, and errors in the documented form."""
    answer = client.request(method, path, content=body)
    assert answer.status_code < 500, (body, answer.text)
    if answer.status_code >= 400:
        assert list(answer.json()) == ["reason", "status"]


@given(path=st.text(min_size=1, max_size=12).filter(lambda text: not set(text) <= {".", "/"}))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_name_in_the_address(client: TestClient, path: str) -> None:
    """404 for what is none; where the name has a slash, also for a method that is not there."""
    for place in ("task_status", "report", "buckets", "summary_tables"):
        answer = client.get(f"/db2whrest/v1/{place}/" + "".join(f"%{b:02x}" for b in path.encode()))
        assert answer.status_code in (404, 405), (place, answer.text)
