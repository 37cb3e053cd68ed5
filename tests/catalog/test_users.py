"""Users, tokens, throttled logins, collections and the audit log, on both databases."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import delete, select, text, update

from catalog.accounts import (
    audit_log,
    login_throttle,
    row_collections,
    tokens,
    users,
)
from catalog.errors import (
    AlreadyExists,
    FramesiftError,
    InvalidInput,
    LoginThrottled,
    NotFound,
    UnknownName,
)
from catalog.records.automation.tables import Trigger, Webhook
from catalog.records.jobs import recorded_jobs
from catalog.records.policy_tables import Policy
from catalog.records.question_tables import QuestionLook, SavedQuestion
from catalog.records.store import RecordStore
from catalog.records.tables import Base, Dataset, Job
from catalog.records.user_tables import AuditEntry, LoginFailure, Token, User
from catalog.storage.postgres import Postgres
from catalog.values import COMMAND, now
from tests.pipeline.homes import REPOSITORY
from tests.postgres_server import postgres

PASSWORD = "a sentence is a good one"
DAY = timedelta(days=1)
OWNED = (Dataset, Policy, SavedQuestion, Trigger, Webhook)
"""What has an owner."""


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.wide)])
def records(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RecordStore]:
    """An empty database."""
    location: Path | Postgres = tmp_path / "records.sqlite"
    if request.param == "postgres":
        location = postgres().new()
    store = RecordStore(location)
    yield store
    store.engine.dispose()


def everything(records: RecordStore) -> str:
    """All that the tables of users hold, as text."""
    with records.reading() as session:
        return " ".join(
            str(row)
            for table in ("users", "tokens", "login_failures", "audit")
            for row in session.execute(text(f"SELECT * FROM {table}"))
        )


def test_a_password_is_kept_as_argon2id_only(records: RecordStore) -> None:
    """The right one opens the account; wrong ones, unknown names and no password do not."""
    users.add(records, "anna", ["datauser"], PASSWORD)
    users.add(records, "robot", ["datauser"], None)
    user = users.with_password(records, "anna", PASSWORD)
    assert user is not None
    assert user.name == "anna"
    assert user.password.startswith("$argon2id$v=19$")
    assert PASSWORD not in everything(records)
    for name, password in (
        ("anna", PASSWORD + " "),
        ("anna", ""),
        ("anna", user.password),
        ("Anna", PASSWORD),
        ("robot", ""),
        ("robot", PASSWORD),
        ("nobody", "nobody has this password"),
        ("anna' or '1'='1", PASSWORD),
        ("\0", "\0"),
    ):
        assert users.with_password(records, name, password) is None, name
    users.change(records, "anna", disabled=True)
    assert users.with_password(records, "anna", PASSWORD) is None


@pytest.mark.parametrize("name", ["", "a b", "a/b", "a:b", "-a", "ä", "a\n", "a" * 129, "a\0", "*"])
def test_names_that_cannot_be_used(tmp_path: Path, name: str) -> None:
    """Those that would mean something else in a URL, a header or a log."""
    records = RecordStore(tmp_path / "records.sqlite")
    with pytest.raises(InvalidInput, match="name"):
        users.add(records, name, ["datauser"], None)
    with pytest.raises(InvalidInput, match="collection name"):
        row_collections.add(records, name, "size > 0")


def test_users_are_checked(records: RecordStore) -> None:
    """Short passwords, unknown and missing roles, a name that is taken; roles in their order."""
    with pytest.raises(InvalidInput, match="11 characters: expected 12"):
        users.add(records, "anna", ["datauser"], "x" * 11)
    with pytest.raises(UnknownName, match="dataadmin"):
        users.add(records, "anna", ["dataadmn"], PASSWORD)
    with pytest.raises(InvalidInput, match="no role"):
        users.add(records, "anna", [], PASSWORD)
    assert users.listed(records) == []
    user = users.add(records, "anna", ["datauser", "admin", "datauser"], None)
    assert user.roles == ["admin", "datauser"]
    with pytest.raises(AlreadyExists, match="user 'anna'"):
        users.add(records, "anna", ["admin"], None)
    changes: list[Callable[[], object]] = [
        lambda: users.change(records, "otto", password=PASSWORD),
        lambda: users.change(records, "otto", roles=["admin"]),
        lambda: users.change(records, "otto", disabled=True),
        lambda: users.remove(records, "otto"),
    ]
    for change in changes:
        with pytest.raises(NotFound, match="no user named 'otto'"):
            change()


def test_an_admin_is_always_left(records: RecordStore) -> None:
    """The last one cannot be removed, refused or stripped of the role; others can."""
    users.add(records, "otto", ["datauser"], None)
    users.remove(records, "otto")  # there was no admin before either
    users.add(records, "anna", ["admin"], None)
    users.add(records, "berta", ["admin"], None)
    users.change(records, "berta", disabled=True)
    changes: list[Callable[[], object]] = [
        lambda: users.remove(records, "anna"),
        lambda: users.change(records, "anna", disabled=True),
        lambda: users.change(records, "anna", roles=["dataadmin"]),
    ]
    for change in changes:
        with pytest.raises(InvalidInput, match="'anna' is the last admin"):
            change()
    record = users.recorded(records, "anna")
    assert (record.roles, record.disabled) == (["admin"], False)
    users.change(records, "berta", disabled=False)
    users.remove(records, "anna")
    assert [user.name for user in users.listed(records)] == ["berta"]


def test_a_token_counts_until_it_does_not(records: RecordStore) -> None:
    """Kept as a hash; refused when revoked, expired, of a disabled user, or changed by a letter."""
    users.add(records, "anna", ["admin"], PASSWORD)
    users.add(records, "otto", ["datauser"], PASSWORD)
    token, secret = tokens.create(records, "otto", "notebook", "read", DAY)
    assert secret.startswith("fs_")
    assert len(secret) == 3 + 43  # 256 bits in base64
    assert secret not in everything(records)
    holder = tokens.holder(records, secret)
    assert holder is not None
    assert (holder.user.name, holder.token.scope) == ("otto", "read")
    (listed,) = tokens.listed(records, "otto")
    assert listed[0].last_used is not None
    for other in (secret[:-1], secret + "A", secret.upper(), secret[3:], token.digest, "", "fs_"):
        assert tokens.holder(records, other) is None
    users.change(records, "otto", disabled=True)
    assert tokens.holder(records, secret) is None
    users.change(records, "otto", disabled=False)
    assert tokens.holder(records, secret) is not None
    with records.session() as session:
        session.execute(update(Token).values(expires=now()))
    assert tokens.holder(records, secret) is None
    with records.session() as session:
        session.execute(update(Token).values(expires=now() + DAY))
    tokens.revoke(records, token.id)
    assert tokens.holder(records, secret) is None
    _, other_secret = tokens.create(records, "otto", "other", "read", DAY)
    users.remove(records, "otto")
    assert tokens.holder(records, other_secret) is None
    assert tokens.listed(records) == []


def test_a_later_user_of_the_name_is_no_heir(records: RecordStore) -> None:
    """What a removed user made is nobody's, also when the name is given again; others keep theirs.

    Beside anna is otto, whose rows stay his, and anna-lena, whose name begins alike; and rows of
    the machine's command line, whose user has the name of the removed one, stay as they are.
    """
    users.add(records, "root", ["admin"], None)
    owners = [("machine", "anna", COMMAND)]
    for name in ("anna", "anna-lena", "otto"):
        user = users.add(records, name, ["dataadmin"], None)
        owners.append((name, name, user.account))
    for row, name, account in owners:
        with records.session() as session:
            session.add_all(
                [
                    Dataset(name=row, version=1, content_id="x", question={}, snapshot=1,
                            frames=0, splits={}, class_pixels={}, manifest="m", owner=name,
                            account=account),
                    Policy(name=row, action="AUTOTAG", parameters={}, condition="",
                           schedule="NOW", state="active", owner=name, account=account,
                           updated_by=name),
                    Trigger(name=row, condition="", min_frames=0, quiet_s=60, split="", steps=[],
                            owner=name, account=account, scope="write"),
                    SavedQuestion(name=row, question={}, frames=0, snapshot=0, owner=name,
                                  account=account),
                    Webhook(name=row, url="https://x", states=[], secret="", owner=name,
                            account=account),
                    Job(name=row, kind="run", backend="local", state="done", request={},
                        owner=name, user=name, account=account),
                ]
            )  # fmt: skip
    with records.session() as session:
        number = session.scalars(select(SavedQuestion.id)).first()
        session.add_all(
            QuestionLook(question_id=number, name=name, account=account, frames=1, snapshot=1)
            for _, name, account in owners
            if account != COMMAND
        )
    former = users.recorded(records, "anna").account
    users.remove(records, "anna")
    later = users.add(records, "anna", ["dataadmin"], None)
    assert later.account != former
    with records.reading() as session:
        for kind in OWNED:
            rows = session.execute(select(kind.name, kind.owner).order_by(kind.name)).all()
            expected = {"anna": "", "anna-lena": "anna-lena", "machine": "anna", "otto": "otto"}
            assert {row.name: row.owner for row in rows} == expected
        looks = select(QuestionLook.name).order_by(QuestionLook.name)
        assert session.scalars(looks).all() == ["anna-lena", "otto"]
    assert [job.name for job in recorded_jobs(records, account=former)] == ["anna"]
    assert recorded_jobs(records, account=later.account) == []


def test_every_table_with_an_owner_is_known() -> None:
    """What gets an owner some day has the account, too, and loses the name with its user."""
    owned = {table.name for table in Base.metadata.tables.values() if "owner" in table.columns}
    assert owned == {"jobs", *(kind.__tablename__ for kind in OWNED)}
    assert all("account" in Base.metadata.tables[name].columns for name in owned)


def test_one_user_s_new_password_ends_no_other_s_logins(records: RecordStore) -> None:
    """Nor the user's own tokens with a name; two others are logged in, one with a like name."""
    for name in ("anna", "anna-lena", "otto"):
        users.add(records, name, ["datauser"], PASSWORD)
    texts = {
        name: tokens.log_in(records, users.recorded(records, name))
        for name in ("anna", "anna-lena", "otto")
    }
    _, named = tokens.create(records, "anna", "loader", "read", DAY)
    users.change(records, "anna", password=f"{PASSWORD} and more")
    assert tokens.holder(records, texts["anna"]) is None
    for name in ("anna-lena", "otto"):
        assert tokens.holder(records, texts[name]) is not None
    assert tokens.holder(records, named) is not None


