"""A trusted proxy names the user of pages; nobody else does."""

from pathlib import Path

import httpx
import pytest

from api.settings import Settings
from api.workspace import Workspace
from catalog.accounts import users
from tests.api.servers import framesift, serving

HEADER = "X-Forwarded-User"
PROXIES = {
    "FRAMESIFT_TRUSTED_PROXIES": "127.0.0.1",
    "FRAMESIFT_TRUSTED_USER_HEADER": HEADER,
}
PASSWORD = "a sentence is a good one"


@pytest.fixture
def team(tmp_path: Path) -> Path:
    """A home with users."""
    home = tmp_path / "home"
    records = Workspace(Settings(home=home)).records
    users.add(records, "root", ["admin"], PASSWORD)
    users.add(records, "anna", ["datauser"], None)
    users.add(records, "gone", ["admin"], None)
    users.change(records, "gone", disabled=True)
    return home


def test_a_proxy_names_the_user_of_pages(team: Path) -> None:
    """Pages alone, users that are there, once; before the session's cookie."""
    with (
        serving(team, variables=PROXIES, authenticates=True) as (url, _),
        httpx.Client(base_url=url) as client,
    ):
        anna, html = {HEADER: "anna"}, {"Accept": "text/html"}
        page = client.get("/operate/tokens", headers=anna | html)
        assert page.status_code == 200
        assert "Log out" not in page.text
        assert client.get("/operate/users", headers=anna).status_code == 403
        assert client.get("/operate/users", headers={HEADER: "root"}).status_code == 200
        assert client.get("/login?next=/jobs", headers=anna).headers["location"] == "/jobs"
        # The API takes tokens: a page of another site could ask it through the proxy.
        assert client.get("/v1/me", headers=anna).status_code == 401
        assert client.get("/auth/v1/roles", headers=anna).status_code == 401
        form = {"name": "t", "scope": "read", "days": "1"}
        site = anna | {"Origin": "https://evil.example.com"}
        assert client.post("/operate/tokens", data=form, headers=site).status_code == 403
        for name in ("gone", "nobody", "x" * 300, "anna\xe9"):
            headers = [(HEADER.encode(), name.encode("latin-1"))]
            assert client.get("/operate/tokens", headers=headers).status_code == 403
        twice = [(HEADER, "anna"), (HEADER, "root")]
        assert client.get("/operate/tokens", headers=twice).status_code == 403
        login = {"name": "root", "password": PASSWORD}
        assert client.post("/login", data=login, headers={"Origin": url}).status_code == 303
        assert client.get("/operate/users").status_code == 200
        assert client.get("/operate/users", headers=anna).status_code == 403


def test_others_headers_name_nobody(team: Path) -> None:
    """From an address that is no proxy, whatever X-Forwarded-For says."""
    variables = PROXIES | {"FRAMESIFT_TRUSTED_PROXIES": "10.0.0.1,192.168.0.0/16"}
    with serving(team, variables=variables, authenticates=True) as (url, _):
        for more in ({}, {"X-Forwarded-For": "10.0.0.1"}):
            headers = {HEADER: "root", "Accept": "application/json"} | more
            assert httpx.get(f"{url}/operate/users", headers=headers).status_code == 401


def test_the_header_needs_proxies(team: Path) -> None:
    """Without an address that may send it, everybody could be everybody."""
    for proxies in ({}, {"FRAMESIFT_TRUSTED_PROXIES": "*"}):
        variables = {"FRAMESIFT_TRUSTED_USER_HEADER": HEADER} | proxies
        done = framesift(team, "serve", "--port", "0", variables=variables)
        assert done.returncode == 1
        assert "FRAMESIFT_TRUSTED_PROXIES" in done.stderr


def test_the_header_needs_a_server_that_asks_who_they_are(team: Path) -> None:
    """With --no-auth it would be ignored: the server refuses it, also behind a trusted proxy."""
    for variables in (PROXIES, PROXIES | {"FRAMESIFT_TRUSTED_PROXIES": "10.0.0.1"}):
        done = framesift(team, "serve", "--no-auth", "--port", "0", variables=variables)
        assert done.returncode == 1
        assert f"FRAMESIFT_TRUSTED_USER_HEADER={HEADER} with --no-auth" in done.stderr
        assert len(done.stderr.splitlines()) == 1
