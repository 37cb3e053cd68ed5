"""One user asks for more than there is: others are served meanwhile, and what nobody wants ends."""

import contextlib
import json
import re
import socket
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from catalog.accounts import tokens, users
from catalog.records.store import RecordStore
from tests.api.servers import serving, until_ready, wait_until
from tests.api.test_abuse import ENDLESS, connected, head
from tests.api.test_workers import SECONDS
from tests.pipeline.homes import FRAMES

pytestmark = pytest.mark.wide

SQL = "/db2whrest/v1/sql_query"
TRUE = f"({ENDLESS}) > 0"
"""A condition that takes for ever to find out."""

SELECTION = {"where": TRUE}
HISTOGRAM = f"/v1/statistics/histogram?tag=car&where={quote(TRUE)}"
LIMITS = {
    "FRAMESIFT_STATEMENTS_AT_ONCE": "4",
    "FRAMESIFT_STATEMENTS_WAITING": "410",
    "FRAMESIFT_QUERY_TIMEOUT_S": "1200",
    "FRAMESIFT_BODY_TIMEOUT_S": "1200",
}
"""So long is no test: what is not cancelled is not waited for."""

ask = httpx.Client(timeout=120)


@pytest.fixture(scope="module")
def served(shared_home: Path) -> Iterator[tuple[str, dict[str, str], dict[str, str]]]:
    """A server's URL, and headers with the tokens of two users."""
    records = RecordStore(shared_home / "records" / "records.sqlite")
    headers = []
    for name in ("greedy", "other"):
        users.add(records, name, ["dataadmin"], "a sentence is a good one")
        _, token = tokens.create(records, name, "t", "write", timedelta(days=1))
        headers.append({"Authorization": f"Bearer {token}"})
    with serving(shared_home, variables=LIMITS, authenticates=True) as (url, _):
        until_ready(url, ask)
        yield url, headers[0], headers[1]


@contextlib.contextmanager
def asking(
    url: str, headers: dict[str, str], method: str, path: str, body: str, times: int
) -> Iterator[list[socket.socket]]:
    """So many connections that wait for the answer to one request; closed at the block's end."""
    lines = [f"{name}: {value}" for name, value in headers.items()]
    lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    with contextlib.ExitStack() as stack:
        threads = []
        for _ in range(times):
            connection = stack.enter_context(connected(url))
            connection.sendall(head(method, path, *lines) + body.encode())
            threads.append(connection)
        yield threads


def counted(url: str, headers: dict[str, str]) -> tuple[int, int]:
    """Statements that run, and that wait."""
    text = ask.get(f"{url}/metrics", headers=headers).text
    counts = [
        re.search(rf'framesift_statements{{state="{state}"}} (\d+)', text)
        for state in ("running", "waiting")
    ]
    return int(counts[0][1] if counts[0] else -1), int(counts[1][1] if counts[1] else -1)


def test_a_small_statement_beside_two_hundred(
    served: tuple[str, dict[str, str], dict[str, str]],
) -> None:
    """At once, as a task, by a search; the greedy one's own queue is full, and ends with them."""
    url, greedy, other = served
    with asking(url, greedy, "POST", "/v1/sql", json.dumps({"statement": ENDLESS}), 202):
        wait_until(lambda: counted(url, other) == (2, 200))
        rows = ask.post(url + SQL, content="select count(*) from t_car", headers=other)
        assert rows.text == f"0,{FRAMES}\n"
        task = ask.post(
            f"{url}{SQL}_async", content="select count(*) from t_car", headers=other
        ).headers["location"]
        wait_until(lambda: ask.get(task, headers=other).status_code != 303)
        assert ask.get(task, headers=other).text == f"0,{FRAMES}\n"
        response = ask.post(f"{url}/db2whrest/v1/search", json={"query": "car>0"}, headers=other)
        assert response.status_code == 200, response.text
        # Its own are over half of the queue; whichever way it asks.
        with asking(url, greedy, "POST", "/v1/sql", json.dumps({"statement": ENDLESS}), 5):
            wait_until(lambda: counted(url, other) == (2, 205))
            for path in (SQL, f"{SQL}_async", "/v1/sql"):
                body = json.dumps({"statement": "x"}) if path == "/v1/sql" else "x"
                kind = {"Content-Type": "application/json"}
                answer = ask.post(url + path, content=body, headers=greedy | kind)
                assert (answer.status_code, answer.headers["retry-after"]) == (503, "10"), path
            rows = ask.post(url + SQL, content="select count(*) from t_car", headers=other)
            assert rows.text == f"0,{FRAMES}\n"
    wait_until(lambda: counted(url, other) == (0, 0))


def test_tasks_of_one_wait_for_no_others(
    served: tuple[str, dict[str, str], dict[str, str]],
) -> None:
    """Tasks take the places of statements: beside many of them another's statement is done."""
    url, greedy, other = served
    locations = [
        ask.post(
            f"{url}{SQL}_async", content=SECONDS.replace("first 3", "first 2"), headers=greedy
        ).headers["location"]
        for _ in range(4)
    ]
    # All four, or one of the two that run is over already.
    wait_until(lambda: counted(url, other) in ((2, 2), (2, 1)))
    rows = ask.post(url + SQL, content="select count(*) from t_car", headers=other)
    assert rows.text == f"0,{FRAMES}\n"
    for location in locations:
        wait_until(partial(_is_done, location, greedy))


def _is_done(task: str, headers: dict[str, str]) -> bool:
    return ask.get(task, headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/selections", json.dumps(SELECTION)),
        ("GET", f"/v1/frames?where={quote(TRUE)}", ""),
        ("GET", HISTOGRAM, ""),
    ],
)
def test_questions_end_with_their_clients(
    served: tuple[str, dict[str, str], dict[str, str]], method: str, path: str, body: str
) -> None:
    """Others' are answered beside them; when their clients are gone, their places are free."""
    url, greedy, other = served
    mine = path.partition("?")[0]
    small = {"tag": "car"} if "histogram" in mine else {}
    with asking(url, greedy, method, path, body, 40):
        # Those that had come before it hold half of the places, and the rest of them wait.
        for _ in range(3):
            answer = ask.request(method, url + mine, params=small, json={}, headers=other)
            assert answer.status_code == 200, answer.text
        with pytest.raises(httpx.TimeoutException):
            ask.request(method, url + mine, params=small, json={}, headers=greedy, timeout=1)
    answer = ask.request(method, url + mine, params=small, json={}, headers=greedy, timeout=120)
    assert answer.status_code == 200


def test_a_search_ends_with_its_client(
    served: tuple[str, dict[str, str], dict[str, str]],
) -> None:
    """Running or waiting."""
    url, greedy, other = served
    with asking(url, greedy, "POST", "/db2whrest/v1/search", json.dumps({"query": TRUE}), 6):
        wait_until(lambda: counted(url, other) == (2, 4))
    wait_until(lambda: counted(url, other) == (0, 0))


def test_a_body_that_trickles_in_takes_no_place(
    served: tuple[str, dict[str, str], dict[str, str]],
) -> None:
    """Forty that have yet to send theirs, and the same user is served at once."""
    url, greedy, _ = served
    lines = [f"{name}: {value}" for name, value in greedy.items()]
    with contextlib.ExitStack() as stack:
        for path in ("/v1/selections", "/v1/tags"):
            for _ in range(20):
                connection = stack.enter_context(connected(url))
                connection.sendall(head("POST", path, *lines, "Content-Length: 1000") + b"{")
        for path in ("/v1/frames?limit=1", "/v1/datasets"):
            assert ask.get(url + path, headers=greedy, timeout=120).status_code == 200