def test_tokens_are_checked(records: RecordStore) -> None:
    """Unknown users and scopes, a name that is taken, too long a life, numbers that are none."""
    users.add(records, "anna", ["admin"], None)
    tokens.create(records, "anna", "a", "read", DAY)
    with pytest.raises(AlreadyExists, match="token 'a'"):
        tokens.create(records, "anna", "a", "read", DAY)
    with pytest.raises(NotFound, match="no user named 'otto'"):
        tokens.create(records, "otto", "a", "read", DAY)
    with pytest.raises(UnknownName, match="scope"):
        tokens.create(records, "anna", "b", "root", DAY)
    for lasts in (timedelta(), -DAY, timedelta(days=3651)):
        with pytest.raises(InvalidInput, match="expected 1 to 3650"):
            tokens.create(records, "anna", "b", "read", lasts)
    for number in (0, -1, 77, 2**31, 2**70):
        with pytest.raises(NotFound, match="token"):
            tokens.revoke(records, number)


def test_a_token_is_its_user_s_alone(records: RecordStore) -> None:
    """Two users may give theirs one name; each list has its own; one revoked touches no other."""
    for name in ("anna", "anna2", "otto"):
        users.add(records, name, ["datauser"], None)
    made = [
        tokens.create(records, user, name, "read", DAY)
        for user in ("anna", "anna2", "otto")
        for name in ("notebook", "notebook2")
    ]
    assert [(token.name, user) for token, user in tokens.listed(records, "anna")] == [
        ("notebook", "anna"),
        ("notebook2", "anna"),
    ]
    assert [token.id for token, _ in tokens.listed(records)] == [token.id for token, _ in made]
    revoked, user = tokens.revoke(records, made[1][0].id)
    assert (revoked.name, user) == ("notebook2", "anna")
    assert tokens.revoke(records, revoked.id)[0].revoked == revoked.revoked  # the first time stays
    alive = [tokens.holder(records, secret) is not None for _, secret in made]
    assert alive == [True, False, True, True, True, True]


