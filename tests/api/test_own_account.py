"""What users do with their own account, and what the audit log says of changes to accounts."""

import base64
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from catalog.accounts import audit_log, tokens, users
from catalog.records.store import RecordStore
from tests.api.servers import framesift, serving

OLD, NEW = "a sentence is a good one", "another sentence is better"


class Served:
    """A server that asks who they are, its records, and a token of each user."""

    def __init__(self, url: str, home: Path) -> None:
        self.url, self.home = url, home
        self.records = RecordStore(home / "records" / "records.sqlite")
        self.tokens: dict[str, str] = {}

    def ask(self, method: str, path: str, user: str, body: Any = None) -> httpx.Response:
        """A request with a user's token."""
        header = {"Authorization": f"Bearer {self.tokens[user]}"}
        answer: httpx.Response = httpx.request(method, self.url + path, headers=header, json=body)
        return answer

    def login(self, name: str, password: str) -> int:
        """The status of a login."""
        pair = base64.b64encode(f"{name}:{password}".encode()).decode()
        header = {"Authorization": f"Basic {pair}"}
        return int(httpx.get(f"{self.url}/auth/v1/token", headers=header).status_code)

    def last(self) -> tuple[str, str, str, str]:
        """Target, outcome, who and note of the newest entry of the audit log."""
        entry = audit_log.entries(self.records, limit=1)[0]
        return entry.target, entry.outcome, entry.who, entry.note


@pytest.fixture(scope="module")
def served(shared_home: Path) -> Iterator[Served]:
    """An admin, and Otto, who sees some rows and may read."""
    with serving(shared_home, authenticates=True) as (url, _):
        server = Served(url, shared_home)
        for name, role, scope in (("root", "admin", "admin"), ("otto", "datauser", "read")):
            users.add(server.records, name, [role], OLD)
            _, server.tokens[name] = tokens.create(
                server.records, name, "t", scope, timedelta(days=1)
            )
        yield server


def test_who_asks(served: Served) -> None:
    """The name, the roles and what they come to."""
    assert served.ask("GET", "/v1/me", "otto").json() == {
        "name": "otto", "roles": ["datauser"], "level": "read", "all_rows": False,
    }  # fmt: skip
    assert httpx.get(f"{served.url}/v1/me").status_code == 401


def test_one_s_own_password(served: Served) -> None:
    """By the old one only; then that one opens nothing, and the log names no password."""
    url_path, logged_in = "/v1/me/password", tokens.log_in(served.records, _user(served, "otto"))
    wrong = served.ask("PUT", url_path, "otto", {"current": "wrong", "password": NEW})
    assert (wrong.status_code, served.login("otto", OLD)) == (403, 200)
    assert served.ask("PUT", url_path, "otto", {"password": NEW}).status_code == 422
    assert served.ask("PATCH", "/v1/users/otto", "otto", {"password": NEW}).status_code == 403
    short = served.ask("PUT", url_path, "otto", {"current": OLD, "password": "x"})
    assert short.status_code == 400
    served.tokens["login"] = logged_in
    assert served.ask("GET", "/v1/me", "login").status_code == 200
    done = served.ask("PUT", url_path, "otto", {"current": OLD, "password": NEW})
    assert (done.status_code, done.content) == (204, b"")
    assert served.last()[:3] == (url_path, "204", "otto")
    assert served.ask("GET", "/v1/me", "login").status_code == 401
    assert (served.login("otto", OLD), served.login("otto", NEW)) == (401, 200)
    assert served.ask("GET", "/v1/me", "otto").status_code == 200
    log = str([vars(entry) for entry in audit_log.entries(served.records, limit=1000)])
    assert OLD not in log
    assert NEW not in log


