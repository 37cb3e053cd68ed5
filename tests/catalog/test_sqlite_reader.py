"""The records read without SQLAlchemy are those that RecordStore reads."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from catalog.records import sqlite_reader
from catalog.records.store import RecordStore
from catalog.records.tables import Source
from catalog.records.tag_definitions import define_class_tags, recorded_class_names
from catalog.storage.postgres import Postgres


def test_the_same_as_the_store(tmp_path: Path) -> None:
    """Class names in class order, and how many there are of each; also beside a writer."""
    path = tmp_path / "odd # name?%20" / "records.sqlite"
    store = RecordStore(path)
    assert sqlite_reader.class_names(path) == {}
    define_class_tags(store, {"truck": "Truck", "car": "Car", "bicycle": "Bicycle"})
    source = Source(name="a", uri="/a", platform="NFS", cluster="c", datasource="a", site="")
    with store.session() as session:
        session.add(source)
        session.flush()
        assert sqlite_reader.counts(path) == (0, 0, 0)
    assert sqlite_reader.counts(path) == (1, 0, 0)
    assert list((sqlite_reader.class_names(path) or {}).items()) == list(
        recorded_class_names(store).items()
    )


def test_what_is_otherwise_is_left_to_the_store(tmp_path: Path) -> None:
    """No file, another file, another database: none is made, and nothing is guessed."""
    (other := tmp_path / "other.sqlite").write_bytes(b"no database" * 100)
    (tmp_path / "empty.sqlite").touch()
    for path in (tmp_path / "none.sqlite", other, tmp_path / "empty.sqlite", Postgres("dbname=x")):
        assert sqlite_reader.class_names(path) is None
        assert sqlite_reader.counts(path) is None
    assert not (tmp_path / "none.sqlite").exists()


@pytest.mark.parametrize("revision", ["0019", "r0000", "r9999"])
def test_another_schema_is_left_to_the_store(tmp_path: Path, revision: str) -> None:
    """So that a command on a home of before says how to go on, whatever it reads."""
    path = tmp_path / "records.sqlite"
    RecordStore(path)
    assert sqlite_reader.counts(path) == (0, 0, 0)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", (revision,))
    assert sqlite_reader.class_names(path) is None
    assert sqlite_reader.named_rules(path) is None
    assert sqlite_reader.counts(path) is None
