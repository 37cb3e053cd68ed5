"""accounts of owners: a later user of the same name is no heir.

Revision ID: 0019
Revises: 0018
"""

from datetime import datetime

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

_NAMED_BY = {"datasets": "owner", "jobs": "user", "policies": "owner", "webhooks": "owner"}
"""Tables whose rows users own, and the column that has had the user's name."""


def upgrade() -> None:
    """Bring the schema forward; what is younger than the user of its owner's name is that user's.

    What is older was made by a former user of the name, and is nobody's from here on.
    """
    users = sa.table("users", *map(sa.column, ("id", "name")), sa.column("created", sa.DateTime()))
    known = op.get_bind().execute(sa.select(users.c.id, users.c.name, users.c.created)).all()
    for table, column in _NAMED_BY.items():
        account = sa.Column("account", sa.String(64), nullable=False, server_default=sa.text("''"))
        op.add_column(table, account)
        rows = sa.table(
            table, sa.column(column), sa.column("account"), sa.column("created", sa.DateTime())
        )
        for number, name, created in known:
            is_theirs = (rows.c[column] == name) & (rows.c.created >= created)
            owned = sa.update(rows).where(is_theirs).values(account=_account(number, created))
            op.get_bind().execute(owned)
    op.create_index("ix_jobs_account", "jobs", ["account"])


def _account(number: int, created: datetime) -> str:
    return f"{number} {created.isoformat()}"
