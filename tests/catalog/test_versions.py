"""Versions of records: a change of one version is made once, whoever else changes it."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from sqlalchemy import select

from catalog.accounts import row_collections, tokens, users
from catalog.errors import CatalogBusy, NotFound, PreconditionFailed
from catalog.policies import policies
from catalog.records.expected_version import ExpectedVersion
from catalog.records.policy_tables import Policy
from catalog.records.sources import add_source, recorded_source, source_to_change
from catalog.records.store import RecordStore
from catalog.records.tables import Source
from catalog.records.user_tables import Token, User
from catalog.records.versions import VersionedRecord
from ingest.scan.change_source import OptionChange, change_options, remove_source
from ingest.scan.move_source import move_source
from ingest.sources.source_options import SourceOptions
from tests.ingest.scene_folders import Home
from tests.postgres_server import postgres

AT_ONCE = 8


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.wide)])
def records(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RecordStore]:
    """Records with a user, a policy, a source and a collection."""
    is_sqlite = request.param == "sqlite"
    store = RecordStore(tmp_path / "records.sqlite" if is_sqlite else postgres().new())
    users.add(store, "ida", ["datauser"], None)
    row_collections.add(store, "munich", "true")
    add_source(store, source("a2d2"))
    policies.add(
        store,
        Policy(
            name="bikes", action="AUTOTAG", parameters={}, condition="", schedule="NOW",
            state="active", owner="", updated_by="",
        ),
    )  # fmt: skip
    yield store
    store.engine.dispose()


def source(name: str) -> Source:
    """A source, not yet kept."""
    return Source(name=name, uri="/x", platform="NFS", cluster="c", datasource=name)


def of(version: str) -> ExpectedVersion:
    """That version and no other."""
    return ExpectedVersion(frozenset([version]))


def set_site(records: RecordStore, site: str, expected: ExpectedVersion) -> None:
    """Change the source."""
    recorded = recorded_source(records, "a2d2")
    with records.session() as session:
        source_to_change(session, recorded, expected).site = site


CHANGES: dict[str, tuple[Callable[[RecordStore], VersionedRecord], Callable[..., object]]] = {
    "user": (
        lambda records: users.recorded(records, "ida"),
        lambda records, number, expected: users.change(
            records, "ida", roles=["datauser", "dataadmin"][: number % 2 + 1],
            disabled=number < AT_ONCE, expected=expected,
        ),
    ),
    "policy": (
        lambda records: policies.recorded(records, "bikes"),
        lambda records, number, expected: policies.change(
            records, "bikes", f"user{number}", {"condition": f"car > {number}"}, expected
        ),
    ),
    "source": (
        lambda records: recorded_source(records, "a2d2"),
        lambda records, number, expected: set_site(records, f"site {number}", expected),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", CHANGES)
def test_exactly_one_of_many_at_once_wins(records: RecordStore, kind: str) -> None:
    """Threads that change one version of a record: one does, the others change nothing."""
    find, change = CHANGES[kind]
    before, ready = find(records).version, Barrier(AT_ONCE)

    def changed(number: int) -> bool:
        ready.wait()
        try:
            change(records, number, of(before))
        except PreconditionFailed:
            return False
        return True

    with ThreadPoolExecutor(AT_ONCE) as pool:
        assert sum(pool.map(changed, range(AT_ONCE))) == 1
    after = find(records).version
    assert after != before
    change(records, AT_ONCE, of(after))
    assert find(records).version not in (before, after)


def test_removal_takes_one_version(records: RecordStore) -> None:
    """And the version of what was removed is not that of another of its name and number."""
    removals: list[tuple[Callable[[], VersionedRecord], Callable[[ExpectedVersion], object]]] = [
        (
            lambda: users.recorded(records, "ida"),
            lambda expected: users.remove(records, "ida", expected),
        ),
        (
            lambda: row_collections.recorded(records, "munich")[0],
            lambda expected: row_collections.remove(records, "munich", expected),
        ),
        (
            lambda: policies.recorded(records, "bikes"),
            lambda expected: policies.remove(records, "bikes", expected),
        ),
    ]
    versions = [find().version for find, _ in removals]
    for version, (find, remove) in zip(versions, removals, strict=True):
        with pytest.raises(PreconditionFailed):
            remove(of("another"))
        assert find().version == version
        remove(of(version))
        for gone in (of(version), ExpectedVersion()):
            with pytest.raises(PreconditionFailed):
                remove(gone)
        with pytest.raises(NotFound):
            find()
    users.add(records, "ida", ["datauser"], None)
    row_collections.add(records, "munich", "true")
    for version, (find, remove) in zip(versions, removals[:2], strict=False):
        with pytest.raises(PreconditionFailed):
            remove(of(version))
        assert find().version != version


def test_what_gives_a_record_another_version(records: RecordStore) -> None:
    """What clients change; not that a token is used, nor what changes nothing."""
    token, text = tokens.create(records, "ida", "t", "read", tokens.LOGIN_LASTS)
    assert tokens.holder(records, text) is not None
    used, _ = tokens.recorded(records, token.id)
    assert used.last_used is not None
    assert used.version == token.version
    revoked, _ = tokens.revoke(records, token.id, of(token.version))
    assert revoked.version != token.version
    with pytest.raises(PreconditionFailed):
        tokens.revoke(records, token.id, of(token.version))

    versions = [row_collections.recorded(records, "munich")[0].version]
    changes: list[Callable[[], object]] = [
        lambda: row_collections.assign(records, "munich", "ida"),
        lambda: row_collections.withdraw(records, "munich", "ida"),
        lambda: row_collections.assign(records, "munich", "ida"),
        lambda: users.remove(records, "ida"),
    ]
    for change in changes:
        change()
        versions.append(row_collections.recorded(records, "munich")[0].version)
    assert len(set(versions)) == len(versions)
    assert row_collections.recorded(records, "munich")[1] == []
    assert set(map(len, versions)) == {32}


def test_a_user_changes_whole_or_not(records: RecordStore) -> None:
    """What one PATCH changes is one transaction: a wrong part leaves all as it was."""
    users.add(records, "anna", ["admin"], None)
    before = users.recorded(records, "anna")
    with pytest.raises(Exception, match="last admin"):
        users.change(records, "anna", roles=["datauser"], password="a sentence of some length")
    after = users.recorded(records, "anna")
    assert (after.version, after.password, after.roles) == (before.version, "", ["admin"])


def test_the_database_itself_compares_versions(records: RecordStore) -> None:
    """An UPDATE of a record that was read before another change is refused, to be tried again."""
    with records.reading() as session:
        old = session.scalars(select(User)).one()
    users.change(records, "ida", disabled=True)
    old.disabled, old.roles = False, ["admin"]
    with pytest.raises(CatalogBusy, match="try again"), records.session() as session:
        session.add(old)
    assert users.recorded(records, "ida").disabled
    with records.reading() as session:
        assert session.scalars(select(Token)).all() == []


def test_a_source_s_rows_stay_where_another_version_is_there(tmp_path: Path) -> None:
    """Move, change and removal of a stale version leave the record and the catalog as they are."""
    home = Home.at(tmp_path / "home")
    current = add_source(home.records, source("a2d2"))
    change_options(home.store, home.records, "a2d2", OptionChange(exclude=["lost+found"]))
    snapshot, stale = home.store.snapshot(), of(current.version)
    folder = tmp_path / "place"
    folder.mkdir()
    for change in (
        lambda: move_source(
            home.store, home.records, "a2d2", str(folder), SourceOptions(), expected=stale
        ),
        lambda: change_options(
            home.store, home.records, "a2d2", OptionChange(part_of="b"), expected=stale
        ),
        lambda: remove_source(home.store, home.records, "a2d2", stale),
    ):
        with pytest.raises(PreconditionFailed, match="source 'a2d2': another version"):
            change()
    recorded = recorded_source(home.records, "a2d2")
    assert (recorded.uri, home.store.snapshot()) == ("/x", snapshot)
    move_source(
        home.store, home.records, "a2d2", str(folder), SourceOptions(),
        change=OptionChange(part_of="b"), expected=of(recorded.version),
    )  # fmt: skip
    moved = recorded_source(home.records, "a2d2")
    options = SourceOptions.from_json(moved.options)
    assert (moved.uri, options.exclude, options.part_of) == (str(folder), ("lost+found",), "b")
    remove_source(home.store, home.records, "a2d2", of(moved.version))