def test_who_logs_out_ends_one_login(records: RecordStore) -> None:
    """Neither another login of the user, nor another's, nor a token with a name that was sent."""
    anna, otto = (users.add(records, name, ["datauser"], None) for name in ("anna", "otto"))
    first, second, others = (tokens.log_in(records, user) for user in (anna, anna, otto))
    _, named = tokens.create(records, "anna", "notebook", "read", DAY)
    tokens.log_out(records, first)
    tokens.log_out(records, named)
    assert tokens.holder(records, first) is None
    assert all(tokens.holder(records, text) is not None for text in (second, others, named))


def test_a_login_lasts_an_hour_or_until_the_password_changes(records: RecordStore) -> None:
    """Its token is not listed, goes by itself, and ends with the password."""
    user = users.add(records, "anna", ["admin"], PASSWORD)
    first, second = tokens.log_in(records, user), tokens.log_in(records, user)
    holder = tokens.holder(records, first)
    assert holder is not None
    assert timedelta(minutes=59) < holder.token.expires - now() <= timedelta(hours=1)
    assert tokens.listed(records) == []
    _, token_secret = tokens.create(records, "anna", "a", "read", DAY)
    users.change(records, "anna", password=PASSWORD + "!")
    assert tokens.holder(records, first) is tokens.holder(records, second) is None
    assert tokens.holder(records, token_secret) is not None
    with records.session() as session:
        tokens_before = len(session.scalars(select(Token)).all())
        session.execute(update(Token).values(expires=now() - 2 * DAY))
    assert tokens_before == 1
    tokens.log_in(records, user)
    tokens.log_in(records, user)
    with records.session() as session:
        session.execute(update(Token).where(Token.name.is_(None)).values(expires=now() - 2 * DAY))
    tokens.log_in(records, user)
    with records.session() as session:  # the forgotten ones are gone, the named one stays
        assert len(session.scalars(select(Token)).all()) == 2


