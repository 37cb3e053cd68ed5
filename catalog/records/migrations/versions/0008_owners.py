"""owners of datasets and jobs.

Revision ID: 0008
Revises: 0007
"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema forward."""
    for table in ("datasets", "jobs"):
        owner = sa.Column("owner", sa.String(128), nullable=False, server_default=sa.text("''"))
        op.add_column(table, owner)
