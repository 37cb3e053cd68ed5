"""The OpenAPI document: every operation is told in full."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from fastapi.testclient import TestClient

from api.app import create_app
from api.settings import Settings
from tests.api.route_rules import DISCOVER, OPEN, below


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """As a server answers it."""
    home = tmp_path_factory.mktemp("home")
    with TestClient(create_app(Settings(home=home), authenticates=False)) as client:
        document: dict[str, Any] = client.get("/openapi.json").json()
    return document


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Method, path and description of each."""
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            yield method, path, operation


def test_every_operation_is_told_in_full(document: dict[str, Any]) -> None:
    """Summary, description, tags, parameters, credentials, and errors with a body."""
    seen = 0
    for method, path, operation in operations(document):
        where = f"{method} {path}"
        seen += 1
        assert operation["summary"], where
        assert operation["description"], where
        if method == "head":
            continue
        assert operation["tags"], where
        for parameter in operation.get("parameters", []):
            assert parameter["schema"], (where, parameter)
        if path in OPEN and path != "/auth/v1/token":
            assert operation["security"] == [], where
            continue
        assert operation["security"], where
        answers = operation["responses"]
        assert {"400", "401", "403", "404", "422", "503", "default"} <= set(answers), where
        for status, answer in answers.items():
            assert answer["description"], (where, status)
            if status[0] not in "45d" or status == "431":
                continue
            own = not below(path, DISCOVER) or status == "422"
            kind = "application/problem+json" if own else "application/json"
            schema = "Problem" if own else "DiscoverProblem"
            reference = answer["content"][kind]["schema"]["$ref"]
            assert reference == f"#/components/schemas/{schema}", (where, status)
    assert seen > 80


def test_head_is_told_wherever_it_is_answered(document: dict[str, Any]) -> None:
    """As GET, without a body; not of streams, nor of Discover's routes, which have a contract."""
    for path, path_item in document["paths"].items():
        if below(path, DISCOVER) or path.endswith("/events") or "get" not in path_item:
            assert "head" not in path_item, path
            continue
        head, get = path_item["head"], path_item["get"]
        names = {each["name"] for each in get.get("parameters", ())} - {"Range", "If-Range"}
        assert {each["name"] for each in head.get("parameters", ())} == names
        assert head["security"] == get["security"]
        assert {"200", "default"} <= set(head["responses"]), path
        assert not any("content" in answer for answer in head["responses"].values())
        assert "content" in get["responses"]["200"]  # it is still told of GET
    ids = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(ids) == len(set(ids))


@pytest.mark.wide
def test_assistants_are_told_where_they_are_answered(tmp_path: Path) -> None:
    """/mcp takes POST; a server that answers none does not say so."""
    (method,) = create_app(Settings(home=tmp_path)).openapi()["paths"]["/mcp"]
    assert method == "post"
    assert "/mcp" not in create_app(Settings(home=tmp_path, mcp=False)).openapi()["paths"]


def test_every_body_has_an_example_of_its_schema(document: dict[str, Any]) -> None:
    """What could be sent, as it could be sent."""
    seen = 0
    for method, path, operation in operations(document):
        for kind, body in operation.get("requestBody", {}).get("content", {}).items():
            where = f"{method} {path} {kind}"
            examples = [body["example"]] if "example" in body else []
            examples += [example["value"] for example in body.get("examples", {}).values()]
            assert examples, where
            schema = {**body["schema"], "components": document["components"]}
            for example in examples:
                seen += 1
                jsonschema_rs.Draft202012Validator(schema).validate(example)
    assert seen > 15


def test_every_field_that_v1_answers_is_told(document: dict[str, Any]) -> None:
    """By an example those of records; by an example or in words those of what is computed."""
    answered = set()
    for _, path, operation in operations(document):
        if below(path, ("/v1",)):
            for status, answer in operation["responses"].items():
                content = answer.get("content", {}).get("application/json", {})
                if status.startswith("2") and "$ref" in content.get("schema", {}):
                    answered.add(content["schema"]["$ref"].rpartition("/")[2])
    assert {"JobBody", "SourceShown", "DatasetBody", "TagBody", "StagingBody"} <= answered
    for name in answered:
        schema = document["components"]["schemas"][name]
        for field, field_schema in schema["properties"].items():
            told = "examples" in field_schema or "$ref" in json.dumps(field_schema)
            if not name.endswith("Body"):
                told = told or "description" in field_schema
            assert told or field_schema.get("type") in ("boolean", "integer"), (name, field)


def test_lists_have_pages(document: dict[str, Any]) -> None:
    """Every list of /v1 has limit and cursor, and answers next."""
    lists = ["sources", "scans", "datasets", "stagings", "jobs", "models", "tags", "frames"]
    lists += [
        "users",
        "tokens",
        "collections",
        "audit",
        "families",
        "policies",
        "triggers",
        "webhooks",
        "questions",
    ]
    for name in lists:
        operation = document["paths"][f"/v1/{name}"]["get"]
        assert {"limit", "cursor"} <= {p["name"] for p in operation["parameters"]}, name
        reference = operation["responses"]["200"]["content"]["application/json"]["schema"]["$ref"]
        assert "next" in document["components"]["schemas"][Path(reference).name]["properties"]


def test_references_lead_somewhere(document: dict[str, Any]) -> None:
    """No schema is named that is not there."""
    known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}

    def walk(schema: Any) -> None:
        if isinstance(schema, dict):
            if isinstance(schema.get("$ref"), str):
                assert schema["$ref"] in known, schema["$ref"]
            for child in schema.values():
                walk(child)
        elif isinstance(schema, list):
            for child in schema:
                walk(child)

    walk(document["paths"])
    walk(document["components"])
