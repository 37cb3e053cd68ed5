"""A browser's session: how it begins, what its cookie opens, and how it ends."""

import os
import pty
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from fastapi.testclient import TestClient

from api.app import create_app
from api.settings import Settings
from catalog.accounts import audit_log, login_links, tokens, users
from catalog.records.store import RecordStore
from tests.api.servers import environment, serving
from tests.pipeline.homes import copy_home
from tests.zygote import Forked

PASSWORD = "a long password"
HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
HERE = {"Origin": "http://testserver"}


@pytest.fixture(scope="module")
def home(shared_home: Path) -> Path:
    """Sample frames, an admin, and one who may read."""
    records = RecordStore(shared_home / "records" / "records.sqlite")
    users.add(records, "root", ["admin"], PASSWORD)
    users.add(records, "rita", ["dataadmin"], None)
    return shared_home


@pytest.fixture(scope="module")
def records(home: Path) -> RecordStore:
    """Of that home."""
    return RecordStore(home / "records" / "records.sqlite")


@pytest.fixture
def browser(home: Path) -> Iterator[TestClient]:
    """A browser without a session."""
    app = create_app(Settings(home=home, cache=None))
    with TestClient(app, follow_redirects=False, headers=HTML) as client:
        yield client


def log_in(browser: TestClient, **fields: str) -> int:
    """Send the form; the status."""
    return browser.post("/login", data=fields, headers=HERE).status_code


def test_a_browser_is_led_to_the_login_and_a_program_is_told(browser: TestClient) -> None:
    """Who names HTML gets a page; whoever takes anything the problem document as before."""
    answer = browser.get("/?min.car=1")
    assert (answer.status_code, answer.headers["location"]) == (303, "/login?next=/%3Fmin.car%3D1")
    refused = browser.get("/", headers={"Accept": "*/*"})
    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
    assert refused.json()["title"] == "NotAuthenticated"
    part = browser.get("/gallery", headers={"HX-Request": "true"})
    assert (part.status_code, part.headers["hx-redirect"]) == (401, "/login")


def test_a_password_begins_a_session_and_logging_out_ends_it(
    browser: TestClient, records: RecordStore
) -> None:
    """The cookie is out of reach of scripts and other sites; after the end it opens nothing."""
    answer = browser.post(
        "/login", data={"name": "root", "password": PASSWORD, "next": "/?has.car=1"}, headers=HERE
    )
    assert (answer.status_code, answer.headers["location"]) == (303, "/?has.car=1")
    cookie = answer.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=lax", "Path=/"} <= set(cookie.split("; "))
    token = browser.cookies["framesift"]
    assert "Log out" in browser.get("/").text
    assert browser.get("/v1/me").status_code == 401  # the cookie is for pages alone
    assert browser.post("/logout", headers=HERE).headers["location"] == "/login"
    browser.cookies.set("framesift", token)
    assert browser.get("/").status_code == 303
    assert {entry.what for entry in audit_log.entries(records, limit=5)} >= {"login"}


def test_the_cookie_is_secure_under_tls(home: Path) -> None:
    """And stands for one port alone."""
    app = create_app(Settings(home=home, cache=None))
    base = "https://testserver:8443"
    with TestClient(app, base_url=base, follow_redirects=False, headers=HTML) as browser:
        answer = browser.post(
            "/login", data={"name": "root", "password": PASSWORD}, headers={"Origin": base}
        )
        assert "Secure" in answer.headers["set-cookie"].split("; ")
        assert answer.headers["set-cookie"].startswith("framesift-8443=fs_")


def test_a_pasted_token_is_the_session(browser: TestClient, records: RecordStore) -> None:
    """Revoked it ends at once; logging out leaves it to the programs that have it."""
    token, text = tokens.create(records, "rita", "t", "read", timedelta(days=1))
    assert log_in(browser, token="fs_wrong") == 401
    assert log_in(browser, token=text) == 303
    assert browser.get("/").status_code == 200
    browser.post("/logout", headers=HERE)
    assert tokens.holder(records, text) is not None
    assert log_in(browser, token=text) == 303
    tokens.revoke(records, token.id)
    fresh = TestClient(browser.app, follow_redirects=False, headers=HTML)
    with fresh:
        fresh.cookies.set("framesift", text)
        assert fresh.get("/").status_code == 303


def test_a_link_logs_in_once(browser: TestClient, records: RecordStore) -> None:
    """To look at it takes nothing from it; it is no token."""
    made = login_links.new_link(records)
    assert made is not None
    link, user = made
    assert user == "root"
    for _ in range(2):
        assert link in browser.get("/login", params={"link": link}).text
    bearer = {"Authorization": f"Bearer {link}", "Accept": "*/*"}
    assert browser.get("/v1/me", headers=bearer).status_code == 401
    assert log_in(browser, link=link) == 303
    assert "root" in browser.get("/").text
    assert log_in(browser, link=link) == 401
    assert log_in(browser, link=browser.cookies["framesift"]) == 401


