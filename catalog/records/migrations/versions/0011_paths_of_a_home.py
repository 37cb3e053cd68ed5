"""paths relative to the home that they lie in.

What lies in a home is told by its end: datasets/NAME/vN, jobs/NAME. So homes that were moved before
are mended, too. What does not end so keeps its path.

Revision ID: 0011
Revises: 0010
"""

from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_HOME, _DATASETS = "@home", "@datasets"

_datasets = sa.table("datasets", *map(sa.column, ("id", "name", "version", "manifest")))
_stagings = sa.table("stagings", *map(sa.column, ("id", "cache", "manifest")))
_jobs = sa.table(
    "jobs", sa.column("id"), sa.column("name"),
    sa.column("paths", sa.JSON), sa.column("request", sa.JSON),
)  # fmt: skip


def upgrade() -> None:
    """Bring the records forward."""
    connection = op.get_bind()
    homes: set[str] = set()
    for row in connection.execute(sa.select(_datasets)).all():
        end = f"/datasets/{row.name}/v{row.version}"
        if row.manifest.endswith(end):
            homes.add(row.manifest.removesuffix(end))
            short = f"{_DATASETS}/{row.name}/v{row.version}"
            _set(_datasets, row.id, manifest=short)
    jobs = connection.execute(sa.select(_jobs)).all()
    for row in jobs:
        folder, end = str(row.paths.get("folder", "")), f"/jobs/{row.name}"
        if folder.endswith(end):
            homes.add(folder.removesuffix(end))
    for row in jobs:
        _set(_jobs, row.id, paths=_short(row.paths, homes), request=_short(row.request, homes))
    for row in connection.execute(sa.select(_stagings)).all():
        _set(
            _stagings, row.id,
            cache=_short(row.cache, homes), manifest=_short(row.manifest, homes),
        )  # fmt: skip


def _set(table: Any, number: int, **values: Any) -> None:
    op.get_bind().execute(sa.update(table).where(table.c.id == number).values(**values))


def _short(value: Any, homes: Iterable[str]) -> Any:
    if isinstance(value, str):
        for home in homes:
            if value.startswith(f"{home}/datasets/"):
                return _DATASETS + value.removeprefix(f"{home}/datasets")
            if value == home or value.startswith(f"{home}/"):
                return _HOME + value.removeprefix(home)
        return value
    if isinstance(value, Mapping):
        return {key: _short(one, homes) for key, one in value.items()}
    if isinstance(value, list):
        return [_short(one, homes) for one in value]
    return value
