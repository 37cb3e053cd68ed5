"""descriptions of datasets, the names they were made under, and when they were removed.

Revision ID: 0018
Revises: 0017
"""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema forward."""
    for name, length in (("description", 4096), ("first_name", 128)):
        column = sa.Column(name, sa.String(length), nullable=False, server_default=sa.text("''"))
        op.add_column("datasets", column)
    removed: sa.Column[object] = sa.Column("removed", sa.DateTime(), nullable=True)
    op.add_column("datasets", removed)
