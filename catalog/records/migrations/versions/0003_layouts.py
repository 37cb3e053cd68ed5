"""The layouts of sources: as given, and of the last whole scan.

Revision ID: r0003
Revises: r0002
"""

import sqlalchemy as sa
from alembic import op

revision = "r0003"
down_revision = "r0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add them to sources."""
    for name in ("layout", "scanned_layout"):
        op.add_column("sources", sa.Column(name, sa.JSON(), nullable=True))
