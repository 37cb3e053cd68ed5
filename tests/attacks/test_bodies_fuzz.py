"""Mutated bodies of every route, by accounts of several roles, for half a minute.

The seed is fixed: the same bodies come in the same order, as many of them as there is time for.
"""

import copy
import json
import random
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.test_injected_bodies import BODIES, put
from tests.attacks.arena import ACCOUNTS, Server, arena
from tests.attacks.conftest import Watched

SECONDS = 30
SEED = 20261122

ODD: tuple[Any, ...] = (
    None, True, -1, 0, 2**31, 2**63, 10**400, 1e308, -0.0, "", " ", "\0", "\ud83d", "x" * 100_000,
    "' or 1=1 --", "../../etc/passwd", "\u202e\u0000\u001b]52;c;eA==\u0007", [], {}, [[]], [{}],
    [1] * 2_000, [None] * 12_000, ["x"] * 2_000, {"x": 1}, {f"x{n}": 1 for n in range(900)},
    {"kind": "all", "of": []}, "2018-99-99T99:99", "1/0", "NaN",
)  # fmt: skip


@pytest.fixture
def server(home: Path) -> Iterator[Server]:
    """A server that can begin no jobs, which would outlive it, and asks no other hosts."""
    (home / "jobs").touch()
    variables = {"FRAMESIFT_LOCK_WAIT_S": "5", "FRAMESIFT_SOURCE_SCHEMES": "file"}
    with arena(home, variables=variables, memory_mb=4096) as server:
        yield server


def places_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in a body, the body itself included."""
    yield path
    for key, child in value.items() if isinstance(value, dict) else ():
        yield from places_of(child, (*path, key))
    for number, child in enumerate(value) if isinstance(value, list) else ():
        yield from places_of(child, (*path, number))


def nested(draw: random.Random, value: Any) -> Any:
    """A part inside itself, up to 120 times: the server takes 100 levels."""
    for _ in range(draw.choice((1, 5, 20, 120))):
        value = [value] if draw.random() < 0.5 else {"of": value, "kind": "all"}
    return value


def mutated(draw: random.Random, body: Any) -> Any:
    """The body with one to three parts that are others."""
    copied = copy.deepcopy(body)
    for _ in range(draw.randint(1, 3)):
        path = draw.choice(list(places_of(copied)))
        value: Any = copied
        for key in path:
            value = value[key]
        way = draw.random()
        if way < 0.6:
            value = draw.choice(ODD)
        elif way < 0.75:
            value = nested(draw, value)
        elif way < 0.9 and isinstance(value, list):
            value = value * draw.choice((2, 50, 2_000))
        elif isinstance(value, dict):
            value = {**value, f"field{draw.random()}": draw.choice(ODD)}
        copied = put(copied, path, value)
    return copied


def written(draw: random.Random, body: Any) -> bytes:
    """The body as bytes, now and then cut or with a byte that does not belong there."""
    text = json.dumps(body).encode()
    if draw.random() < 0.05:
        return text[: draw.randint(0, len(text))]
    if draw.random() < 0.05:
        position = draw.randint(0, len(text))
        return text[:position] + bytes([draw.randint(0, 255)]) + text[position:]
    return text


def test_mutated_bodies(server: Server, watched: Watched) -> None:
    """None is answered with 500, and the others are answered meanwhile."""
    draw = random.Random(SEED)
    headers = {"Content-Type": "application/json"}
    clients = {account: server.client(account) for account in ACCOUNTS}
    wrong, requests = [], 0
    with watched(server, most_mb=1_000):
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            method, path, example = draw.choice(BODIES)
            account = draw.choice(list(clients))
            url_path = re.sub(r"\{[^}]+\}", lambda _: draw.choice(("a2d2", "none", "1")), path)
            body = written(draw, mutated(draw, example))
            try:
                answer = clients[account].request(method, url_path, content=body, headers=headers)
            except httpx.TransportError as error:
                wrong.append((method, url_path, account, body[:300], repr(error)))
                continue
            requests += 1
            if answer.status_code == 500:
                wrong.append((method, url_path, account, body[:300], answer.text[:300]))
    for client in clients.values():
        client.close()
    assert wrong == []
    assert requests > 50