@pytest.mark.wide
def test_one_s_own_password_by_command(served: Served, tmp_path: Path) -> None:
    """Both are lines of standard input; without a server, and where it asks nobody, nobody is I."""
    users.add(served.records, "hans", ["datauser"], OLD)
    _, token = tokens.create(served.records, "hans", "t", "read", timedelta(days=1))
    passwd = ["user", "passwd", "--password-stdin"]
    there = {"FRAMESIFT_SERVER": served.url, "FRAMESIFT_TOKEN": token}
    wrong = framesift(tmp_path, *passwd, stdin=f"wrong\n{NEW}\n", variables=there)
    assert (wrong.returncode, wrong.stdout, wrong.stderr.count("\n")) == (1, "", 1)
    assert served.login("hans", OLD) == 200
    done = framesift(tmp_path, *passwd, "--json", stdin=f"{OLD}\n{NEW}\n", variables=there)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["name"] == "hans"
    assert (served.login("hans", OLD), served.login("hans", NEW)) == (401, 200)
    here = framesift(served.home, *passwd, stdin=f"{NEW}\n{OLD}\n")
    assert here.stderr.startswith("error: commands on a home act without an account")
    with serving(served.home) as (url, _):
        nobody = framesift(tmp_path, "--server", url, *passwd, stdin=f"{NEW}\n{OLD}\n")
    assert nobody.stderr == "error: this server does not authenticate: name the user\n"


def test_guesses_at_the_password_are_slowed_down(served: Served) -> None:
    """A stolen token does not help to try words."""
    users.add(served.records, "gail", ["datauser"], OLD)
    _, served.tokens["gail"] = tokens.create(served.records, "gail", "t", "read", timedelta(days=1))
    guess = {"current": "wrong", "password": NEW}
    statuses = [served.ask("PUT", "/v1/me/password", "gail", guess).status_code for _ in range(9)]
    assert statuses[:5] == [403] * 5
    assert 429 in statuses[5:]  # after 1, 2, 4 or 8 s: however slow the machine is


def _user(served: Served, name: str) -> Any:
    return users.recorded(served.records, name)


CHANGES: list[tuple[str, str, Any, str]] = [
    ("POST", "/v1/users", {"name": "anna", "roles": ["datauser", "collectionadmin"]},
     "user anna: roles datauser, collectionadmin"),
    ("POST", "/v1/users", {"name": "anna", "roles": ["admin"]}, "user anna: roles admin"),
    ("PATCH", "/v1/users/anna", {"roles": ["dataadmin"], "disabled": True, "password": NEW},
     "user anna: roles dataadmin; disabled; a new password"),
    ("POST", "/v1/tokens", {"name": "n", "user": "anna", "scope": "write", "days": 3},
     "token n of anna: scope write, 3 days"),
    ("POST", "/v1/collections", {"name": "c", "rule": "size > 0"}, "collection c: size > 0"),
    ("POST", "/v1/tags", {"tag": "mood"}, "/v1/tags/mood"),
]  # fmt: skip


def test_the_log_says_what_was_changed(served: Served) -> None:
    """Names, roles, scope and rule; of a refusal what was wanted; and where it is to be found."""
    for method, path, body, note in CHANGES:
        answer = served.ask(method, path, "root", body)
        target, outcome, who, noted = served.last()
        assert (target, outcome, who) == (path, str(answer.status_code), "root"), answer.text
        assert noted == note
        if answer.status_code == 201:
            location = answer.headers["location"]
            if "/tokens" in location:
                token = answer.json()
                assert answer.headers["cache-control"] == "no-store"
                assert token["token"] not in str(served.last())
                served.ask("DELETE", location, "root")
                assert served.last()[3] == "token n of anna: revoked"
            else:
                assert served.ask("GET", location, "root").status_code == 200, location
    entries = served.ask("GET", "/v1/audit?who=root&limit=50", "root").json()["entries"]
    assert "collection c: size > 0" in {entry["note"] for entry in entries}
    told = framesift(served.home, "audit", "--json").stdout
    assert "user anna: roles admin" in told
