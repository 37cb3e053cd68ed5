"""Heads that are no request: a problem document, and the connection's end."""

import json

import pytest

from tests.api.raw_http import exchange

HOST = b"Host: localhost\r\n"
TWO_LENGTHS = [
    b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
    b"transfer-encoding: chunked\r\nX: y\r\nCONTENT-LENGTH:0\r\n",
    b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\nContent-Length: 4\r\n",
]


@pytest.mark.parametrize("lengths", TWO_LENGTHS)
def test_two_lengths_are_refused(server: str, lengths: bytes) -> None:
    """400 and closed, so that nothing behind it is read as another request."""
    head = b"POST /v1/sql HTTP/1.1\r\n" + HOST + lengths + b"\r\n"
    smuggled = b"0\r\n\r\nGET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"
    for parts in ((head + smuggled,), (head, smuggled)):
        answer = exchange(server, *parts)
        assert answer.statuses == [400], answer.raw
        assert answer.closed
        assert "Transfer-Encoding" in str(problem(answer.raw)["detail"])


def test_one_length_is_served(server: str) -> None:
    """Either of them, on one connection; and what only looks like both."""
    body = b'{"statement": "values 1"}'
    head = b"POST /v1/sql HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
    one = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
    other = (
        head
        + b"Transfer-Encoding: chunked\r\nX-Content-Length: 4\r\n\r\n"
        + (b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n")
    )
    last = b"GET /healthz HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n"
    assert exchange(server, one, other, last).statuses == [200, 200, 200]


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /\r\n\r\n", 400), (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + HOST + b"A B: c\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + HOST + b"Content-Length: x\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + HOST + b"A: " + b"b" * 70_000 + b"\r\n\r\n", 431),
    ],
)  # fmt: skip
def test_what_nobody_can_read(server: str, head: bytes, status: int) -> None:
    """Answered all the same, in the shape that errors have."""
    answer = exchange(server, head)
    assert answer.statuses == [status], answer.raw
    assert answer.closed
    document = problem(answer.raw)
    assert (document["status"], document["type"]) == (status, "about:blank")
    assert document["detail"]


@pytest.mark.parametrize(
    "coding", [b"xchunked", b"gzip, chunked", b"chunked\r\nTransfer-Encoding: x"]
)
def test_a_coding_that_is_not_known(server: str, coding: bytes) -> None:
    """501, which says what is wrong and does not repeat it."""
    head = b"POST /v1/sql HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: " + coding + b"\r\n\r\n"
    answer = exchange(server, head)
    assert answer.statuses == [501], answer.raw
    assert answer.closed
    detail = str(problem(answer.raw)["detail"])
    assert "Transfer-Encoding" in detail
    assert "too long" not in detail
    assert coding not in answer.raw


def test_a_body_that_breaks_off_gets_one_answer(server: str) -> None:
    """400 for a chunk that is none, and nothing after it; it does not get into another answer."""
    head = b"POST /v1/sql HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
    answer = exchange(server, head + b"Transfer-Encoding: chunked\r\n\r\n", b"zz\r\n", b"x" * 100)
    assert answer.statuses == [400], answer.raw
    assert answer.closed


def problem(raw: bytes) -> dict[str, object]:
    """The document of an answer, whose head says that it is one and how long."""
    head, _, body = raw.partition(b"\r\n\r\n")
    assert b"Content-Type: application/problem+json" in head
    assert b"Content-Length: %d" % len(body) in head
    document: dict[str, object] = json.loads(body)
    return document
