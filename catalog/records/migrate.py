"""Brings the records' database to the newest schema, by Alembic."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine

from catalog.errors import CatalogDamaged

MIGRATIONS = Path(__file__).parent / "migrations"


def upgrade(engine: Engine, to: str = "head") -> None:
    """Run every migration up to a revision that the database has not seen, in one transaction.

    Raises:
        CatalogDamaged: A record would then refer to one that is not there; nothing is changed.
    """
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    with engine.connect() as connection, _without_foreign_keys(connection), connection.begin():
        config.attributes["connection"] = connection
        command.upgrade(config, to)
        _check_foreign_keys(connection)


@contextmanager
def _without_foreign_keys(connection: Connection) -> Iterator[None]:
    """Have SQLite not look at foreign keys in the block, which begins before its transaction.

    SQLite changes most of a table by making it anew: to drop the old one would delete what refers
    to it, by ON DELETE CASCADE.
    """
    if connection.dialect.name != "sqlite":
        yield
        return
    driver = connection.connection.driver_connection
    assert driver is not None
    driver.execute("PRAGMA foreign_keys = OFF")
    try:
        yield
    finally:
        driver.execute("PRAGMA foreign_keys = ON")


def _check_foreign_keys(connection: Connection) -> None:
    if connection.dialect.name != "sqlite":
        return
    broken = connection.exec_driver_sql("PRAGMA foreign_key_check").first()
    if broken is not None:
        raise CatalogDamaged(
            f"{connection.engine.url.database}: its records were not migrated: a row of "
            f"{broken[0]} refers to one of {broken[2]} that is not there; restore them from a "
            "backup, or ask for help with this message"
        )