def test_a_link_of_a_user_who_is_disabled_logs_nobody_in(
    browser: TestClient, records: RecordStore
) -> None:
    """The page says so, among the other reasons."""
    made = login_links.new_link(records)
    assert made is not None
    users.add(records, "other", ["admin"], None)  # one admin stays
    users.change(records, made[1], disabled=True)
    refused = browser.post("/login", data={"link": made[0]}, headers=HERE)
    users.change(records, made[1], disabled=False)
    users.remove(records, "other")
    assert refused.status_code == 401
    assert "its user was disabled or removed" in refused.text


@pytest.mark.parametrize(
    "headers",
    [
        {}, {"Origin": "null"}, {"Origin": "http://evil.example"}, {"Origin": "http://["},
        {"Origin": "http://testserver:81"}, {"Origin": "http://testserver.evil.example"},
        {"Sec-Fetch-Site": "cross-site", "Origin": "http://testserver"},
        {"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": "none"},
    ],
)  # fmt: skip
def test_other_sites_change_nothing(browser: TestClient, headers: dict[str, str]) -> None:
    """No login by force, and no logout."""
    answer = browser.post("/login", data={"name": "root", "password": PASSWORD}, headers=headers)
    assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)
    log_in(browser, name="root", password=PASSWORD)
    assert browser.post("/logout", headers=headers).status_code == 403
    assert browser.get("/jobs").status_code == 200


@pytest.mark.parametrize(
    "wanted", ["//evil.example", "/\\evil.example", "https://evil.example", "/a\r\nSet-Cookie: x=y"]
)
def test_a_login_leads_to_no_other_server(browser: TestClient, wanted: str) -> None:
    """Whatever the link to it says."""
    answer = browser.post(
        "/login", data={"name": "root", "password": PASSWORD, "next": wanted}, headers=HERE
    )
    assert answer.headers["location"] == "/"


def test_pages_hold_no_script_and_no_style_of_their_own(browser: TestClient) -> None:
    """What the policy forbids; and every file that a page names is there, to be kept."""
    log_in(browser, name="root", password=PASSWORD)
    answer = browser.get("/?where=%3Cscript%3Ealert(1)%3C%2Fscript%3E")
    assert "<script>alert" not in answer.text
    for answer in (browser.get("/"), browser.get("/login")):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert not re.search(r"<style|style=|<script(?! src=)|\son\w+=|javascript:", answer.text)
        for path in re.findall(r'(?:src|href)="(/static/[^"]+)"', answer.text):
            file = browser.get(path)
            assert (file.status_code, "immutable" in file.headers["cache-control"]) == (200, True)


def test_an_error_is_a_page_for_browsers(browser: TestClient) -> None:
    """With what is wrong; a part of a page gets a part."""
    log_in(browser, name="root", password=PASSWORD)
    answer = browser.get("/?nonsense=1")
    assert (answer.status_code, answer.headers["content-type"]) == (400, "text/html; charset=utf-8")
    assert "nonsense: no parameter of this page" in answer.text
    part = browser.get("/?min.car=x", headers={"HX-Request": "true"})
    assert (part.status_code, part.text.startswith("<p")) == (400, True)
    assert browser.get("/?nonsense=1", headers={"Accept": "*/*"}).json()["status"] == 400


def test_a_server_on_a_terminal_prints_a_link(catalogued: Path, tmp_path: Path) -> None:
    """By itself, in one line; to a pipe, or told not to, it prints none."""
    home = copy_home(catalogued, tmp_path)
    users.add(RecordStore(home / "records" / "records.sqlite"), "root", ["admin"], None)

    def printed(*arguments: str) -> str:
        """What the server has printed when it answers."""
        ours, theirs = pty.openpty()
        server = Forked(["serve", "--port", "0", *arguments], environment(home), stdout=theirs)
        os.close(theirs)
        text = ""
        with suppress(OSError):  # of a terminal whose other end is closed
            while part := os.read(ours, 4096):
                text += part.decode()
                if url := re.search(r" on (http://[\d.:]+)\s", text):
                    httpx.get(f"{url[1]}/healthz", timeout=300)
                    server.terminate()
        server.wait(timeout=300)
        os.close(ours)
        return text

    assert re.search(r"http://127.0.0.1:\d+/login\?link=fl_[\w-]{43}\s", printed())
    assert "login?link" not in printed("--no-login-link")
    with serving(home, authenticates=True) as (_, process):
        process.terminate()
        assert process.stdout is not None
        assert "login?link" not in process.stdout.read()
