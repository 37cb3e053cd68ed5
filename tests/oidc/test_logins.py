"""Users log in by a provider, and become users of the home with the rights of their groups."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from api.settings import Settings
from api.workspace import Workspace
from catalog.accounts import audit_log, row_collections, users
from catalog.accounts.provider_users import LEAST_ROLE
from catalog.errors import InvalidInput
from catalog.records.store import RecordStore
from tests.api.servers import serving, wait_until
from tests.oidc import providers
from tests.oidc.issuer import AUDIENCE
from tests.oidc.providers import CLIENT_ID, SECRET, TABLE, Running, free_port

PASSWORD = "a sentence is a good one"


@dataclass(frozen=True)
class Served:
    """A server whose users log in by a provider."""

    url: str
    records: RecordStore
    provider: Running
    home: Path

    @contextmanager
    def browser(self) -> Iterator[httpx.Client]:
        """A browser without a past; it follows no redirect by itself."""
        with httpx.Client() as client:
            yield client

    def begin(self, browser: httpx.Client, target: str = "/datasets") -> str:
        """URL of the provider's page that a login leads to."""
        answer = browser.get(f"{self.url}/login/oidc", params={"next": target})
        assert answer.status_code == 303, answer.text
        return answer.headers["location"]

    def log_in(self, browser: httpx.Client, name: str, target: str = "/datasets") -> httpx.Response:
        """The answer to the browser that the provider sends back."""
        return browser.get(self.provider.log_in(browser, self.begin(browser, target), name))

    def collections_of(self, name: str) -> set[str]:
        """Those whose rows a user reads."""
        listed = row_collections.listed(self.records)
        return {collection.name for collection, names in listed if name in names}


@contextmanager
def served(kind: str, home: Path) -> Iterator[Served]:
    """A home with an admin and two collections, its server, and a provider of a kind."""
    records = Workspace(Settings(home=home)).records
    users.add(records, "root", ["admin"], PASSWORD)
    for name in ("munich", "src"):
        row_collections.add(records, name, "datasource = 'a2d2'")
    port, table, secret = free_port(), home / "groups.toml", home / "client-secret"
    table.write_text(TABLE)
    secret.write_text(f"{SECRET}\n")
    url = f"http://127.0.0.1:{port}"
    with providers.mock() if kind == "mock" else providers.npm(url) as provider:
        variables = {
            "FRAMESIFT_OIDC_ISSUER": provider.url,
            "FRAMESIFT_OIDC_CLIENT_ID": CLIENT_ID,
            "FRAMESIFT_OIDC_CLIENT_SECRET_FILE": str(secret),
            "FRAMESIFT_OIDC_GROUPS": str(table),
            "FRAMESIFT_OIDC_AUDIENCE": AUDIENCE,
            "FRAMESIFT_OIDC_TITLE": "Our company",
        }
        with serving(home, "--port", str(port), variables=variables, authenticates=True) as (
            _,
            process,
        ):
            yield Served(url, records, provider, home)
            process.terminate()
            out, err = process.communicate(timeout=300)
    assert SECRET not in out + err
    assert "Traceback" not in err


