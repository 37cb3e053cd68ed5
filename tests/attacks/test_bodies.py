"""Bodies with much in them: the others are answered meanwhile, and the server lives on.

Before there were limits, two megabytes of wrong elements held up everybody for ten seconds and took
1.2 GB; fourteen killed the server.
"""

import json
from typing import Any

import pytest

from tests.attacks.arena import Server
from tests.attacks.conftest import Watched

LEAF = {"kind": "has", "tag": "car"}
BIG = 480_000
"""Elements of a list whose JSON has just under a megabyte."""


def in_json(body: Any) -> str:
    """A body as short as it can be written."""
    return json.dumps(body, separators=(",", ":"))


def asked(server: Server, path: str, body: str, account: str = "read") -> int:
    """The status of the answer to a body in JSON, made before: the watch must not wait for that."""
    with server.client(account) as client:
        headers = {"Content-Type": "application/json"}
        return client.post(path, content=body, headers=headers).status_code


@pytest.mark.parametrize("elements", [BIG, 1_000_000, 7_000_000])
@pytest.mark.parametrize("field", ["ranges", "scenes", "order"])
def test_wrong_elements(attacked: Server, watched: Watched, field: str, elements: int) -> None:
    """A list of numbers where none belong: 1, 2 and 14 MB."""
    body = in_json({field: [1] * elements})
    with watched(attacked, most_mb=400):
        status = asked(attacked, "/v1/selections", body)
    assert status in (413, 422)


@pytest.mark.parametrize("field", ["filters", "group_by", "sort_by"])
def test_wrong_searches(attacked: Server, watched: Watched, field: str) -> None:
    """The same for Spectrum Discover's search."""
    body = in_json({field: [1] * BIG})
    with watched(attacked, most_mb=400):
        status = asked(attacked, "/db2whrest/v1/search", body)
    assert status == 400


@pytest.mark.parametrize(
    "question",
    [
        {"ranges": [1] * BIG},
        {"condition": {"kind": "tag", "tag": "car", "op": "in", "value": [None] * (BIG // 3)}},
    ],
)
def test_wrong_arguments_of_assistants(
    attacked: Server, watched: Watched, question: dict[str, Any]
) -> None:
    """The same for a tool of /mcp."""
    call = {"name": "select", "arguments": {"question": question}}
    body = in_json({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
    with watched(attacked, most_mb=500):
        status = asked(attacked, "/mcp", body)
    assert status == 422


def test_wrong_in_many_places(attacked: Server, watched: Watched) -> None:
    """Bodies of a megabyte that are wrong in other ways than long lists, by several users."""
    bodies: list[Any] = [
        {f"field{number}": 1 for number in range(60_000)},
        {"condition": {"kind": "all", "of": [LEAF] * 25_000}},
        {"condition": {"kind": "any", "of": [{"kind": "all", "of": [LEAF] * 99}] * 99}},
        {"ranges": [{f"x{number}": 1 for number in range(4_900)}] * 10},
        {"scenes": ["x" * 900_000]},
        {"x" * 900_000: 1},
        [[[[1] * 9_000] * 10] * 2],
        {"condition": {"kind": "tag", "tag": "car", "op": "in", "value": [[]] * 9_999}},
    ]
    texts = [in_json(body) for body in bodies]
    with watched(attacked, most_mb=400):
        for text in texts:
            for account in ("read", "write", "admin"):
                assert asked(attacked, "/v1/selections", text, account) == 422, text[:80]


def test_the_longest_names_of_splits(attacked: Server, watched: Watched) -> None:
    """A name of a megabyte: refused before a frame is looked at."""
    with watched(attacked, most_mb=400):
        for length in (65, 4_000, 900_000):
            body = in_json({"name": "long", "split": f"{'x' * length}=0.5,validation=0.5"})
            assert asked(attacked, "/v1/datasets", body, "dataadmin") in (400, 422)
