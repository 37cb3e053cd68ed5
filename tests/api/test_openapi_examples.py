"""Every example in the OpenAPI document is one of its schema, and nothing lacks one."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import jsonschema_rs
import pytest

from api.http.login_path import LOGIN
from query.question.question import Question
from tests.api.documents import openapi_document
from tests.api.route_rules import DISCOVER, below
from tests.api.servers import until_ready


def operations() -> list[tuple[str, dict[str, Any]]]:
    """Method and path of each operation, and what the document says of it."""
    return [
        (f"{method} {path}", operation)
        for path, path_item in openapi_document()["paths"].items()
        for method, operation in path_item.items()
        if method != "head"  # says what GET says
    ]


def check(schema: dict[str, Any], example: Any, where: str) -> None:
    """Whether an example is one of a schema of the document."""
    whole = {**schema, "components": openapi_document()["components"]}
    try:
        jsonschema_rs.Draft202012Validator(whole).validate(example)
    except jsonschema_rs.ValidationError as error:
        pytest.fail(f"{where}: {example!r}: {error.message}")


def examples_of(told: dict[str, Any]) -> list[Any]:
    """Those of a parameter or a content."""
    named = told.get("examples", {})
    values = [example["value"] for example in named.values()] if isinstance(named, dict) else named
    return [*values, *([told["example"]] if "example" in told else [])]


EMPTY = {(f"get {LOGIN}", "200"), ("post /mcp", "202")}
"""Answers without a body."""


@pytest.mark.wide
def test_operations() -> None:
    """Parameters, bodies, and what each answers when all goes well; no bytes, but texts."""
    assert len(operations()) > 150
    for where, operation in operations():
        check_operation(where, operation)


def check_operation(where: str, operation: dict[str, Any]) -> None:
    """Whether all that an operation takes and answers has examples of its schema."""
    for parameter in operation.get("parameters", ()):
        schema = parameter["schema"]
        for example in examples_of(parameter):
            check(schema, example, f"{where} {parameter['name']}")
        told = examples_of(parameter) or {"examples", "enum", "const"} & schema.keys()
        has_default = schema.get("default") not in (None, "", [])
        assert told or has_default or schema.get("type") == "boolean", (where, parameter["name"])
    contents = dict(operation.get("requestBody", {}).get("content", {}))
    for status, answer in operation["responses"].items():
        if status[0] == "2" and status != "204" and (where, status) not in EMPTY:
            assert answer["content"], (where, status)
            contents |= {f"{status} {kind}": content for kind, content in answer["content"].items()}
    for kind, content in contents.items():
        examples = examples_of(content)
        is_text = any(word in kind for word in ("json", "text/"))
        assert examples or not is_text, (where, kind)
        for example in examples:
            check(content.get("schema", {}), example, f"{where} {kind}")


NEED_MORE = {
    "/db2whrest/v1/sql_query", "/db2whrest/v1/sql_query_json", "/db2whrest/v1/sql_query_async",
}  # fmt: skip
"""Routes that need what is no parameter: the whole query string is a statement."""

REFUSED = {
    "post /policyengine/v1/applications", "patch /policyengine/v1/applications/{application}",
    "delete /policyengine/v1/applications/{application}", "get /policyengine/v1/tlscert",
    "get /connmgr/v1/internal/connections", "get /api/application/v1/cipherkey",
    "post /connmgr/v1/scan", "put /connmgr/v1/scan/{connection}",
}  # fmt: skip
"""Operations that never go well."""


def test_what_a_server_answers(server: str) -> None:
    """Every route that needs nothing else answers, in each type that is told, what the examples do.

    Objects have the examples' fields; lists of objects, too, where there are any.
    """
    until_ready(server)
    asked = [
        (path, operation["get"])
        for path, operation in openapi_document()["paths"].items()
        if "get" in operation
        and f"get {path}" not in REFUSED
        and path not in NEED_MORE
        and not any(each.get("required") for each in operation["get"].get("parameters", ()))
    ]
    assert len(asked) > 30
    with httpx.Client(base_url=server, timeout=300) as client:
        for path, operation in asked:
            check_answers(client, path, operation)


def check_answers(client: httpx.Client, path: str, operation: dict[str, Any]) -> None:
    """Whether a server answers as the examples of an operation do."""
    for kind, content in operation["responses"]["200"].get("content", {"text/html": {}}).items():
        answer = client.get(path, headers={"Accept": f"{kind}, */*;q=0.1"})
        assert answer.status_code == 200, (path, answer.text)
        assert answer.headers["content-type"].partition(";")[0] == kind, path
        if kind == "application/json" and below(path, DISCOVER):
            (example,), answer_body = examples_of(content), answer.json()
            assert type(answer_body) is type(example), path
            if isinstance(answer_body, list):
                example, answer_body = example[0], answer_body[0] if answer_body else example[0]
            if isinstance(answer_body, dict):
                assert list(answer_body) == list(example), path


def test_what_is_always_refused(server: str) -> None:
    """Nothing is told of how it goes well, and it does not."""
    never = {
        where
        for where, operation in operations()
        if not any(status.startswith("2") for status in operation["responses"])
    }
    assert never == REFUSED
    for where in REFUSED:
        method, path = where.split()
        url_path = path.format(application="image", connection="a2d2")
        answer = httpx.request(method, f"{server}{url_path}", content="{}", timeout=300)
        assert answer.status_code in (400, 404)
        assert list(answer.json()) == ["reason", "status"]
        assert len(answer.json()["reason"]) > len("Not Found")


def test_rows_of_statements(server: str) -> None:
    """The examples of rows are what a server answers for such a row, but for its values."""
    url = f"{server}/db2whrest/v1/sql_query"
    statement = "select platform, datasource, filename from metaocean where filename like '%png' "
    statement += "order by filename fetch first 1 row only"
    told = openapi_document()["paths"]["/db2whrest/v1/sql_query"]["post"]["responses"]["200"][
        "content"
    ]
    filename = httpx.post(f"{url}_json", content=statement, timeout=300).json()[0]["filename"]
    for kind in ("text/csv", "application/x-ndjson", "application/json"):
        answer = httpx.post(url, content=statement, headers={"Accept": kind}, timeout=300)
        assert answer.headers["content-type"].partition(";")[0] == kind
        (example,) = examples_of(told[kind])
        text = json.dumps(example) if kind == "application/json" else example
        assert answer.text == text.replace("camera_lidar_semantic/x.png", filename)
    task = httpx.get(f"{url}_async?select+1+from+metaocean", timeout=300)
    answers = openapi_document()["paths"]["/db2whrest/v1/sql_query_async"]["get"]["responses"]
    (kind,) = answers["202"]["content"]
    assert task.headers["content-type"].partition(";")[0] == kind
    assert examples_of(answers["202"]["content"][kind]) == [task.text]
    assert task.headers["location"].startswith(f"{server}/db2whrest/v1/task_status/")


def fields(value: Any, where: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema with examples in the document."""
    if isinstance(value, dict):
        if isinstance(value.get("examples"), list):
            yield where, value
        for name, child in value.items():
            if name not in ("examples", "example"):
                yield from fields(child, f"{where}.{name}")


