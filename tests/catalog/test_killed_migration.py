"""A migration killed in the middle: the records are of one schema or the next, and whole."""

import os
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import inspect, text

from catalog.records import migrate, store
from catalog.records.datasets import recorded_dataset
from catalog.records.revision import NEWEST
from catalog.records.sources import add_source, recorded_sources
from catalog.records.store import RecordStore
from catalog.records.tables import Dataset, Source
from catalog.storage.postgres import Postgres
from tests.postgres_server import postgres

SECOND = '''
"""A made-up second schema: a column with content, and a table."""

import os
import signal

import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "r9998", "{newest}", None, None


def die_at(step):
    if os.environ.get("DIES_AT") == step:
        os.kill(os.getpid(), signal.SIGKILL)


def upgrade():
    die_at("begin")
    with op.batch_alter_table("sources") as table:
        table.add_column(sa.Column("label", sa.String(64), server_default=sa.text("''")))
    die_at("column")
    op.execute("UPDATE sources SET label = 'of ' || name")
    die_at("content")
    op.create_table("labels", sa.Column("id", sa.Integer(), primary_key=True))
    die_at("end")
'''


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.wide)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | Postgres:
    """Records of today's schema, with two sources and a dataset."""
    location = tmp_path / "records.sqlite" if request.param == "sqlite" else postgres().new()
    records = RecordStore(location)
    for name in ("a", "b"):
        add_source(
            records, Source(name=name, uri="/", platform="NFS", cluster="c", datasource=name)
        )
    with records.session() as session:
        session.add(
            Dataset(name="kept", version=1, content_id="x", question={}, snapshot=1, frames=3,
                    splits={}, class_pixels={}, manifest="/m")
        )  # fmt: skip
    records.engine.dispose()
    return location


@pytest.mark.wide
def test_a_migration_that_is_killed(
    place: Path | Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed at any step it leaves the schema of before; then stores that open at once end it."""
    migrations = tmp_path / "migrations"
    shutil.copytree(migrate.MIGRATIONS, migrations)
    (migrations / "versions" / "9998_made_up.py").write_text(SECOND.format(newest=NEWEST))
    monkeypatch.setattr(migrate, "MIGRATIONS", migrations)
    before = schema(place)
    monkeypatch.setattr(store, "NEWEST", "r9998")
    for step in ("begin", "column", "content", "end"):
        assert opened_by_another_process(place, step) == -signal.SIGKILL
        with monkeypatch.context() as of_before:
            of_before.setattr(store, "NEWEST", NEWEST)
            assert schema(place) == before, step
    with ThreadPoolExecutor(4) as pool:
        stores = list(pool.map(lambda _: RecordStore(place), range(4)))
    for records in stores:
        assert [source.name for source in recorded_sources(records)] == ["a", "b"]
        assert recorded_dataset(records, "kept").frames == 3
        with records.reading() as session:
            labels = session.scalars(text("SELECT label FROM sources ORDER BY id")).all()
        assert labels == ["of a", "of b"]
        records.engine.dispose()
    revision, columns = schema(place)
    assert revision == "r9998"
    assert columns == before[1] | {"sources": [*before[1]["sources"], "label"], "labels": ["id"]}


def schema(place: Path | Postgres) -> tuple[str | None, dict[str, list[str]]]:
    """The revision of records, and the columns of each of their tables."""
    records = RecordStore(place)
    inspected = inspect(records.engine)
    columns = {
        table: [column["name"] for column in inspected.get_columns(table)]
        for table in inspected.get_table_names()
    }
    if isinstance(place, Path):
        with records.reading() as session:
            assert session.scalars(text("PRAGMA integrity_check")).all() == ["ok"]
    revision = records._revision()
    records.engine.dispose()
    return revision, columns


def opened_by_another_process(place: Path | Postgres, dies_at: str) -> int:
    """How a process ended that opens the records and dies at that step."""
    child = os.fork()
    if child == 0:
        os.environ["DIES_AT"] = dies_at
        try:
            RecordStore(place)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
