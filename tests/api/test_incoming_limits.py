"""What may be sent: every list, object and text of a body has a limit, and is soon found wrong."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from pydantic import TypeAdapter, ValidationError

from api.app import ROUTERS, create_app
from api.discover.connmgr.connections import ConnectionRequest
from api.discover.connmgr.scans import Partial
from api.discover.db2whrest.report_files import ReportBody
from api.discover.db2whrest.summary_tables import Configuration
from api.discover.policyengine.policies import PolicyChange
from api.discover.policyengine.tags import NewTag
from api.settings import Settings
from catalog.errors import InvalidInput
from catalog.text.bounded import MOST_MANY
from pipeline.datasets.split import parse_split
from query.discover.search import Search
from query.question.question import Question

_READ_RAW = (
    Search, ReportBody, PolicyChange, NewTag, Partial, ConnectionRequest, Configuration,
)  # fmt: skip
"""Bodies of Spectrum Discover's services, which are no parameters of their routes."""


def adapters() -> Iterator[tuple[str, TypeAdapter[Any]]]:
    """What reads each body, by route or class."""
    for router in ROUTERS:
        for route in router.routes:
            if isinstance(route, APIRoute):
                for field in route.dependant.body_params:
                    kind: Any = Annotated[field.field_info.annotation, field.field_info]
                    yield route.path, TypeAdapter(kind)
    for model in _READ_RAW:
        yield model.__name__, TypeAdapter(model)


BODIES = list(adapters())


def parts_of(schema: Any, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """A schema and all below it, definitions included."""
    if isinstance(schema, list):
        for number, subschema in enumerate(schema):
            yield from parts_of(subschema, f"{path}.{number}")
    if not isinstance(schema, dict):
        return
    yield path, schema
    for name, subschema in schema.items():
        if name in ("properties", "$defs"):
            for inner, of in subschema.items():
                yield from parts_of(of, f"{path}.{inner}")
        elif name in ("items", "prefixItems", "anyOf", "oneOf", "allOf", "additionalProperties"):
            yield from parts_of(subschema, path)


@pytest.mark.parametrize(("name", "adapter"), BODIES, ids=[name for name, _ in BODIES])
def test_everything_has_a_limit(name: str, adapter: TypeAdapter[Any]) -> None:
    """No list, text or object of a body may be of any length."""
    for path, subschema in parts_of(adapter.json_schema(), name):
        kind = subschema.get("type")
        if kind == "string" and not {"enum", "const", "pattern"} & set(subschema):
            assert subschema["maxLength"] <= 1 << 20, (path, subschema)
        if kind == "array":
            assert subschema["maxItems"] <= MOST_MANY, (path, subschema)
        if kind == "object" and "properties" not in subschema:
            assert subschema["maxProperties"] <= MOST_MANY, (path, subschema)


def errors_of(adapter: TypeAdapter[Any], body: Any) -> int:
    """How many are found in a body."""
    try:
        adapter.validate_python(body)
    except ValidationError as refused:
        return refused.error_count()
    return 0


@pytest.mark.parametrize(("name", "adapter"), BODIES, ids=[name for name, _ in BODIES])
def test_a_list_ends_at_its_first_wrong_element(name: str, adapter: TypeAdapter[Any]) -> None:
    """So that a body with thousands of them makes a few errors."""
    fields = {
        path.rpartition(".")[2]
        for path, subschema in parts_of(adapter.json_schema(), name)
        if subschema.get("type") in ("array", "object")
    }
    wrong: Any = object()
    for field in fields:
        for kind in ("train", "cover", "all"):
            body = {"kind": kind, "method": kind, field: [wrong] * 100}
            assert errors_of(adapter, {**body, "question": body, "condition": body}) < 60, field


def test_too_many_leaves_are_counted_before_they_are_read() -> None:
    """A condition of a hundred thousand leaves in groups of a hundred."""
    leaf = {"kind": "has", "tag": "car"}
    group: Any = leaf
    for _ in range(3):
        group = {"kind": "any", "of": [group] * 47}
    with pytest.raises(ValidationError, match="expected at most 100"):
        Question.model_validate({"condition": group})


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """Of an empty home."""
    home = tmp_path_factory.mktemp("home")
    with TestClient(create_app(Settings(home=home), authenticates=False)) as client:
        yield client


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"ranges": [1] * 400_000}, 422, "holds 400,000 elements in one list"),
        ({"cameras": ["x"] * 1_001}, 422, "cameras: got 1,001 elements, expected at most 1,000"),
        ({f"x{n}": 1 for n in range(50_000)}, 422, "holds 50,000 fields in one object"),
        ({"ranges": [{}] * 9_999, "scenes": [{}] * 9_999}, 422, "objects, expected at most 10,000"),
        ({"scenes": ["x" * 5_000]}, 422, "scenes.0: got 5,000 characters, expected at most 4,096"),
        ({"order": ["car"] * 101}, 422, "order: got 101 elements, expected at most 100"),
        ({"x" * 900_000: 1}, 422, "there is no such field"),
        ({"where": "x" * 1_100_000}, 413, "the body has more than 1,048,576 bytes"),
        ({"scenes": [[[]] * 9_000] * 2}, 422, "scenes"),
    ],
)
def test_what_is_too_much_is_said_in_one_line(
    client: TestClient, body: Any, status: int, said: str
) -> None:
    """What was given, and what may be."""
    answer = client.post("/v1/selections", json=body)
    assert answer.status_code == status, answer.text[:500]
    assert said in answer.json()["detail"]
    assert len(answer.content) < 2_000


