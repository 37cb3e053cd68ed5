"""Operate's pages, without a browser: what they show to whom, and what their forms do."""

import re
from collections.abc import Iterator
from datetime import timedelta
from html import unescape
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from api.app import create_app
from api.settings import Settings
from api.web.run.scan_figures import SCANNED, scan_figures
from catalog.accounts import tokens, users
from catalog.records.sources import add_source
from catalog.records.store import RecordStore
from catalog.records.tables import Scan, Source
from ingest.scan.scan_counts import ScanCounts

HERE = {"Sec-Fetch-Site": "same-origin", "Accept": "text/html"}
HOSTILE = "<img src=x onerror=alert(1)>"
PAGES = ("", "/scans/1", "/cache", "/snapshots", "/tokens", "/users", "/audit")


@pytest.fixture(scope="module")
def server(shared_home: Path) -> Iterator[TestClient]:
    """A server with users root (admin), dora (dataadmin) and otto (datauser)."""
    records = RecordStore(shared_home / "records" / "records.sqlite")
    for name, role in (("root", "admin"), ("dora", "dataadmin"), ("otto", "datauser")):
        users.add(records, name, [role], None)
    app = create_app(Settings(home=shared_home, cache=shared_home / "cache"), authenticates=True)
    with TestClient(app, follow_redirects=False) as client:
        for name in ("root", "dora", "otto"):
            scope = {"root": "admin", "dora": "write"}.get(name, "read")
            TOKENS[name] = tokens.create(records, name, "tests", scope, timedelta(days=1))[1]
        yield client


TOKENS: dict[str, str] = {}


def ask(server: TestClient, user: str, path: str) -> tuple[int, str]:
    """Status and text of a page, for a user's session."""
    server.cookies.set("framesift", TOKENS[user])
    answer = server.get(f"/operate{path}", headers=HERE)
    assert " style=" not in answer.text
    return answer.status_code, answer.text


def send(server: TestClient, who: str, path: str, **form: str | list[str]) -> tuple[int, str, str]:
    """Status, location and text of a form's answer."""
    server.cookies.set("framesift", TOKENS[who])
    answer = server.post(f"/operate{path}", data=form, headers=HERE)
    return answer.status_code, answer.headers.get("location", ""), answer.text


def test_each_page_is_for_those_who_may(server: TestClient) -> None:
    """Admins all, a dataadmin all but users and audit, others their tokens; links say the same."""
    expected = {
        "root": [200] * 7, "dora": [200, 200, 200, 200, 200, 403, 403],
        "otto": [303, 403, 403, 403, 200, 403, 403],
    }  # fmt: skip
    for user, statuses in expected.items():
        assert [ask(server, user, path)[0] for path in PAGES] == statuses, user
        shown = re.findall(r'href="/operate(/\w+)?"', ask(server, user, "/tokens")[1])
        for path, status in zip(PAGES, statuses, strict=True):
            assert (path in shown) == (status == 200) or path in ("", "/scans/1"), (user, path)


def test_sources_scans_and_snapshots_are_shown(server: TestClient) -> None:
    """With the numbers that /v1 has."""
    _, page = ask(server, "dora", "")
    assert 'href="/operate/scans/1"' in page
    assert 'class="state done"' in page
    _, scan = ask(server, "dora", "/scans/1")
    assert "<dt>frames</dt><dd>24</dd>" in scan
    assert re.search(r"<dt>read a second</dt><dd>[\d,]+\.\d MB</dd>", scan)
    assert re.search(r"<dt>read</dt><dd>[\d.]+ [kM]B</dd>", scan)
    assert " per s<" not in scan
    assert ask(server, "dora", "/scans/99")[0] == 404
    assert 'href="/?at=' in ask(server, "dora", "/snapshots")[1]
    assert "No dataset is staged" in ask(server, "dora", "/cache")[1]
    assert send(server, "dora", "/scans", source="none")[0] == 404
    assert send(server, "otto", "/scans", source="a2d2")[0] == 403
    status, _, text = send(server, "dora", "/cache", action="pin", dataset="none")
    assert (status, "none" in text) == (404, True)


def test_every_count_of_a_scan_has_words_and_a_unit() -> None:
    """Those that a scan's record has: none is left out, and none shows its own name."""
    counts = ScanCounts(seconds=2.5, bytes_read=3_000_000, files=1_200, expected_files=3_000)
    named = counts.to_json()
    figures = scan_figures(named)
    assert len(figures) == len(named) == len(SCANNED)
    assert not any("_" in name for name, _ in figures)
    told = dict(figures)
    assert told["read a second"] == "1.2 MB"
    assert told["read"] == "3.0 MB"
    assert told["files a second"] == "480.0"
    assert told["files expected"] == "3,000"
    assert told["took"] == "2.5 s"
    assert told["remaining"] == "3.8 s"
    assert scan_figures({"mb_per_s": None, "files": "many", "strange": 3}) == []