@pytest.fixture
def standing_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """No time passes between a failure and the question how long it is to be waited."""
    moment = now()
    monkeypatch.setattr(login_throttle, "now", lambda: moment)


def fail(records: RecordStore, name: str, address: str, times: int) -> None:
    """Failed logins, each as soon as it may be."""
    for _ in range(times):
        with records.session() as session:
            session.execute(update(LoginFailure).values(blocked_until=LoginFailure.last))
        login_throttle.begin(records, name, address)


def wait_of(records: RecordStore, name: str, address: str) -> float:
    """How long the next login has to wait [s]."""
    try:
        login_throttle.begin(records, name, address)
    except LoginThrottled as error:
        return error.wait_s
    return 0.0


@pytest.mark.usefixtures("standing_clock")
def test_guessing_gets_slower_and_slower(records: RecordStore) -> None:
    """1 s after 5 failures, doubled each time, a quarter of an hour at most; over a restart."""
    address = "192.0.2.1"
    fail(records, "anna", address, 5)
    assert 0 < wait_of(records, "anna", address) <= 1
    fail(records, "anna", address, 3)
    again = RecordStore(records.location)
    assert 7 < wait_of(again, "anna", address) <= 8
    assert 7 < wait_of(again, "anna", "198.51.100.9") <= 8  # from wherever
    assert wait_of(again, "otto", address) == 0
    again.engine.dispose()
    fail(records, "anna", address, 40)
    assert 890 < wait_of(records, "anna", address) <= 900


@pytest.mark.usefixtures("standing_clock")
def test_many_names_from_one_address(records: RecordStore) -> None:
    """The address is slowed down as well, an IPv6 network as one; logging in hides nothing."""
    for number in range(20):
        login_throttle.begin(records, f"name{number}", f"2001:db8::{number:x}")
        if number == 10:
            login_throttle.begin(records, "mine", "2001:db8::abcd")
            login_throttle.succeeded(records, "mine", "2001:db8::abcd")
    assert wait_of(records, "other", "2001:db8::ffff:1") > 0
    assert wait_of(records, "other", "2001:db8:0:1::1") == 0


