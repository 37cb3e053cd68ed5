"""tasks of jobs, their moves; who began a job, and what it used.

Revision ID: 0014
Revises: 0013
"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

_JOBS = sa.table(
    "jobs",
    *map(
        sa.column,
        ("id", "state", "backend", "handle", "error", "waits", "owner", "user"),
    ),
    *(sa.column(name, sa.DateTime()) for name in ("created", "submitted", "started", "finished")),
    sa.column("request", sa.JSON()),
)


def upgrade() -> None:
    """Bring the schema forward; each job there is gets the one task that it was."""
    user = sa.Column("user", sa.String(128), nullable=False, server_default=sa.text("''"))
    op.add_column("jobs", user)
    cancelled: sa.Column[bool] = sa.Column(
        "is_cancelled", sa.Boolean(), nullable=False, server_default=sa.false()
    )
    op.add_column("jobs", cancelled)
    for name in ("core_s", "gpu_s", "wait_s"):
        used: sa.Column[float] = sa.Column(
            name, sa.Double(), nullable=False, server_default=sa.text("0")
        )
        op.add_column("jobs", used)
    tasks = op.create_table(
        "tasks",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column(
            "job_id", sa.Integer(), sa.ForeignKey("jobs.id", ondelete="CASCADE"), nullable=False
        ),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(32), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("most_attempts", sa.Integer(), nullable=False),
        sa.Column("backend", sa.String(16), nullable=False),
        sa.Column("backend_name", sa.String(256), nullable=False),
        sa.Column("handle", sa.String(256), nullable=False),
        sa.Column("request", sa.JSON(), nullable=False),
        sa.Column("error", sa.String(), nullable=False),
        sa.Column("waits", sa.String(), nullable=False),
        sa.Column("not_before", sa.DateTime(), nullable=True),
        sa.Column("created", sa.DateTime(), nullable=False),
        sa.Column("submitted", sa.DateTime(), nullable=True),
        sa.Column("started", sa.DateTime(), nullable=True),
        sa.Column("finished", sa.DateTime(), nullable=True),
        sa.UniqueConstraint("job_id", "name"),
    )
    op.create_table(
        "task_moves",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column(
            "job_id", sa.Integer(), sa.ForeignKey("jobs.id", ondelete="CASCADE"), nullable=False
        ),
        sa.Column("task", sa.String(32), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("before", sa.String(16), nullable=False),
        sa.Column("after", sa.String(16), nullable=False),
        sa.Column("at", sa.DateTime(), nullable=False),
        sa.Column("why", sa.String(), nullable=False),
    )
    op.create_index("ix_task_moves_job_id", "task_moves", ["job_id"])
    owned = sa.update(_JOBS).where(_JOBS.c.owner != "")
    op.get_bind().execute(owned.values(user=_JOBS.c.owner))
    for job in op.get_bind().execute(sa.select(_JOBS)).mappings().all():
        attempt = (job["request"] or {}).get("attempt", 1)
        row = {
            name: job[name]
            for name in (
                "state", "backend", "handle", "error", "waits", "created", "submitted", "started",
                "finished",
            )
        }  # fmt: skip
        row |= {"job_id": job["id"], "position": 40, "name": "run", "attempt": attempt}
        row |= {"most_attempts": attempt, "backend_name": "", "request": {}}
        op.bulk_insert(tasks, [row])
