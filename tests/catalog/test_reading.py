"""The records read without SQLAlchemy are those that RecordStore reads."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from catalog.records import kinds
from catalog.records.home_layout import HomeLayout
from catalog.records.kinds import COLLECTIONS, JOBS, SCANS, SOURCES, USERS, Kind
from catalog.records.paths import PathsJson, PathText
from catalog.records.question_tables import QuestionLook, SavedQuestion
from catalog.records.reading import PATH_COLUMNS, RecordReader, holds, ids_in
from catalog.records.store import RecordStore, class_of
from catalog.records.tables import Base, Dataset, Job, Scan, Source, Task
from catalog.records.tag_definitions import define_class_tags, recorded_class_names
from catalog.records.user_tables import Collection, CollectionUser, Token, User
from catalog.storage.postgres import Postgres
from tests.postgres_server import postgres

KINDS: list[Kind[Any]] = [one for one in vars(kinds).values() if isinstance(one, Kind)]


def _no_store() -> RecordStore:
    raise AssertionError("the store was opened")


def _filled(store: RecordStore, home: Path) -> None:
    """Records with every type of column: dates, JSON with and without paths, null, true, false."""
    moment = datetime.fromisoformat("2026-01-02T03:04:05.000678")
    with store.session() as session:
        for name in ("src", "src-private"):
            source = Source(
                name=name, uri=f"/{name}", platform="NFS", cluster="c", datasource=name, site="ä",
                options={"profile": "p", "exclude": ["*.bak"]}, class_list={"#ff0000": "Car"},
            )  # fmt: skip
            session.add(source)
            session.flush()
            session.add(Scan(source_id=source.id, state="done", finished=moment, counts={"f": 1}))
            session.add(Scan(source_id=source.id, state="running"))
        for version in (1, 2):
            session.add(
                Dataset(
                    name="bikes", version=version, content_id=f"id{version}", question={"a": [1]},
                    snapshot=3, frames=2, splits={"all": 2}, class_pixels={}, seed="12",
                    manifest=str(home / "datasets" / "bikes" / f"v{version}"),
                    removed=moment if version == 1 else None,
                )
            )  # fmt: skip
        session.flush()
        for number, dataset in enumerate((None, 2), 1):
            folder = str(home / "jobs" / f"job{number}")
            job = Job(
                name=f"job{number}", kind="train", backend="local", state="done",
                dataset_id=dataset, is_cancelled=number == 2, started=moment, core_s=1.5,
                request={"stages": [{"commands": [["python", folder]]}], "n": None},
                paths={"folder": folder, "elsewhere": "/other"},
            )  # fmt: skip
            session.add(job)
            session.flush()
            for position, name in ((40, "run"), (20, "stage")):
                session.add(
                    Task(job_id=job.id, position=position, name=name, state="done", backend="local",
                         request={"folder": folder})
                )  # fmt: skip
        users = [User(name=name, roles=["admin"], disabled=name == "anna2") for name in _NAMES]
        collection = Collection(name="city", rule="site='ä'")
        session.add_all([*users, collection])
        session.flush()
        session.add(CollectionUser(collection_id=collection.id, user_id=users[0].id))
        question = SavedQuestion(name="q", question={"where": "ä"}, frames=2, snapshot=1,
                                 shared=True, owner="anna", account="1")  # fmt: skip
        session.add(question)
        session.flush()
        for account, name in (("2", "anna2"), ("", "")):
            session.add(QuestionLook(question_id=question.id, account=account, name=name, frames=1,
                                     snapshot=1, counted=moment))  # fmt: skip
        session.add(Token(user_id=users[0].id, name="n", digest="d", scope="read", expires=moment))


_NAMES = ("anna", "anna2")

_ORDERS = {"regexes": "name", "collection_users": "2", "question_looks": "1, 3"}
"""Of records without an id."""


def _columns(record: Any) -> dict[str, Any]:
    values = {one.key: getattr(record, one.key) for one in type(record).__mapper__.column_attrs}
    if isinstance(record, Job):
        values["tasks"] = [_columns(task) for task in record.tasks]
    return values


def _read(record: Any) -> dict[str, Any]:
    values = dict(vars(record))
    if "tasks" in values:
        values["tasks"] = [_read(task) for task in values["tasks"]]
    values.pop("account", None) if "roles" in values else None
    return values


def _equal(store: RecordStore, reader: RecordReader) -> int:
    """Compare every kind; how many records there are."""
    count = 0
    for kind in KINDS:
        order = _ORDERS.get(kind.table, "id")
        stored, read = store.select(kind, order=order), reader.select(kind, order=order)
        assert [_read(one) for one in read] == [_columns(one) for one in stored], kind.table
        count += len(read)
    return count


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.wide)])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Path | Postgres]:
    """Gives a database of each kind for records."""
    if request.param == "sqlite":
        return lambda: tmp_path / "odd # name?%20" / "records" / "records.sqlite"
    return lambda: postgres().new()


def test_the_same_as_the_store(places: Callable[[], Path | Postgres], tmp_path: Path) -> None:
    """Every column of every kind of record, with paths in a moved home, conditions and order."""
    place = places()
    home = tmp_path / "home"
    store = RecordStore(place, home_layout=HomeLayout(home))
    reader = RecordReader(place, HomeLayout(home), _no_store)
    assert _equal(store, reader) == 0
    assert recorded_class_names(reader) == {}
    _filled(store, home)
    define_class_tags(store, {"truck": "Truck", "car": "Car", "bicycle": "Bicycle"})
    assert _equal(store, reader) == 18
    assert list(recorded_class_names(reader).items()) == list(recorded_class_names(store).items())
    assert reader.select(JOBS)[0].paths["folder"] == str(home / "jobs" / "job1")
    moved = RecordReader(place, HomeLayout(tmp_path / "moved"), _no_store)
    assert moved.select(JOBS)[0].paths["folder"] == str(tmp_path / "moved" / "jobs" / "job1")
    (anna, anna2), stored = reader.select(USERS, order="id"), store.select(USERS, order="id")
    assert [anna.account, anna2.account] == [user.account for user in stored]

    for records in (store, reader):
        named = records.select(SOURCES, "name = :name", name="src")
        assert [source.name for source in named] == ["src"]
        assert [job.name for job in records.select(JOBS, order="id DESC", limit=1)] == ["job2"]
        assert records.select(COLLECTIONS, "name = :name", name="ci") == []
        some = records.select(SCANS, f"{ids_in('id', [1, 4])} AND state = :state", state="done")
        assert [scan.id for scan in some] == [1]
        assert records.select(SCANS, ids_in("id", [])) == []
        where, text = holds("name", "A2")
        assert records.rows(f"SELECT name FROM users WHERE {where}", holding=text) == [("anna2",)]
        where, text = holds("name", "%")
        assert records.rows(f"SELECT name FROM users WHERE {where}", holding=text) == []


def test_columns_with_paths_are_listed() -> None:
    """Those that SQLAlchemy makes absolute are those that the reader does."""
    with_paths = {
        mapper.local_table.name: [  # type: ignore[attr-defined]
            column.name
            for column in mapper.columns
            if isinstance(column.type, PathText | PathsJson)
        ]
        for mapper in Base.registry.mappers
    }
    assert {table: names for table, names in with_paths.items() if names} == {
        table: [*names] for table, names in PATH_COLUMNS.items()
    }
    assert all(class_of(kind).__tablename__ == kind.table for kind in KINDS)


def test_what_is_otherwise_is_left_to_the_store(tmp_path: Path) -> None:
    """No file, another file, another schema, a transaction of another: nothing is guessed."""
    store = RecordStore(tmp_path / "records.sqlite")
    _filled(store, tmp_path)
    with store.session() as session:
        session.add(User(name="later", roles=[]))
        session.flush()
        assert len(RecordReader(tmp_path / "records.sqlite", None, _no_store).select(USERS)) == 2
    (other := tmp_path / "other.sqlite").write_bytes(b"no database" * 100)
    (tmp_path / "empty.sqlite").touch()
    opened = []

    def open_store() -> RecordStore:
        opened.append(store)
        return store

    for path in (tmp_path / "none.sqlite", other, tmp_path / "empty.sqlite"):
        reader = RecordReader(path, None, open_store)
        assert len(reader.select(USERS)) == 3
        assert reader.rows("SELECT count(*) FROM users") == [(3,)]
    assert len(opened) == 6
    assert not (tmp_path / "none.sqlite").exists()


@pytest.mark.parametrize("revision", ["0019", "r0000", "r9999"])
def test_another_schema_is_left_to_the_store(tmp_path: Path, revision: str) -> None:
    """So that a command on a home of before says how to go on, whatever it reads."""
    path = tmp_path / "records.sqlite"
    RecordStore(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", (revision,))
    with pytest.raises(AssertionError, match="the store was opened"):
        RecordReader(path, None, _no_store).select(USERS)