@pytest.mark.usefixtures("standing_clock")
def test_nobody_locks_the_admin_out_at_this_machine(records: RecordStore) -> None:
    """Failures elsewhere do not count on loopback; those on loopback wait 30 s at most."""
    fail(records, "admin", "192.0.2.1", 60)
    assert wait_of(records, "admin", "192.0.2.1") > 890
    for address in ("127.0.0.1", "::1", "127.8.9.1"):
        assert wait_of(records, "admin", address) == 0
    fail(records, "admin", "127.0.0.1", 60)
    assert 29 < wait_of(records, "admin", "::1") <= 30
    login_throttle.forget(records, "admin")
    assert wait_of(records, "admin", "127.0.0.1") == 0


def test_a_login_that_succeeds_begins_anew(records: RecordStore) -> None:
    """A few mistakes are forgotten; after a day all are."""
    fail(records, "anna", "192.0.2.1", 4)
    login_throttle.succeeded(records, "anna", "192.0.2.1")
    fail(records, "anna", "192.0.2.1", 4)
    assert wait_of(records, "anna", "192.0.2.1") == 0
    with records.session() as session:
        session.execute(update(LoginFailure).values(last=now() - 2 * DAY))
    assert wait_of(records, "anna", "192.0.2.1") == 0
    with records.session() as session:
        assert max(session.scalars(select(LoginFailure.failures))) == 1


@pytest.mark.usefixtures("standing_clock")
def test_guesses_side_by_side_do_not_slip_through(records: RecordStore) -> None:
    """32 attempts at once: 5 are looked at."""

    def attempt(_number: int) -> bool:
        return wait_of(records, "anna", "127.0.0.1") == 0

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(32))) == 5


def test_odd_names_and_addresses_are_counted(records: RecordStore) -> None:
    """Whatever was sent as a name: counted, and kept as a hash only."""
    for name in ("", "\0", "x" * 100_000, "\udcff", "my password, typed into the wrong field"):
        for address in ("", "192.0.2.1", "testclient", "fe80::1%eth0"):
            login_throttle.begin(records, name, address)
    assert "typed" not in everything(records)


def test_the_audit_log_is_only_added_to(records: RecordStore) -> None:
    """The database itself refuses to change or delete an entry, even all of them."""
    for number in range(5):
        audit_log.add(records, "anna", "POST", f"/v1/x/{number}", "201", request_id=str(number))
    for statement in (
        update(AuditEntry).values(who="otto"),
        delete(AuditEntry).where(AuditEntry.id == 1),
        delete(AuditEntry),
        text("INSERT INTO audit SELECT * FROM audit WHERE id = 1"),
    ):
        with pytest.raises(FramesiftError), records.session() as session:
            session.execute(statement)
    assert [entry.target[-1] for entry in audit_log.entries(records)] == list("43210")


def test_the_audit_log_is_read_page_by_page(records: RecordStore) -> None:
    """Newest first, by user and by outcome; odd texts are kept as far as they fit."""
    for number in range(7):
        audit_log.add(records, "ab"[number % 2], "POST", str(number), str(200 + number % 3))
    pages, before = [], None
    while page := audit_log.entries(records, before=before, limit=3):
        pages.append([entry.target for entry in page])
        before = page[-1].id
    assert pages == [["6", "5", "4"], ["3", "2", "1"], ["0"]]
    assert [entry.target for entry in audit_log.entries(records, user="b")] == ["5", "3", "1"]
    assert [entry.target for entry in audit_log.entries(records, outcome="202")] == ["5", "2"]
    audit_log.add(records, "\udcff\0", "x" * 100, "/" + "y" * 5000, "'; drop table audit; --")
    newest = audit_log.entries(records, limit=1)[0]
    assert (newest.who, len(newest.what), len(newest.target)) == ("?�", 64, 1024)


