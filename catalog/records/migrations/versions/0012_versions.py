"""versions of users, tokens, collections, sources and policies.

Revision ID: 0012
Revises: 0011
"""

from uuid import uuid4

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema forward."""
    for name in ("users", "tokens", "collections", "sources", "policies"):
        version = sa.Column("version", sa.String(32), nullable=False, server_default=sa.text("''"))
        op.add_column(name, version)
        table = sa.table(name, sa.column("id"), sa.column("version"))
        for number in op.get_bind().scalars(sa.select(table.c.id)).all():
            one = sa.update(table).where(table.c.id == number)
            op.get_bind().execute(one.values(version=uuid4().hex))
