"""The carriage return that published clients send behind their token, and nothing beyond it."""

import base64
import random
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest
from h11._receivebuffer import ReceiveBuffer

from api.server.h11_protocol import HeadBuffer
from catalog.accounts import tokens, users
from catalog.records.store import RecordStore
from tests.api.raw_http import Answers, exchange
from tests.api.servers import serving
from tests.needed_programs import needs

PASSWORD = "a sentence is a good one"


@pytest.fixture(scope="module")
def served(shared_home: Path) -> Iterator[tuple[str, str]]:
    """A server that authenticates, and a token."""
    records = RecordStore(shared_home / "records" / "records.sqlite")
    users.add(records, "sdadmin", ["admin"], PASSWORD)
    _, token = tokens.create(records, "sdadmin", "t", "admin", timedelta(days=1))
    with serving(shared_home, authenticates=True) as (url, _):
        yield url, token


def ask(served: tuple[str, str], request: str, *more: str, wait_s: float = 120.0) -> Answers:
    """Send requests in which TOKEN stands for the token; lines end as they are written."""
    url, token = served
    parts = [
        request_bytes.replace("TOKEN", token).encode("latin-1")
        for request_bytes in (request, *more)
    ]
    return exchange(url, *parts, wait_s=wait_s)


GET = "GET /auth/v1/roles HTTP/1.1\r\nHost: x\r\n"


def test_the_token_s_header_is_spelled_as_clients_compare_it(served: tuple[str, str]) -> None:
    """The bytes on the wire: HEAD and GET, one X-Auth-Token, an empty body."""
    credentials = base64.b64encode(f"sdadmin:{PASSWORD}".encode()).decode()
    for method in ("HEAD", "GET"):
        answer = ask(
            served,
            f"{method} /auth/v1/token HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {credentials}\r\n"
            "Connection: close\r\n\r\n",
        )
        head, _, body = answer.raw.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        assert head.count(b"\r\nX-Auth-Token: fs_") == 1
        assert b"\r\ncontent-length: 0" in head
        assert b"\r\ncontent-type: text/html; charset=utf-8" in head
        assert body == b""