def test_collections_and_their_users(records: RecordStore) -> None:
    """Assigned and withdrawn, twice without harm; gone with the user, or by themselves."""
    for name in ("anna", "otto"):
        users.add(records, name, ["datauser"], None)
    row_collections.add(records, "munich", "site = 'MUC'")
    with pytest.raises(AlreadyExists):
        row_collections.add(records, "munich", "site = 'x'")
    for name in ("otto", "anna", "anna"):
        row_collections.assign(records, "munich", name)
    collection, members = row_collections.recorded(records, "munich")
    assert (collection.rule, members) == ("site = 'MUC'", ["anna", "otto"])
    row_collections.withdraw(records, "munich", "anna")
    row_collections.withdraw(records, "munich", "anna")
    assert [(c.name, m) for c, m in row_collections.listed(records)] == [("munich", ["otto"])]
    users.remove(records, "otto")
    assert row_collections.recorded(records, "munich")[1] == []
    with pytest.raises(NotFound, match="user"):
        row_collections.assign(records, "munich", "otto")
    with pytest.raises(NotFound, match="collection"):
        row_collections.assign(records, "berlin", "anna")
    row_collections.assign(records, "munich", "anna")
    row_collections.remove(records, "munich")
    assert row_collections.listed(records) == []
    assert users.recorded(records, "anna").name == "anna"


def test_a_collection_s_rule_and_users_are_its_own(records: RecordStore) -> None:
    """Of three collections and three users, two of whose names begin alike, each has its own."""
    for user in ("anna", "anna2", "otto"):
        users.add(records, user, ["datauser"], None)
    for name, rule, members in (
        ("munich", "site = 'MUC'", ["anna"]),
        ("munich2", "site = 'MUC2'", ["anna2"]),
        ("berlin", "site = 'BER'", ["anna", "anna2"]),
    ):
        row_collections.add(records, name, rule)
        for user in members:
            row_collections.assign(records, name, user)
    assert row_collections.rules_of(records, "anna") == ("site = 'BER'", "site = 'MUC'")
    assert row_collections.rules_of(records, "anna2") == ("site = 'BER'", "site = 'MUC2'")
    assert row_collections.rules_of(records, "otto") == ()
    assert [(c.name, m) for c, m in row_collections.listed(records)] == [
        ("berlin", ["anna", "anna2"]),
        ("munich", ["anna"]),
        ("munich2", ["anna2"]),
    ]
    row_collections.withdraw(records, "berlin", "anna")
    assert row_collections.rules_of(records, "anna") == ("site = 'MUC'",)
    assert row_collections.recorded(records, "berlin")[1] == ["anna2"]


def test_one_first_admin(records: RecordStore) -> None:
    """Servers that start at once on an empty home give one token between them, and later none."""
    with ThreadPoolExecutor(4) as pool:
        secrets = [t for t in pool.map(lambda _: tokens.first_token(records), range(4)) if t]
    (secret,) = secrets
    holder = tokens.holder(records, secret)
    assert holder is not None
    assert (holder.user.name, holder.user.roles, holder.token.scope) == (
        "admin",
        ["admin"],
        "admin",
    )
    assert holder.token.expires - now() <= timedelta(days=1)
    assert users.with_password(records, "admin", "") is None
    assert tokens.first_token(records) is None


def test_reading_waits_for_no_writer(records: RecordStore) -> None:
    """While another transaction writes, tokens are looked up, and see what was before."""
    users.add(records, "anna", ["admin"], None)
    _, secret = tokens.create(records, "anna", "a", "read", DAY)
    assert tokens.holder(records, secret) is not None
    with records.session() as session, ThreadPoolExecutor(1) as pool:
        session.execute(update(User).values(disabled=True))
        session.flush()
        assert pool.submit(tokens.holder, records, secret).result(120) is not None
    assert tokens.holder(records, secret) is None


def test_backups_and_copies_know_the_tables_of_users() -> None:
    """Whoever opens records knows all their tables, as backups and copies go by that list."""
    code = (
        "import catalog.records.store\nfrom catalog.records.tables import Base\n"
        "print(*sorted(Base.metadata.tables))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert set(run.stdout.split()) >= {
        "users", "tokens", "collections", "collection_users", "audit", "login_failures",
    }  # fmt: skip
