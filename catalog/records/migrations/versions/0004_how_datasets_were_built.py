"""datasets keep their seed, frames of each class, parents, and what was achieved.

Revision ID: 0004
Revises: 0003
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


# Text: a seed may be any number.
_COLUMNS: dict[str, tuple[sa.types.TypeEngine[Any], str]] = {
    "seed": (sa.String(64), "0"),
    "class_frames": (sa.JSON(), "{}"),
    "parents": (sa.JSON(), "[]"),
    "report": (sa.JSON(), "{}"),
}


def upgrade() -> None:
    """Bring the schema forward."""
    with op.batch_alter_table("datasets", schema=None) as batch_op:
        for name, (kind, _) in _COLUMNS.items():
            batch_op.add_column(sa.Column(name, kind, nullable=True))
    for name, (_, empty) in _COLUMNS.items():
        op.execute(f"UPDATE datasets SET {name} = '{empty}'")
    with op.batch_alter_table("datasets", schema=None) as batch_op:
        for name, (kind, _) in _COLUMNS.items():
            batch_op.alter_column(name, existing_type=kind, nullable=False)
