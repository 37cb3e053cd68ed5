"""jobs and ranks that a user may have at once.

Revision ID: 0017
Revises: 0016
"""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema forward; 0 is what the settings say."""
    for name in ("most_jobs", "most_ranks"):
        number = sa.Column(name, sa.Integer(), nullable=False, server_default=sa.text("0"))
        op.add_column("users", number)
