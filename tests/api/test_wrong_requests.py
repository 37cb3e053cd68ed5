"""What a request that is not of its route's schema is told: given, expected, what there is."""

from typing import Any

import httpx2 as httpx
import pytest

_FIELDS = (
    "there are allow_leakage, disjoint_from, method, min_gap_s, name, question, seed, split, "
    "split_by, split_given, stratify_splits"
)

WRONG: list[tuple[str, object, str]] = [
    ("datasets", {"name": "a", "nme": 1},
     f"body.nme: there is no such field, did you mean 'name'?; {_FIELDS}"),
    ("datasets", {}, 'body.name: is missing, such as "val-bikes"; given: nothing'),
    ("datasets", {"name": "a", "question": {"rages": []}},
     "body.question.rages: there is no such field, did you mean 'ranges'?; there are cameras,"),
    ("datasets", {"name": "a", "method": {"method": "smple"}},
     "body.method: unknown method 'smple', did you mean 'sample'?; there are sample, match,"),
    ("selections", {"ranges": {"car": [1, 2]}},
     'body.ranges: got an object, expected a list, such as [{"tag": "car", "lowest": 10000, "'),
    ("selections", {"ranges": [["car", 1]]},
     'body.ranges.0: got a list, expected an object, such as {"tag": "car",'),
    ("selections", {"ranges": [{"tagg": "car", "lowest": 1}]},
     'body.ranges.0.tag: is missing, such as "car"; given: tagg, lowest'),
    ("selections", {"cameras": "front_center"},
     "body.cameras: got 'front_center', expected a list, such as [\"front_center\"]"),
    ("stagings", {"dataset": "x", "workers": 257},
     "body.workers: got 257, expected less than or equal to 256"),
    ("selections", {"limit": "ten"}, "body.limit: got 'ten', expected a whole number"),
    ("selections", {"limit": 0}, "body.limit: got 0, expected greater than or equal to 1"),
    ("selections", {"condition": {"kind": "hass", "tag": "car"}},
     "body.condition: unknown kind 'hass', did you mean 'has'?; there are pixels, share, has,"),
    ("selections", {"condition": {"tag": "car"}},
     "body.condition: 'kind' is missing: expected one of all, any, camera, has, none, pixels,"),
    ("selections", {"condition": {"kind": "all", "of": [{"kind": "has", "tag": "car", "x": 1}]}},
     "body.condition.all.of.0.has.x: there is no such field; there are kind, pixels, tag"),
    ("selections", [], "body: got a list, expected an object"),
    ("selections", None, "body: is missing, expected JSON"),
    ("jobs", {"kind": "train", "dataset": "a", "workrs": 2},
     "body.train.workrs: there is no such field, did you mean 'workers'?; there are attempts,"),
    ("jobs", {"kind": "trian"}, "body: unknown kind 'trian', did you mean 'train'?; there are"),
    ("policies", {"name": "p", "action": "X", "parameters": {}},
     "body.action: got 'X', expected 'AUTOTAG', 'IMPORT_TAGS' or 'DEEPINSPECT'"),
    ("users", {"name": "u", "roles": [], "password": ["x"] * 3},
     "body.password: got a list, expected a text"),
    ("users", {"name": "u", "roles": [], "password": 12345678},
     "body.password: got another value, expected a"),
]  # fmt: skip


@pytest.mark.parametrize(("route", "body", "message"), WRONG)
def test_a_wrong_body_is_explained(server: str, route: str, body: object, message: str) -> None:
    """In words of JSON, with the fields that there are and an example; no secret is repeated."""
    options: dict[str, Any] = {} if body is None else {"json": body}
    answer = httpx.post(f"{server}/v1/{route}", **options)
    assert (answer.status_code, answer.json()["title"]) == (422, "InvalidRequest")
    assert answer.json()["detail"].startswith(message)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("audit?outcome=abc",
         "query.outcome: got 'abc', expected: Only with this outcome: a status such as 403"),
        ("tags?kind=bogus", "query.kind: got 'bogus', expected 'Open', 'Restricted' or"),
        ("frames?limit=x", "query.limit: got 'x', expected a whole number"),
        ("classes?quantiles=maybe", "query.quantiles: got 'maybe', expected true or false"),
        ("stagings/plan?dataset=x&workers=257",
         "query.workers: got '257', expected less than or equal to 256"),
        ("info?x=1", "query.x: no such parameter; this takes none"),
    ],
)  # fmt: skip
def test_a_wrong_parameter_is_explained(server: str, query: str, message: str) -> None:
    """By what the parameter is, and not by a regular expression."""
    detail = httpx.get(f"{server}/v1/{query}").json()["detail"]
    assert detail.startswith(message)
    assert "^" not in detail
