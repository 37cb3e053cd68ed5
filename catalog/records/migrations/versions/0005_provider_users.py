"""Users whom an OpenID provider knows.

Revision ID: r0005
Revises: r0004
"""

import sqlalchemy as sa
from alembic import op

revision = "r0005"
down_revision = "r0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add issuer and subject to users."""
    op.add_column("users", sa.Column("issuer", sa.String(1024), nullable=True))
    op.add_column("users", sa.Column("subject", sa.String(256), nullable=True))
    op.create_index("users_by_subject", "users", ["issuer", "subject"], unique=True)