def test_the_published_bash_client(served: tuple[str, str]) -> None:
    """Its lines: curl -I, awk, and the token with its carriage return in the next request."""
    needs("curl", "awk")
    script = r"""
    TOKEN=$(curl -s -k -I -u "sdadmin:$2" "$1/auth/v1/token" | awk '/X-Auth-Token/ {print $2}')
    case "$TOKEN" in *$'\r') ;; *) echo "no carriage return"; exit 3;; esac
    curl -s -k -H "Authorization: Bearer $TOKEN" "$1/db2whrest/v1/sql_query" -X POST \
        -d "select count(*) from metaocean"
    """
    run = subprocess.run(
        ["bash", "-c", script, "bash", served[0], PASSWORD],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert run.stdout.startswith("0,")
    assert run.stdout.count("\n") == 1


@pytest.mark.parametrize(
    "line",
    ["Authorization: Bearer TOKEN\r\r\n", "authorization:Bearer TOKEN\r\r\n",
     "AUTHORIZATION: \t bearer TOKEN\r\r\n"],
)  # fmt: skip
@pytest.mark.parametrize("cut", [None, -5, -4, -3, -2, -1])
def test_it_is_served_and_the_connection_closed(
    served: tuple[str, str], line: str, cut: int | None
) -> None:
    """However it is spelled, first or last in the head, in one packet or cut anywhere in it."""
    for head in (GET + line + "Accept: */*\r\n\r\n", GET + line + "\r\n"):
        parts = [head] if cut is None else [head[:cut], head[cut:]]
        answer = ask(served, *parts)
        assert answer.statuses == [200]
        assert answer.closed
        assert b"\r\nconnection: close\r\n" in answer.raw.lower()


def test_a_connection_without_it_stays_open(served: tuple[str, str]) -> None:
    """Pipelined requests are answered in order, as ever."""
    plain = GET + "Authorization: Bearer TOKEN\r\n\r\n"
    answer = ask(served, plain + "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n" + LAST + AUTH + END)
    assert answer.statuses == [200, 401, 200]


def test_a_body_behind_it_is_read_whole(served: tuple[str, str]) -> None:
    """Its length is what Content-Length says, also where a carriage return begins it."""
    for body in ("select 1 from metaocean fetch first 1 rows only", "\r\n select 2 from t_car"):
        head = (
            "POST /db2whrest/v1/sql_query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer TOKEN\r\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        assert ask(served, head + body).statuses == [200]
        assert ask(served, head, body[:3], body[3:]).statuses == [200]


AUTH = "Authorization: Bearer TOKEN\r\n"
STRAY = "Authorization: Bearer TOKEN\r\r\n"
END = "\r\n"
LAST = GET + "Connection: close\r\n"


REFUSED = {
    "other header": LAST + AUTH + "Accept: */*\r\r\n" + END,
    "both headers": LAST + STRAY + "Accept: */*\r\r\n" + END,
    "request line": "GET /auth/v1/roles HTTP/1.1\r\r\nHost: x\r\n" + AUTH + END,
    "host": "GET /auth/v1/roles HTTP/1.1\r\nHost: x\r\r\n" + AUTH + END,
    "content-length": LAST + AUTH + "Content-Length: 0\r\r\n" + END,
    "content-length and stray": LAST + STRAY + "Content-Length: 0\r\r\n" + END,
    "transfer-encoding": LAST + AUTH + "Transfer-Encoding: chunked\r\r\n" + END + "0\r\n\r\n",
    "transfer-encoding and stray": LAST + STRAY + "Transfer-Encoding: chunked\r\r\n" + END,
    "two returns": LAST + "Authorization: Bearer TOKEN\r\r\r\n" + END,
    "return and blank": LAST + "Authorization: Bearer TOKEN\r \r\n" + END,
    "blank and return": LAST + "Authorization: Bearer TOKEN \r\r\n" + END,
    "return inside": LAST + "Authorization: Bearer TO\rKEN\r\n" + END,
    "return in front": LAST + "Authorization: \rBearer TOKEN\r\n" + END,
    "return in the name": LAST + "Authorization\r: Bearer TOKEN\r\n" + END,
    "a header behind a bare return": LAST + "Authorization: Bearer TOKEN\rX: y\r\r\n" + END,
    "a header behind a bare return, no stray": LAST + "Authorization: Bearer TOKEN\rX: y\r\n" + END,
    "bare return as the line's end": LAST + "Authorization: Bearer TOKEN\rAccept: x\r" + END,
    "folded": LAST + STRAY + " x\r\n" + END,
    "folded by a tab": LAST + STRAY + "\tContent-Length: 5\r\n" + END,
    "twice": LAST + STRAY + STRAY + END,
    "once with, once without": LAST + STRAY + AUTH + END,
    "once without, once with": LAST + AUTH + STRAY + END,
    "second with a blank in its name": LAST + STRAY + "Authorization : Bearer x\r\n" + END,
    "basic": LAST + "Authorization: Basic TOKEN\r\r\n" + END,
    "no token": LAST + "Authorization: Bearer \r\r\n" + END,
    "two tokens": LAST + "Authorization: Bearer TOKEN TOKEN\r\r\n" + END,
    "x-auth-token": LAST + "X-Auth-Token: TOKEN\r\r\n" + END,
    "a control character": LAST + "Authorization: Bearer TOKEN\x0b\r\r\n" + END,
    "NUL": LAST + "Authorization: Bearer TOKEN\0\r\r\n" + END,
    "in the empty line": LAST + AUTH + "\r\r\n",
    "stray, and in the empty line": LAST + STRAY + "\r\r\n" + END,
}
"""Heads that are answered by 400 or 401 and no other way."""

ENDLESS = ("bare return as the line's end", "in the empty line")
"""Those of them that are no whole head: the server waits for more."""


@pytest.mark.parametrize("name", REFUSED)
def test_nothing_else_is_tolerated(served: tuple[str, str], name: str) -> None:
    """No answer but a refusal, and the connection is closed where the head was no HTTP."""
    answer = ask(served, REFUSED[name], wait_s=1 if name in ENDLESS else 4)
    assert answer.statuses in ([400], [401], []), answer.raw
    if answer.statuses == [400]:
        assert answer.closed


CHUNKED = GET + AUTH + "Transfer-Encoding: chunked\r\n" + END
SMUGGLED = "GET /smuggled HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + AUTH + END


@pytest.mark.parametrize(
    "request_",
    [
        GET + STRAY + END + SMUGGLED,
        GET + STRAY + "Connection: keep-alive\r\n" + END + SMUGGLED,
        GET + STRAY + "Content-Length: 0\r\n" + END + SMUGGLED,
        GET + STRAY + "Content-Length: 5\r\n" + END + "abcde" + SMUGGLED,
        GET + STRAY + "Transfer-Encoding: chunked\r\n" + END + "0\r\n\r\n" + SMUGGLED,
        GET + STRAY + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n" + END + "0\r\n\r\n"
        + SMUGGLED,
        GET + STRAY + "Content-Length: 5\r\nContent-Length: 0\r\n" + END + SMUGGLED,
        # A proxy for which a bare return ends a line sees the head's end here:
        GET + STRAY + SMUGGLED,
        GET + STRAY + "GET /smuggled HTTP/1.1\r\n" + END,
        GET + STRAY + "\n" + SMUGGLED,
        CHUNKED + "0\r\n" + STRAY + END + "x" + SMUGGLED,
        CHUNKED + "5\r\r\nabcde\r\n0\r\n\r\n" + SMUGGLED,
    ],
)  # fmt: skip
def test_no_second_request_comes_through_with_it(served: tuple[str, str], request_: str) -> None:
    """Whatever stands behind, in the same packets or in later ones: it is never answered."""
    url, token = served
    for parts in ([request_], [request_.replace(SMUGGLED, ""), SMUGGLED]):
        answer = ask(served, *parts, wait_s=4)
        assert 404 not in answer.statuses, answer.raw
        assert b"smuggled" not in answer.raw
    assert exchange(url, (LAST + AUTH + END).replace("TOKEN", token).encode()).statuses == [200]


def test_a_smuggled_request_would_have_been_seen(served: tuple[str, str]) -> None:
    """The proof of the test above: as a request of its own it is answered by 404."""
    assert ask(served, SMUGGLED).statuses == [404]


def test_lines_are_those_of_h11_but_for_the_token() -> None:
    """The buffer takes as many bytes as h11's, whatever they are: no message ends elsewhere."""
    pieces = [
        b"GET / HTTP/1.1", b"\r\n", b"\r", b"\n", b"\r\r\n", b" ", b"\t", b":",
        b"Authorization: Bearer t", b"authorization:bearer a=", b"Content-Length: 3", b"x", b"0",
    ]  # fmt: skip
    chosen = random.Random(4)
    tolerated = 0
    for _ in range(20_000):
        some = chosen.choices(pieces, k=chosen.randrange(1, 9))
        data = b"".join([b"GET / HTTP/1.1\r\n", *some])
        theirs, ours = ReceiveBuffer(), cast(ReceiveBuffer, HeadBuffer())
        theirs += data
        ours += data
        expected, ours_lines = theirs.maybe_extract_lines(), ours.maybe_extract_lines()
        assert bytes(theirs) == bytes(ours), data
        if expected == ours_lines:
            continue
        assert expected is not None
        assert ours_lines is not None
        tolerated += 1
        assert ours_lines.pop() == b"Connection: close"
        assert len(ours_lines) == len(expected)
        (changed,) = [(a, b) for a, b in zip(expected, ours_lines, strict=True) if a != b]
        assert changed[0] == changed[1] + b"\r"
        assert changed[1].lower().startswith(b"authorization:")
        assert b"\r" not in changed[1]
    assert tolerated > 30