def test_a_source_scanned_long_ago_was_scanned(server: TestClient, shared_home: Path) -> None:
    """Though another had more scans since than the page lists; its newest scan is shown."""
    records = RecordStore(shared_home / "records" / "records.sqlite")
    for name in ("often", "never-yet"):
        add_source(
            records,
            Source(name=name, uri=f"/{name}", platform="local", cluster="b", datasource=name),
        )
    with records.session() as session:
        number = session.query(Source).filter_by(name="often").one().id
        session.add_all(Scan(source_id=number, state="failed", counts={}) for _ in range(60))
    page = ask(server, "dora", "")[1]
    assert page.count('/operate/scans/1"') == 1  # of its source: not among the newest listed
    shown = {
        name: page[page.index(f'sources/{name}">') :].partition("</tr>")[0]
        for name in ("a2d2", "never-yet", "often")
    }
    assert 'class="state done"' in shown["a2d2"]
    assert '/operate/scans/61"' in shown["often"]
    assert [name for name in shown if ">never<" in shown[name]] == ["never-yet"]


def test_tokens_are_made_shown_once_and_revoked(server: TestClient) -> None:
    """Each user their own; its text stands in the one answer."""
    status, _, text = send(server, "root", "/tokens", name="ci", user="dora", scope="read")
    assert status == 200, text
    found = re.search(r'id="made"[^>]*>(fs_[^<]+)<', text)
    assert found
    _, listed = ask(server, "dora", "/tokens")
    assert found[1] not in listed
    (number,) = re.findall(
        r"/operate/tokens/(\d+)/revoke\" hx-post=[^>]*><button[^>]*Revoke ci", listed
    )
    assert send(server, "otto", f"/tokens/{number}/revoke")[0] == 403
    assert send(server, "dora", f"/tokens/{number}/revoke")[:2] == (303, "/operate/tokens")
    assert "revoked" in ask(server, "dora", "/tokens")[1]


def test_the_form_for_a_token_is_shown_to_those_who_may(
    server: TestClient, shared_home: Path
) -> None:
    """Admins, and users who logged in; a token of a user makes none, and the page says so."""
    records = RecordStore(shared_home / "records" / "records.sqlite")
    otto = next(user for user in users.listed(records) if user.name == "otto")
    TOKENS["otto by password"] = tokens.log_in(records, otto)
    for user, status in (("root", 200), ("dora", 403), ("otto", 403), ("otto by password", 200)):
        page = ask(server, user, "/tokens")[1]
        sent = send(server, user, "/tokens", name=f"of-{user.partition(' ')[0]}", scope="read")
        is_shown = "Make the token" in page
        assert (sent[0], is_shown) == (status, status == 200), user
        assert ("a token, which makes no others" in page) != is_shown, user


def test_readers_are_told_who_saves_datasets(server: TestClient) -> None:
    """In the form's place; the form is for those who may send it."""
    for user, may in (("root", True), ("dora", True), ("otto", False)):
        server.cookies.set("framesift", TOKENS[user])
        page = server.get("/new-dataset", headers=HERE)
        assert page.status_code == 200, page.text
        assert ('id="new-dataset"' in page.text) == may, user
        assert ("role collectionadmin, dataadmin or admin" in page.text) != may, user


def test_users_are_added_changed_and_removed(server: TestClient) -> None:
    """By admins; the audit log says so, and hostile names are texts there."""
    assert send(server, "root", "/users", name="zoe", roles="datauser")[:2] == (
        303, "/operate/users",
    )  # fmt: skip
    assert send(server, "dora", "/users", name="eve", roles="admin")[0] == 403
    assert send(server, "root", "/users", name="zoe", roles="king")[0] == 400
    both = {"roles": ["dataadmin", "datauser"]}
    send(server, "root", "/users/change", name="zoe", action="roles", **both)
    send(server, "root", "/users/change", name="zoe", action="disable")
    _, page = ask(server, "root", "/users")
    of_zoe = page[page.index('aria-label="Roles of zoe"') :].partition("</form>")[0]
    ticked = re.findall(r'name="roles" value="(\w+)"( checked)?', of_zoe)
    assert [role for role, is_ticked in ticked if is_ticked] == ["datauser", "dataadmin"]
    assert len(ticked) == 4
    assert "disabled" in page
    assert send(server, "root", "/users/change", name="zoe", action="remove")[0] == 303
    assert "zoe" not in ask(server, "root", "/users")[1]
    assert send(server, "root", "/users/change", name=HOSTILE, action="remove")[0] == 404
    _, audit = ask(server, "root", "/audit")
    assert HOSTILE not in audit
    assert HOSTILE in unescape(audit)
    assert "user zoe: disable" in audit
    assert "zoe" not in ask(server, "root", "/audit?who=dora")[1]
