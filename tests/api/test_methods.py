"""HEAD, OPTIONS, Allow; paths with a slash too many; the page of documentation."""

import re

import httpx2 as httpx
import pytest

PLAIN = ["/v1/sources", "/v1/tags", "/v1/frames?limit=2", "/v1/info", "/openapi.json", "/healthz",
         "/docs", "/v1/datasets/none", "/policyengine/v1/tags", "/v1/nothing"]  # fmt: skip


@pytest.mark.parametrize("path", PLAIN)
@pytest.mark.parametrize("coding", ["identity", "gzip"])
def test_head_is_get_without_its_body(server: str, path: str, coding: str) -> None:
    """The same status, length, type, ETag and coding; no byte of a body."""
    headers = {"Accept-Encoding": coding}
    head, got = (
        httpx.request(method, server + path, headers=headers) for method in ("HEAD", "GET")
    )
    assert (head.status_code, head.content) == (got.status_code, b"")
    changing = {"date", "x-request-id"}
    if got.status_code >= 400:
        changing.add("content-length")  # of a compressed text with the request's id
    headers_of = [
        {name: value for name, value in answer.headers.items() if name not in changing}
        for answer in (head, got)
    ]
    assert headers_of[0] == headers_of[1]


def test_conditions_hold_for_head(server: str) -> None:
    """304 as for GET; a range is of GET alone."""
    etag = httpx.get(f"{server}/v1/tags").headers["etag"]
    answer = httpx.head(f"{server}/v1/tags", headers={"If-None-Match": etag})
    assert answer.status_code == 304
    assert httpx.head(f"{server}/v1/tags", headers={"Range": "bytes=0-1"}).status_code == 200


ALLOWED = [
    ("/v1/sources", "GET, HEAD, OPTIONS, POST"), ("/v1/sql", "OPTIONS, POST"),
    ("/v1/sources/x", "DELETE, GET, HEAD, OPTIONS, PATCH"),
    ("/v1/images/a/b.png", "GET, HEAD, OPTIONS"), ("/v1/jobs/x/events", "GET, OPTIONS"),
    ("/mcp", "OPTIONS, POST"),
    ("/v1/users/anna", "DELETE, GET, HEAD, OPTIONS, PATCH"), ("/healthz", "GET, HEAD, OPTIONS"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "allowed"), ALLOWED)
def test_which_methods_a_path_has(server: str, path: str, allowed: str) -> None:
    """By OPTIONS (204), and by the answer to a method that is none of them (405)."""
    told = httpx.options(server + path)
    assert (told.status_code, told.headers["allow"], told.content) == (204, allowed, b"")
    for method in {"BREW", "PUT", "PATCH", "HEAD", "DELETE"} - set(allowed.split(", ")):
        refused = httpx.request(method, server + path)
        assert (refused.status_code, refused.headers["allow"]) == (405, allowed), method
        assert method == "HEAD" or method in refused.json()["detail"]


def test_no_path_has_no_methods(server: str) -> None:
    """404, which says so, for OPTIONS too; a slash too many leads nowhere, and to no other host."""
    for method, path in (("OPTIONS", "/v1/nothing"), ("GET", "/v1/nothing"), ("GET", "/v1/users/")):
        answer = httpx.request(method, server + path)
        assert answer.status_code == 404
        assert "location" not in answer.headers
        assert path in answer.json()["detail"]
        assert "openapi.json" in answer.json()["detail"]


def test_the_documentation_asks_nobody_else(server: str) -> None:
    """No script, no other host, nothing loaded at all; every path is there."""
    page = httpx.get(f"{server}/docs")
    assert page.status_code == 200
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert not re.search(r"<script|<link|<img|<iframe|@import|url\(|\bon\w+=", page.text)
    assert set(re.findall(r'(?:href|src)="([^"]*)"', page.text)) == {"/", "openapi.json"}
    assert not re.search(r"(?:href|src|action)=[^>]*//", page.text)
    document = httpx.get(f"{server}/openapi.json").json()
    for path in document["paths"]:
        assert f"<code>{path}</code>" in page.text
    for gone in ("/redoc", "/docs/oauth2-redirect"):
        assert httpx.get(server + gone).status_code == 404


@pytest.mark.parametrize("coding", ["identity", "gzip", "zstd"])
def test_304_says_what_200_would(server: str, coding: str) -> None:
    """ETag of this coding, Vary, Cache-Control; whichever coding's ETag the client has."""
    for path in ("/v1/tags?limit=1000", "/v1/tags?limit=1"):  # one worth compressing, and one not
        tags = [
            httpx.get(server + path, headers={"Accept-Encoding": each}).headers["etag"]
            for each in ("identity", "gzip", "zstd")
        ]
        headers = {"Accept-Encoding": coding}
        whole = httpx.get(server + path, headers=headers)
        for tag in tags:
            answer = httpx.get(server + path, headers=headers | {"If-None-Match": tag})
            assert (answer.status_code, answer.content) == (304, b"")
            for name in ("etag", "vary", "cache-control"):
                assert answer.headers[name] == whole.headers[name], (name, tag)
            assert "content-type" not in answer.headers
