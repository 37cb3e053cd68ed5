"""why a staging failed.

Revision ID: 0013
Revises: 0012
"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema forward."""
    error = sa.Column("error", sa.String(4096), nullable=False, server_default=sa.text("''"))
    op.add_column("stagings", error)
