"""The snapshot up to which a scan marked duplicates.

Revision ID: r0002
Revises: r0001
"""

import sqlalchemy as sa
from alembic import op

revision = "r0002"
down_revision = "r0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add it to scans."""
    op.add_column("scans", sa.Column("marked_snapshot", sa.BigInteger(), nullable=True))
