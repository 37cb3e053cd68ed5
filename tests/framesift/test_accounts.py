"""Users, tokens, collections and the audit log by the client, of a server that asks for tokens."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from api.settings import Settings
from api.workspace import Workspace
from catalog.accounts import users
from framesift import Client, NotAllowed, NotFound, connect, log_in
from tests.api.servers import serving

PASSWORD = "a sentence is a good one"


@dataclass
class Served:
    """A server's URL, and an admin's client."""

    url: str
    admin: Client


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with an admin who is logged in."""
    home = tmp_path_factory.mktemp("home")
    workspace = Workspace(Settings(home=home))
    users.add(workspace.records, "root", ["admin"], PASSWORD)
    workspace.close()
    with serving(home, authenticates=True) as (url, _):
        token = log_in(url, "root", PASSWORD)
        with connect(url, token) as client:
            yield Served(url, client)


def test_users_and_their_tokens(served: Served) -> None:
    """Added, changed, refused, removed; a token's text is shown once."""
    admin = served.admin
    assert admin.me()["name"] == "root"
    assert admin.users.add("anna", ["datauser"], password=PASSWORD)["has_password"]
    assert [user["name"] for user in admin.users] == ["anna", "root"]
    assert admin.users.set("anna", roles=["dataadmin"])["roles"] == ["dataadmin"]
    created = admin.tokens.create("notebook", user="anna", days=2)
    assert "token" not in admin.tokens.get(created["id"])
    with connect(served.url, created["token"]) as anna:
        assert [token["name"] for token in anna.tokens] == ["notebook"]
        with pytest.raises(NotAllowed):
            anna.users.get("root")
    assert admin.tokens.revoke(created["id"])["state"] == "revoked"
    assert admin.users.set("anna", disabled=True)["disabled"]
    admin.users.remove("anna")
    with pytest.raises(NotFound):
        admin.users.get("anna")


def test_one_s_own_password(served: Served) -> None:
    """It takes the one until now; it ends what was logged in with that."""
    admin = served.admin
    admin.users.add("bert", ["datauser"], password=PASSWORD)
    with connect(served.url, log_in(served.url, "bert", PASSWORD)) as bert:
        with pytest.raises(NotAllowed):
            bert.set_own_password("another", "a sentence that is another one")
        bert.set_own_password(PASSWORD, "a sentence that is another one")
    assert log_in(served.url, "bert", "a sentence that is another one")


def test_collections_and_the_audit_log(served: Served) -> None:
    """Assigned and withdrawn; every change is in the log, newest first."""
    admin = served.admin
    admin.users.add("carl", ["datauser"])
    assert admin.collections.add("munich", "datasource = 'a2d2'")["users"] == []
    assert admin.collections.assign("munich", "carl")["users"] == ["carl"]
    assert admin.collections.get("munich")["rule"] == "datasource = 'a2d2'"
    assert admin.collections.withdraw("munich", "carl")["users"] == []
    assert [body["name"] for body in admin.collections] == ["munich"]
    admin.collections.remove("munich")
    newest, before = admin.audit.list(who="root", limit=2)
    assert (newest["what"], newest["target"]) == ("DELETE", "/v1/collections/munich")
    assert before["id"] < newest["id"]
    assert len(list(admin.audit.list(before=newest["id"], limit=1))) == 1