def test_parameters(client: TestClient) -> None:
    """What a query gives is held to the same limits, and refused as a wrong value."""
    for name in ("camera", "scene"):
        answer = client.get("/v1/classes", params={name: "9" * 5_000})
        assert answer.status_code == 400, answer.text
        assert "at most 4096" in answer.text.replace(",", "")


def test_nested_without_end(client: TestClient) -> None:
    """Deeper than anything that is asked for; so deep that it cannot be read."""
    for depth, status in ((200, 422), (100_000, 400)):
        text = '{"condition":' + "[" * depth + "]" * depth + "}"
        headers = {"Content-Type": "application/json"}
        answer = client.post("/v1/selections", content=text, headers=headers)
        assert answer.status_code == status, answer.text


@pytest.mark.parametrize("field", ["filters", "group_by", "sort_by"])
def test_searches(client: TestClient, field: str) -> None:
    """Spectrum Discover's, whose bodies are read raw, whatever type they are said to have."""
    content = json.dumps({field: [1] * 300_000})
    answer = client.post("/db2whrest/v1/search", content=content)
    assert answer.status_code == 400
    assert "the body holds 300,000 elements in one list" in answer.json()["reason"]
    short = client.post("/db2whrest/v1/search", content=json.dumps({field: [1] * 9_000}))
    assert (short.status_code, len(short.content) < 500) == (400, True)


def test_names_of_splits() -> None:
    """64 characters; each stands in every frame of it."""
    name = "x" * 64
    assert list(parse_split(f"{name}=0.5,validation=0.5")) == [name, "validation"]
    with pytest.raises(InvalidInput, match=r"has 65 characters, expected at most 64"):
        parse_split(f"x{name}=0.5,validation=0.5")
    with pytest.raises(InvalidInput) as refused:
        parse_split("x" * 10_000_000)
    assert len(str(refused.value)) < 300


def test_arguments_of_assistants() -> None:
    """Each has a limit, too."""
    tools = pytest.importorskip("api.mcp.tools")

    async def nobody(_: Any) -> Any:
        raise InvalidInput("nobody asks")

    server = tools.server_of(nobody)
    for tool in server._tool_manager.list_tools():
        for path, subschema in parts_of(tool.parameters, tool.name):
            if subschema.get("type") == "string" and not {"enum", "const", "pattern"} & set(
                subschema
            ):
                assert subschema["maxLength"] <= 1 << 20, path
            if subschema.get("type") == "array":
                assert subschema["maxItems"] <= MOST_MANY, path


def test_a_home_is_not_needed(tmp_path: Path) -> None:
    """What holds too much is refused before anything is opened."""
    with TestClient(create_app(Settings(home=tmp_path / "none"), authenticates=False)) as client:
        answer = client.post("/mcp", json={"params": [1] * 20_000})
    assert answer.status_code == 422
