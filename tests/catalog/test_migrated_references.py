"""Migrations of records on SQLite: references to a table that is made anew stay."""

import shutil
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from catalog.errors import CatalogDamaged, InvalidInput
from catalog.records import migrate, store
from catalog.records.revision import NEWEST
from catalog.records.sources import add_source, recorded_sources
from catalog.records.store import RecordStore
from catalog.records.tables import Scan, Source

HEAD = '''
"""A made-up next schema."""

import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "r9998", "{newest}", None, None


def upgrade():
'''

MADE_ANEW = """
    with op.batch_alter_table("sources", recreate="always") as table:
        table.add_column(sa.Column("label", sa.String(64), server_default=sa.text("'new'")))
"""

BREAKS = (
    MADE_ANEW
    + """
    op.execute("DELETE FROM sources WHERE name = 'src'")
"""
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Records with three sources, two of which were scanned, one twice."""
    location = tmp_path / "records.sqlite"
    records = RecordStore(location)
    for name in ("src", "src-private", "other"):
        add_source(
            records, Source(name=name, uri="/", platform="NFS", cluster="c", datasource=name)
        )
    ids = {source.name: source.id for source in recorded_sources(records)}
    with records.session() as session:
        for name in ("src", "src", "src-private"):
            session.add(Scan(source_id=ids[name], state="done", kind="scan"))
    assert scans(records) == {"src": 2, "src-private": 1}
    records.engine.dispose()
    return location


def scans(records: RecordStore) -> dict[str, int]:
    """Number of scans of each source that has some."""
    query = "SELECT s.name, count(*) FROM scans JOIN sources s ON s.id = source_id GROUP BY 1"
    return dict(records.rows(query))


def with_next(migration: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a made-up migration follow the newest one."""
    migrations = folder / "migrations"
    shutil.copytree(migrate.MIGRATIONS, migrations)
    text_of = HEAD.format(newest=NEWEST) + migration
    (migrations / "versions" / "9998_made_up.py").write_text(text_of)
    monkeypatch.setattr(migrate, "MIGRATIONS", migrations)
    monkeypatch.setattr(store, "NEWEST", "r9998")


def test_a_table_that_is_made_anew_keeps_what_refers_to_it(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scans would go with their source, as they do once the records are migrated."""
    with_next(MADE_ANEW, tmp_path, monkeypatch)
    records = RecordStore(place)
    assert scans(records) == {"src": 2, "src-private": 1}
    assert records.rows("SELECT DISTINCT label FROM sources") == [("new",)]
    with pytest.raises(InvalidInput, match="FOREIGN KEY"), records.session() as session:
        session.add(Scan(source_id=4711, state="done", kind="scan"))
    with records.session() as session:
        session.execute(text("DELETE FROM sources WHERE name = 'src'"))
    assert scans(records) == {"src-private": 1}


def test_a_migration_that_breaks_a_reference_is_refused(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one sentence that names both tables; the records are as they were, and open as before."""
    with monkeypatch.context() as broken:
        with_next(BREAKS, tmp_path, broken)
        with pytest.raises(CatalogDamaged) as refused:
            RecordStore(place)
    assert "a row of scans refers to one of sources that is not there" in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1
    records = RecordStore(place)
    assert scans(records) == {"src": 2, "src-private": 1}
    assert records._revision() == NEWEST
    with pytest.raises(InvalidInput, match="FOREIGN KEY"), records.session() as session:
        add_orphan(session)


def add_orphan(session: Session) -> None:
    """Add a scan of no source."""
    session.add(Scan(source_id=4711, state="done", kind="scan"))
    session.flush()