@pytest.fixture(scope="module", params=["mock", pytest.param("npm", marks=pytest.mark.wide)])
def team(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """A server by each provider, for all tests of this file."""
    with served(request.param, tmp_path_factory.mktemp("team") / "home") as made:
        yield made


def test_a_user_is_made_at_the_first_login_and_logs_out(team: Served) -> None:
    """A session as after a password, an entry in the audit log, a way out here and there."""
    with team.browser() as browser:
        page = browser.get(f"{team.url}/login?next=/datasets").text
        assert "Log in by Our company" in page
        assert SECRET not in page
        asked = parse_qs(urlsplit(team.begin(browser)).query)
        assert asked["code_challenge_method"] == ["S256"]
        assert asked["redirect_uri"] == [f"{team.url}/login/oidc/callback"]
        answer = team.log_in(browser, "anna", "/datasets?page=2")
        assert (answer.status_code, answer.headers["location"]) == (303, "/datasets?page=2")
        assert browser.get(f"{team.url}/datasets").status_code == 200
        user = users.recorded(team.records, "anna")
        assert (user.roles, user.password, user.issuer) == (["dataadmin"], "", team.provider.url)
        entry = audit_log.entries(team.records, user="anna", limit=1)[0]
        assert (entry.what, entry.outcome) == ("login", "303")
        assert entry.note == "user anna made: roles dataadmin; no collections"
        assert "code" not in entry.target
        # No part of the session is the provider's, and the API takes no cookie.
        assert browser.get(f"{team.url}/v1/me").status_code == 401
        out = browser.post(f"{team.url}/logout", headers={"Origin": team.url})
        assert out.headers["location"] == "/login?left=1"
        left = browser.get(f"{team.url}/login?left=1").text
        assert "Log out of Our company, too" in left
        assert f'href="{team.provider.url}/' in left
        assert browser.get(f"{team.url}/datasets").status_code in (303, 401)
    with team.browser() as again:
        assert team.log_in(again, "anna").status_code == 303
    assert len([user for user in users.listed(team.records) if user.name == "anna"]) == 1


def test_a_new_table_of_groups_counts_without_a_restart(team: Served) -> None:
    """A group that had no rights has some from a while after the file has them."""
    table = team.home / "groups.toml"
    with team.browser() as browser:
        assert team.log_in(browser, "otto").status_code == 403
    try:
        more = '[[groups]]\ngroup = "canteen"\nroles = ["datauser"]\n'
        (team.home / "groups.new").write_text(TABLE + more)
        (team.home / "groups.new").replace(table)

        def let_in() -> bool:
            with team.browser() as browser:
                return team.log_in(browser, "otto").status_code == 303

        wait_until(let_in)
    finally:
        table.write_text(TABLE)

    def refused() -> bool:
        with team.browser() as browser:
            return team.log_in(browser, "otto").status_code == 403

    wait_until(refused)
    users.remove(team.records, "otto")


def test_groups_give_roles_and_collections(team: Served) -> None:
    """Those of the table; a user without such a group is no user."""
    with team.browser() as browser:
        assert team.log_in(browser, "marta").status_code == 303
    assert users.recorded(team.records, "marta").roles == ["collectionadmin"]
    assert team.collections_of("marta") == {"munich"}
    with team.browser() as browser:
        assert team.log_in(browser, "ines").status_code == 303
    assert users.recorded(team.records, "ines").roles == ["admin", "dataadmin"]
    with team.browser() as browser:
        answer = team.log_in(browser, "otto")
        assert answer.status_code == 403
        assert "none of your groups has rights" in answer.text
        assert not [name for name in browser.cookies if "oidc" not in name and "frame" in name]
    assert "otto" not in {user.name for user in users.listed(team.records)}


def test_a_login_is_of_the_browser_that_began_it(team: Served) -> None:
    """Without its cookie, with another's, with another state, and a second time it is refused."""
    with team.browser() as victim, team.browser() as attacker:
        back = team.provider.log_in(attacker, team.begin(attacker), "anna")
        assert victim.get(back).status_code == 401
        team.begin(victim)
        answer = victim.get(back)
        assert answer.status_code == 401
        assert "began no such login" in answer.text
        assert victim.get(f"{team.url}/datasets").status_code in (303, 401)
        # Its own browser is let in once.
        kept = [cookie for cookie in attacker.cookies.jar if cookie.name.endswith("-oidc")]
        assert len(kept) == 1
        assert attacker.get(back).status_code == 303
        assert not [cookie for cookie in attacker.cookies.jar if cookie.name.endswith("-oidc")]
        assert attacker.get(back).status_code == 401
        attacker.cookies.jar.set_cookie(kept[0])
        answer = attacker.get(back)
        assert answer.status_code == 401
        assert "the code any more" in answer.text
    with team.browser() as browser:
        team.begin(browser)
        for query in ({}, {"state": "x", "code": "y"}, {"error": "access_denied"}):
            team.begin(browser)
            answer = browser.get(f"{team.url}/login/oidc/callback", params=query)
            assert answer.status_code == 401


@pytest.mark.parametrize("target", ["//evil.example.com", "https://evil.example.com", "/\\evil"])
def test_a_login_leads_to_own_paths(team: Served, target: str) -> None:
    """Whatever next says."""
    with team.browser() as browser:
        assert team.log_in(browser, "anna", target).headers["location"] == "/"


def test_users_of_the_home_stay_their_own(team: Served) -> None:
    """No password for a provider's user; a password logs in beside the provider."""
    with team.browser() as browser:
        team.log_in(browser, "anna")
        with pytest.raises(InvalidInput, match="has no password here"):
            users.change(team.records, "anna", password=PASSWORD)
    users.add(team.records, "second", ["admin"], None)
    with pytest.raises(InvalidInput, match="last admin with a password"):
        users.change(team.records, "root", disabled=True)
    users.remove(team.records, "second")
    with team.browser() as browser:
        form = {"name": "root", "password": PASSWORD}
        answer = browser.post(f"{team.url}/login", data=form, headers={"Origin": team.url})
        assert answer.status_code == 303
        assert browser.get(f"{team.url}/operate/users").status_code == 200


def test_a_disabled_user_and_a_taken_name_are_refused(team: Served) -> None:
    """The provider opens no account that an admin closed, nor one that is another's."""
    with team.browser() as browser:
        team.log_in(browser, "ines")
        users.change(team.records, "ines", disabled=True)
        assert team.log_in(browser, "ines").status_code == 403
        users.remove(team.records, "ines")
        users.add(team.records, "ines", ["datauser"], PASSWORD)
        answer = team.log_in(browser, "ines")
        assert answer.status_code == 403
        assert "is not the provider" in answer.text
    assert users.recorded(team.records, "ines").subject is None
    users.remove(team.records, "ines")


def test_groups_that_change_count_from_the_next_login_on(tmp_path: Path) -> None:
    """Roles and the table's collections follow; others stay; without any group little is left."""
    with served("mock", tmp_path / "home") as team, team.browser() as browser:

        def join(*groups: str) -> httpx.Response:
            claims = {"preferred_username": "renamed", "groups": [*groups]}
            httpx.put(f"{team.provider.url}/users/id-of-marta", json=claims)
            return team.log_in(browser, "marta")

        team.log_in(browser, "marta")
        row_collections.add(team.records, "mine", "datasource = 'a2d2'")
        row_collections.assign(team.records, "mine", "marta")
        assert team.collections_of("marta") == {"munich", "mine"}
        assert join("src").status_code == 303
        assert users.recorded(team.records, "marta").roles == ["datauser"]
        assert team.collections_of("marta") == {"src", "mine"}
        assert join("perception").status_code == 303
        assert browser.get(f"{team.url}/datasets").status_code == 200
        assert join("canteen").status_code == 403
        assert users.recorded(team.records, "marta").roles == [LEAST_ROLE]
        assert team.collections_of("marta") == {"mine"}
        assert browser.get(f"{team.url}/datasets").status_code in (303, 401)


def test_without_the_provider_the_rest_goes_on(tmp_path: Path) -> None:
    """The login page says that it is away; sessions and passwords work."""
    home = tmp_path / "home"
    records = Workspace(Settings(home=home)).records
    users.add(records, "root", ["admin"], PASSWORD)
    table = home / "groups.toml"
    table.write_text(TABLE)
    variables = {
        "FRAMESIFT_OIDC_ISSUER": f"http://127.0.0.1:{free_port()}",
        "FRAMESIFT_OIDC_CLIENT_ID": CLIENT_ID,
        "FRAMESIFT_OIDC_GROUPS": str(table),
        "FRAMESIFT_OIDC_AUDIENCE": AUDIENCE,
    }
    with (
        serving(home, variables=variables, authenticates=True) as (url, _),
        httpx.Client(base_url=url) as browser,
    ):
        page = browser.get("/login")
        assert page.status_code == 200
        assert "cannot log you in now" in page.text
        assert "does not answer" in page.text
        answer = browser.get("/login/oidc")
        assert (answer.status_code, "Set-Cookie" in answer.headers) == (503, False)
        form = {"name": "root", "password": PASSWORD}
        assert browser.post("/login", data=form, headers={"Origin": url}).status_code == 303
        assert browser.get("/datasets").status_code == 200
        token = {"Authorization": "Bearer a.b.c"}
        assert browser.get("/v1/me", headers=token).status_code == 401


@pytest.mark.wide
def test_a_program_asks_with_an_access_token(tmp_path: Path) -> None:
    """That the certified provider made for our audience; its ID tokens and others' are refused."""
    with served("npm", tmp_path / "home") as team, team.browser() as browser:
        issuer = team.provider.url

        def token(**form: str) -> str:
            fields = {"grant_type": "client_credentials"} | form
            answer = httpx.post(
                f"{issuer}/token", data=fields, auth=("loader", "of%20the%20loader")
            )
            return cast("str", answer.json()["access_token"])

        def ask(text: str, method: str = "GET", path: str = "/v1/me", **more: object) -> int:
            headers = {"Authorization": f"Bearer {text}"}
            answer = browser.request(method, team.url + path, headers=headers, **more)  # type: ignore[arg-type]
            return answer.status_code

        good = token()
        me = browser.get(f"{team.url}/v1/me", headers={"Authorization": f"Bearer {good}"}).json()
        assert (me["name"], me["roles"], me["level"]) == ("loader", ["dataadmin"], "write")
        entry = audit_log.entries(team.records, user="loader", limit=1)[0]
        assert (entry.what, entry.note) == (
            "login", "user loader made: roles dataadmin; no collections"
        )  # fmt: skip
        new = {"name": "x", "scope": "read", "days": 1}
        assert ask(good, "POST", "/v1/tokens", json=new) == 403
        assert ask(good, "GET", "/v1/users") == 403
        assert ask(token(resource="https://other.example.com")) == 401
        assert ask(good[:-6] + "AAAAAA") == 401
        users.change(team.records, "loader", disabled=True)
        assert ask(token()) == 403


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"oidc_client_id": "x"}, "FRAMESIFT_OIDC_CLIENT_ID: set FRAMESIFT_OIDC_ISSUER"),
        ({"oidc_issuer": "http://id.example.com"}, "expected https://HOST/PATH"),
        ({"oidc_issuer": "https://id.example.com"}, "set FRAMESIFT_OIDC_CLIENT_ID"),
        ({"oidc_scopes": "profile"}, "expected openid"),
        ({"oidc_client_secret": "x", "oidc_client_secret_file": "y"}, "give one of them"),
        ({"oidc_client_secret_file": "/missing"}, "cannot be read"),
        ({"oidc_ca_bundle": "/missing"}, "No such file"),
        ({"groups": ""}, "expected [[groups]]"),
        ({"groups": "group = ["}, "FRAMESIFT_OIDC_GROUPS="),
        ({"groups": '[[groups]]\ngroup = "x"\nroles = ["boss"]'}, "expected one or more of admin"),
        ({"groups": '[[groups]]\ngroup = "x"\nroles = []'}, "expected one or more of admin"),
        ({"groups": '[[groups]]\ngroup = "x"\nrole = "admin"'}, "group 1: expected [[groups]]"),
        ({"groups": '[[groups]]\nroles = ["admin"]'}, "group 1: expected [[groups]]"),
        (
            {"groups": '[[groups]]\ngroup = "x"\nroles = ["admin"]\ncollections = ["a b"]'},
            "expected a list of names",
        ),
    ],
)
def test_settings_that_are_wrong(tmp_path: Path, settings: dict[str, str], why: str) -> None:
    """Each is said in one line, before a server starts."""
    from api.services.accounts.configured_logins import configured_logins

    table = tmp_path / "groups.toml"
    table.write_text(settings.pop("groups", TABLE))
    whole = {
        "oidc_issuer": "https://id.example.com", "oidc_client_id": "x", "oidc_groups": str(table),
    }  # fmt: skip
    alone = len(settings) == 1 and set(settings) <= {"oidc_client_id", "oidc_issuer"}
    made = Settings(**(settings if alone else whole | settings))
    with pytest.raises(InvalidInput) as caught:
        configured_logins(made, authenticates=True)
    assert why in str(caught.value)
    table.write_text(TABLE)
    right = Settings(**whole)
    assert configured_logins(right, authenticates=True) is not None
    with pytest.raises(InvalidInput, match="--no-auth"):
        configured_logins(right, authenticates=False)