@pytest.mark.wide
def test_fields() -> None:
    """What a schema gives as an example of one of its fields is one."""
    seen = 0
    for where, schema in fields(openapi_document()["components"]["schemas"], ""):
        for example in schema["examples"]:
            check(schema, example, where)
            seen += 1
    assert seen > 250


def test_questions() -> None:
    """Wherever a question is an example, it is one that can be asked."""
    seen = 0
    for schema in openapi_document()["components"]["schemas"].values():
        schema_of_question = schema.get("properties", {}).get("question", {})
        for example in schema_of_question.get("examples", ()):
            if isinstance(example, dict):
                Question.model_validate(example)
                seen += 1
    assert seen > 1


def test_pictures_can_be_asked_in_parts() -> None:
    """Range, If-Range and If-None-Match, and what else they answer."""
    for kind in ("images", "labels", "overlays", "predictions"):
        operation = openapi_document()["paths"][f"/v1/{kind}/{{fkey}}"]["get"]
        names = {parameter["name"] for parameter in operation["parameters"]}
        assert {"Range", "If-Range", "If-None-Match"} <= names
        assert {"206", "304", "406", "416"} <= set(operation["responses"])
    for path in (
        "frames", "selections", "sql", "classes", "statistics/histogram", "statistics/facets",
        "statistics/correlation",
        "datasets/{name}/gaps", "datasets/{name}/diff",
    ):  # fmt: skip
        (operation,) = (
            operation
            for method, operation in openapi_document()["paths"][f"/v1/{path}"].items()
            if method != "head"
        )
        assert {"text/csv", "application/json"} <= set(operation["responses"]["200"]["content"])
        assert "406" in operation["responses"]
    for method, path in (("post", "/v1/tags/values"), ("post", "/v1/sql")):
        assert "415" in openapi_document()["paths"][path][method]["responses"]
