"""stagings count bytes beyond 32 bits, which PostgreSQL's INTEGER does not hold.

Revision ID: 0003
Revises: 0002
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema forward."""
    with op.batch_alter_table("stagings", schema=None) as batch_op:
        for name in ("bytes", "bytes_copied"):
            batch_op.alter_column(
                name, existing_type=sa.Integer(), type_=sa.BigInteger(), existing_nullable=False
            )
