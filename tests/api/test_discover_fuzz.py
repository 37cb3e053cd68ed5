"""Bodies of any kind: Discover's services answer or refuse them, and never fail."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from api.app import create_app
from api.http.middleware.resolver import is_plain
from api.settings import Settings

pytestmark = pytest.mark.wide

ROUTES = [
    ("POST", "/db2whrest/v1/search"),
    ("POST", "/db2whrest/v1/report"),
    ("PUT", "/db2whrest/v1/summary_tables/mrcapacity"),
    ("POST", "/policyengine/v1/tags"),
    ("PUT", "/policyengine/v1/tags/car"),
    ("POST", "/policyengine/v1/policies"),
    ("POST", "/policyengine/v1/policies/idle"),
    ("PUT", "/policyengine/v1/policies/idle"),
    ("POST", "/policyengine/v1/regex"),
    ("PUT", "/policyengine/v1/regex"),
    ("PUT", "/policyengine/v1/regex/name"),
    ("POST", "/policyengine/v1/applications"),
    ("PATCH", "/policyengine/v1/applications/image"),
    ("POST", "/connmgr/v1/connections"),
    ("PUT", "/connmgr/v1/connections/a2d2"),
    ("POST", "/connmgr/v1/scan/none/partial"),
    ("POST", "/db2whrest/v1/sql_query"),
    ("POST", "/db2whrest/v1/sql_query_async"),
    ("POST", "/db2whrest/v1/sql_query_json"),
    # Whatever the body: it is not read.
    ("PUT", "/db2whrest/v1/summary_tables/mrcapacity/start"),
    ("PUT", "/db2whrest/v1/report/none"),
    ("DELETE", "/db2whrest/v1/report/none"),
    ("DELETE", "/policyengine/v1/regex/none"),
    ("DELETE", "/policyengine/v1/policies/none"),
    ("POST", "/policyengine/v1/policies/idle/start"),
    ("DELETE", "/policyengine/v1/applications/image"),
    ("DELETE", "/connmgr/v1/connections/none"),
    ("POST", "/connmgr/v1/scan"),
    ("POST", "/connmgr/v1/scan/none"),
    ("PUT", "/connmgr/v1/scan/a2d2"),
    ("PUT", "/connmgr/v1/scan/a2d2/stop"),
]
SERVICES = ("/auth/v1/", "/db2whrest/v1/", "/policyengine/v1/", "/connmgr/v1/",
            "/api/application/v1/")  # fmt: skip
STATEMENTS = st.sampled_from(
    ["select 1 from metaocean", "select filename, size, mtime from metaocean_view", "values 1",
     "select count(*) from metaocean with ur;", "select x_ from metaocean", "select * from t_car",
     "select filename from metaocean where x_ = 'a' fetch first 1 rows only", "with a as", "(((("]
)  # fmt: skip
NAMES = st.sampled_from(
    ["query", "filters", "group_by", "sort_by", "limit", "name", "key", "operator", "value", "tag",
     "type", "enabled", "schedule", "minute", "owner", "size", "asc", "pol_id", "action_id",
     "action_params", "pol_filter", "pol_state", "explicit", "collections", "tags", "rule",
     "action", "existingField", "newField", "regexPattern", "matchNo", "regex_id", "pattern",
     "platform", "cluster", "datasource", "mount_point", "host", "additional_info", "partitions",
     "dir", "recursive", "action_agent", "extract_tags", "agent"]
)  # fmt: skip
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), NAMES,
    st.sampled_from(
        ["=", "in", "is", "asc", "Open", "Restricted", "car > 1", "AUTOTAG", "NFS", "NOW",
         "inactive", "setFromExistingField", "regex", "(a+)+$", "(?=a)"]
    ),
)  # fmt: skip
BODIES = st.recursive(
    LEAVES,
    lambda value: st.lists(value, max_size=3) | st.dictionaries(NAMES, value, max_size=4),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def client(shared_home: Path) -> Iterator[TestClient]:
    """A server that does not authenticate."""
    app = create_app(Settings(home=shared_home, cache=None), authenticates=False)
    idle = {
        "pol_id": "idle", "pol_state": "inactive", "action_id": "AUTOTAG",
        "action_params": {"tags": {"x_": "1"}},
    }  # fmt: skip
    with TestClient(app, raise_server_exceptions=False) as client:
        client.post("/policyengine/v1/policies", json=idle)
        client.post("/policyengine/v1/regex", json={"regex_id": "name", "pattern": "a"})
        yield client


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


def test_every_route_is_among_them(client: TestClient) -> None:
    """All that take a body or change something, what is added later included."""
    paths = client.get("/openapi.json").json()["paths"]
    for path, methods in paths.items():
        if not path.startswith(SERVICES):
            continue
        pattern = re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)))
        for method in methods:
            if method != "get":
                matches = [p for m, p in ROUTES if m.lower() == method and pattern.fullmatch(p)]
                assert matches, (method, path)


@given(
    path=st.sampled_from(
        ["/db2whrest/v1/sql_query", "/db2whrest/v1/sql_query_json", "/db2whrest/v1/search",
         "/policyengine/v1/applications/image/schema", "/policyengine/v1/tags", "/connmgr/v1/scan"]
    ),
    query=st.text(max_size=30) | STATEMENTS,
    accept=st.sampled_from(
        ["", "*/*", "application/json", "text/csv;q=0.5, application/json", ";", ",,", "a/b",
         "application/vnd.apache.parquet", "application/vnd.apache.arrow.file"]
    ),
)  # fmt: skip
@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_query(client: TestClient, path: str, query: str, accept: str) -> None:
    """Of GET, whatever Accept asks for: no 500, and errors in the documented form."""
    text = "".join(f"%{b:02x}" for b in query.encode())
    for body in (text, f"action_id={text}"):
        answer = client.get(f"{path}?{body}", headers={"Accept": accept} if accept else {})
        assert answer.status_code < 500, (path, query, answer.text)
        if answer.status_code >= 400:
            assert list(answer.json()) == ["reason", "status"], (path, query)


@given(path=st.text(min_size=1, max_size=12).filter(lambda text: not set(text) <= {".", "/"}))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_name_in_the_address(client: TestClient, path: str) -> None:
    """404 for what is none, or 405 where the name has a slash; 400 where no path may be such."""
    refused = (404, 405) if is_plain(path) else (400,)
    name = "".join(f"%{b:02x}" for b in path.encode())
    for route in (
        "db2whrest/v1/task_status", "db2whrest/v1/report", "db2whrest/v1/buckets",
        "db2whrest/v1/summary_tables", "policyengine/v1/policies", "policyengine/v1/regex",
        "connmgr/v1/connections", "connmgr/v1/scan",
    ):  # fmt: skip
        answer = client.get(f"/{route}/{name}")
        assert answer.status_code in refused, (route, answer.text)
    assert client.get(f"/policyengine/v1/applications/{name}/schema").status_code in refused
    for action in ("start", "kill"):
        answer = client.post(f"/policyengine/v1/policies/{name}/{action}")
        assert answer.status_code in refused, answer.text


TEXTS = st.text(max_size=12) | st.sampled_from(
    ["filename", "owner", "car", "x_", "u2-source", "/", "[^/]+", "(", "(?P<n>a)\\1", "a{1000}{9}",
     "size > 1", "car > 1 --", "' or 1=1", "fkey in (select fkey from metaocean)", "image", "a2d2"]
)  # fmt: skip
RULES = st.fixed_dictionaries(
    {"action": st.sampled_from(["regex", "split"]), "existingField": TEXTS, "newField": TEXTS},
    optional={
        "regexPattern": TEXTS, "delimiter": TEXTS, "regex_id": TEXTS,
        "matchNo": st.integers(-1, 2**70), "fieldNo": st.integers(-1, 5),
    },
)  # fmt: skip
TIMES = st.dictionaries(
    st.sampled_from(["minute", "hour", "dayOfMonth", "month", "dayOfWeek", "timezone"]),
    st.integers(-1, 70) | st.sampled_from(["*", "*/7", "1-5", "UTC", "mon", "1,2"]) | TEXTS,
    max_size=4,
)
POLICIES = st.fixed_dictionaries(
    {
        "pol_state": st.just("inactive"),
        "action_id": st.sampled_from(["AUTOTAG", "IMPORT_TAGS", "DEEPINSPECT"]),
        "action_params": st.one_of(
            st.fixed_dictionaries({"rule": RULES}),
            st.fixed_dictionaries({"tags": st.dictionaries(TEXTS, TEXTS, max_size=2)}),
            st.fixed_dictionaries({"agent": TEXTS, "extract_tags": st.lists(TEXTS, max_size=2)}),
            st.fixed_dictionaries({"source_connection": TEXTS, "tag_file_path": TEXTS}),
        ),
    },
    optional={"pol_filter": TEXTS, "schedule": TIMES, "collections": st.lists(TEXTS, max_size=1)},
)


@given(name=st.from_regex(r"[a-z]{1,9}", fullmatch=True), body=POLICIES)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_policy(client: TestClient, name: str, body: dict[str, object]) -> None:
    """What looks like a policy is kept and shown again, or refused in the documented form."""
    url_path = f"/policyengine/v1/policies/{name}"
    answer = client.post(url_path, json=body)
    assert answer.status_code < 500, (body, answer.text)
    if answer.status_code >= 400:
        assert list(answer.json()) == ["reason", "status"]
    elif answer.status_code == 201:
        policy = client.get(url_path).json()
        assert {field: policy[field] for field in body} == body
        assert client.delete(url_path).status_code == 200


@given(pattern=TEXTS | st.text(alphabet="ab()[]{}*+?|\\^$.,0129:=!<>P", max_size=20))
@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_pattern(client: TestClient, pattern: str) -> None:
    """RE2 takes it, or it is refused: never a pattern that would run for ever."""
    answer = client.put("/policyengine/v1/regex/name", json={"pattern": pattern})
    assert answer.status_code in (200, 400), (pattern, answer.text)
    if answer.status_code == 200:
        assert client.get("/policyengine/v1/regex/name").json()["pattern"] == pattern
