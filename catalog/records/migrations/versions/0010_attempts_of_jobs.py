"""when a job's last attempt was submitted, and what it waits for.

Revision ID: 0010
Revises: 0009
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema forward."""
    op.add_column("jobs", sa.Column("submitted", sa.DateTime(), nullable=True))
    waits = sa.Column("waits", sa.String(), nullable=False, server_default=sa.text("''"))
    op.add_column("jobs", waits)
