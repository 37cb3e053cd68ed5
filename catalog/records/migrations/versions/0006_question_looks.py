"""What users saw last of questions that others share.

Revision ID: r0006
Revises: r0005
"""

import sqlalchemy as sa
from alembic import op

revision = "r0006"
down_revision = "r0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add their table."""
    op.create_table(
        "question_looks",
        sa.Column("question_id", sa.Integer(), nullable=False),
        sa.Column("account", sa.String(64), nullable=False),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("frames", sa.BigInteger(), nullable=False),
        sa.Column("snapshot", sa.BigInteger(), nullable=False),
        sa.Column("counted", sa.DateTime(), nullable=False),
        sa.ForeignKeyConstraint(["question_id"], ["saved_questions.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("question_id", "account", "name"),
    )
    op.create_index("ix_question_looks_account", "question_looks", ["account"])
