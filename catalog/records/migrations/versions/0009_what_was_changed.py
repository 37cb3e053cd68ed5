"""what was made or changed, in the audit log.

Revision ID: 0009
Revises: 0008
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema forward."""
    note = sa.Column("note", sa.String(1024), nullable=False, server_default=sa.text("''"))
    op.add_column("audit", note)
