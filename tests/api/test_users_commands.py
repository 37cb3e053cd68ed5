"""framesift user, token, collection, audit."""

import json
from pathlib import Path

import pytest

from catalog.accounts import tokens, users
from catalog.records.store import RecordStore
from tests.api.servers import framesift, several
from tests.api.test_command_line import one_error

PASSWORD = "a sentence is a good one"


@pytest.fixture
def records(home: Path) -> RecordStore:
    """Those of the home."""
    return RecordStore(home / "records" / "records.sqlite")


@pytest.mark.wide
def test_users_tokens_and_collections(home: Path, records: RecordStore) -> None:
    """Made, listed, changed and removed, and every change in the audit log."""
    added = framesift(
        home, "user", "add", "anna", "--role", "admin", "--role", "datauser", "--password-stdin",
        stdin=PASSWORD + "\nsecond line\n",
    )  # fmt: skip
    assert (added.returncode, added.stdout) == (0, "added user anna: admin, datauser\n")
    assert users.with_password(records, "anna", PASSWORD) is not None
    commands = [
        ["user", "add", "otto", "--role", "datauser", "--no-password"],
        ["user", "list"],
        ["user", "roles", "otto", "dataadmin", "datauser"],
        ["token", "create", "nightly", "--user", "otto", "--scope", "write", "--days", "30"],
        ["token", "list", "--user", "otto"],
        ["collection", "add", "big", "size > 1000 and datasource = 'a2d2'"],
        ["collection", "assign", "big", "otto"],
        ["collection", "list"],
        ["collection", "assign", "big", "otto", "--undo"],
        ["collection", "remove", "big"],
        ["token", "revoke", "1"],
        ["token", "list"],
        ["user", "disable", "otto"],
        ["user", "disable", "otto", "--undo"],
        ["user", "quota", "otto", "--jobs", "2", "--ranks", "8"],
        ["user", "remove", "otto"],
        ["audit"],
        ["audit", "--outcome", "done", "--limit", "2"],
    ]
    ended = several(home, *[[*command, "--json"] for command in commands])
    outputs = []
    for command, (status, out, err) in zip(commands, ended, strict=True):
        assert (status, err) == (0, ""), command
        outputs.append(json.loads(out))
    assert [user["name"] for user in outputs[1]] == ["anna", "otto"]
    assert [user["has_password"] for user in outputs[1]] == [True, False]
    assert outputs[2]["roles"] == ["dataadmin", "datauser"]
    assert outputs[3]["token"].startswith("fs_")
    assert tokens.holder(records, outputs[3]["token"]) is None  # revoked since
    assert outputs[4][0]["scope"] == "write"
    assert outputs[3]["token"] not in json.dumps(outputs[4])
    assert outputs[6]["users"] == ["otto"]
    assert outputs[7][0]["rule"] == "size > 1000 and datasource = 'a2d2'"
    assert outputs[8]["users"] == []
    assert outputs[11][0]["state"] == "revoked"
    assert (outputs[12]["disabled"], outputs[13]["disabled"]) == (True, False)
    assert (outputs[14]["jobs"], outputs[14]["ranks"]) == (2, 8)
    assert [entry["what"] for entry in reversed(outputs[16])] == [
        "user add", "user add", "user roles", "token create", "collection add",
        "collection assign", "collection assign", "collection remove", "token revoke",
        "user disable", "user disable", "user quota", "user remove",
    ]  # fmt: skip
    assert all(entry["who"].startswith("command line (") for entry in outputs[16])
    assert outputs[16][-4]["target"] == "nightly --user otto --scope write --days 30"
    assert PASSWORD not in json.dumps(outputs)
    assert len(outputs[17]) == 2


def test_tables_for_people(home: Path) -> None:
    """Lists without --json name what there is; a token is printed alone, for $(...)."""
    commands = [
        ["user", "add", "anna", "--role", "admin", "--no-password"],
        ["token", "create", "t", "--user", "anna"],
        ["collection", "add", "c", "size > 1"],
        ["collection", "assign", "c", "anna"],
        ["user", "list"], ["token", "list"], ["collection", "list"], ["audit"],
        ["user", "disable", "anna"],
    ]  # fmt: skip
    ended = several(home, *commands)
    assert [status for status, _, _ in ended] == [0] * 8 + [1]
    assert len(ended[1][1].split()) == 1
    for position, words in (
        (4, ("anna", "admin")),
        (5, ("t", "read", "valid")),
        (6, ("size > 1",)),
    ):
        assert all(word in ended[position][1] for word in words)
    assert "collection assign" in ended[7][1]
    assert "is the last admin" in ended[8][2]


BAD = [
    (["user", "add", "a b", "--role", "admin", "--no-password"], "user name 'a b'"),
    (["user", "add", "anna", "--role", "king", "--no-password"], "unknown role 'king'"),
    (["user", "add", "anna", "--role", "admin"], "--password-stdin"),
    (["user", "passwd", "nobody"], "no user named 'nobody'"),
    (["user", "passwd"], "name the user, or give --server for yours"),
    (["user", "roles", "nobody", "admin"], "no user named 'nobody'"),
    (["user", "disable", "nobody"], "no user named 'nobody'"),
    (["user", "remove", "nobody"], "no user named 'nobody'"),
    (["token", "create", "t", "--user", "nobody"], "no user named 'nobody'"),
    (["token", "revoke", "7"], "no token named '7'"),
    (["token", "list", "--user", "nobody"], "no user named 'nobody'"),
    (["collection", "add", "c", "car > 1"], "car is no column of metaocean"),
    (["collection", "add", "c/d", "size > 1"], "collection name 'c/d'"),
    (["collection", "assign", "c", "nobody"], "no collection named 'c'"),
    (["collection", "remove", "c"], "no collection named 'c'"),
]


def test_bad_input_is_one_line(home: Path, records: RecordStore) -> None:
    """What was given and what to do; nothing of it kept."""
    ended = several(home, *[arguments for arguments, _ in BAD])
    for (arguments, words), (status, out, err) in zip(BAD, ended, strict=True):
        assert (status, out) == (1, ""), arguments
        assert err.startswith("error: ")
        assert err.count("\n") == 1
        assert words in err
    assert users.listed(records) == []
    short = framesift(home, "user", "add", "anna", "--role", "admin", "--password-stdin", stdin="x")
    one_error(short, "1 characters: expected 12")
