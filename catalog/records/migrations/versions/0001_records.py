"""Every table of the records.

Revision ID: r0001
Revises:
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "r0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""
    _make_sources()
    _make_datasets()
    _make_jobs()
    _make_accounts()
    _make_audit()
    _make_policies()
    _make_automation()


def _make_sources() -> None:
    op.create_table(
        "sources",
        _id(), _text("name", 128), _text("uri", 4096), _text("platform", 32), _text("cluster", 64),
        _text("datasource", 1024), _text("site", 16), _json("options"), _json("class_list"),
        _time("created"), _text("version", 32, default="''"),
        sa.UniqueConstraint("cluster", "datasource"), sa.UniqueConstraint("name"),
    )  # fmt: skip
    op.create_table(
        "scans",
        _id(), _reference("source_id", "sources"), _text("state", 16), _time("started"),
        _time("finished", nullable=True), _json("counts"), _text("error"),
        _text("kind", 16, default="'scan'"),
    )  # fmt: skip
    op.create_index("ix_scans_source_id", "scans", ["source_id"])
    op.create_table(
        "scan_problems",
        _id(), _reference("source_id", "sources"), _reference("scan_id", "scans"),
        _text("kind", 32), _text("key", 4096), _text("reason"),
    )  # fmt: skip
    op.create_index("ix_scan_problems_scan_id", "scan_problems", ["scan_id"])
    op.create_index("problems_by_file", "scan_problems", ["source_id", "key"])
    op.create_table(
        "tag_definitions",
        _text("tag", 256, primary_key=True), _text("family", 64), _text("kind", 32),
        _text("title", 256), _number("position"),
    )  # fmt: skip


def _make_datasets() -> None:
    op.create_table(
        "datasets",
        _id(), _text("name", 128), _number("version"), _text("content_id", 64), _json("question"),
        _number("snapshot"), _number("frames"), _json("splits"), _json("class_pixels"),
        _text("manifest", 4096), _time("created"), _text("seed", 64), _json("class_frames"),
        _json("parents"), _json("report"), _text("owner", 128, default="''"),
        _text("description", 4096, default="''"), _text("first_name", 128, default="''"),
        _time("removed", nullable=True), _text("account", 64, default="''"),
        sa.UniqueConstraint("name", "version"),
    )  # fmt: skip
    op.create_index("ix_datasets_name", "datasets", ["name"])
    op.create_table(
        "stagings",
        _id(), _reference("dataset_id", "datasets", ondelete=None), _text("state", 16),
        _text("cache", 4096), _text("manifest", 4096), _number("files"), _number("files_copied"),
        _large_number("bytes"), _large_number("bytes_copied"), _time("created"),
        _text("error", 4096, default="''"),
    )  # fmt: skip
    op.create_index("ix_stagings_dataset_id", "stagings", ["dataset_id"])


def _make_jobs() -> None:
    op.create_table(
        "jobs",
        _id(), _text("name", 128), _text("kind", 16), _text("backend", 16), _text("state", 16),
        _reference("dataset_id", "datasets", ondelete=None, nullable=True), _json("request"),
        _text("handle", 256), _json("metrics"), _json("paths"), _text("error"), _time("created"),
        _time("started", nullable=True), _time("finished", nullable=True),
        _text("owner", 128, default="''"), _time("submitted", nullable=True),
        _text("waits", default="''"), _text("user", 128, default="''"),
        _truth("is_cancelled", default=sa.false()),
        _seconds("core_s"), _seconds("gpu_s"), _seconds("wait_s"),
        _text("account", 64, default="''"),
        sa.UniqueConstraint("name"),
    )  # fmt: skip
    op.create_index("jobs_by_state", "jobs", ["state"])
    op.create_index("ix_jobs_account", "jobs", ["account"])
    op.create_table(
        "tasks",
        _id(), _reference("job_id", "jobs"), _number("position"), _text("name", 32),
        _text("state", 16), _number("attempt"), _number("most_attempts"), _text("backend", 16),
        _text("backend_name", 256), _text("handle", 256), _json("request"), _text("error"),
        _text("waits"), _time("not_before", nullable=True), _time("created"),
        _time("submitted", nullable=True), _time("started", nullable=True),
        _time("finished", nullable=True),
        sa.UniqueConstraint("job_id", "name"),
    )  # fmt: skip
    op.create_table(
        "task_moves",
        _id(), _reference("job_id", "jobs"), _text("task", 32), _number("attempt"),
        _text("before", 16), _text("after", 16), _time("at"), _text("why"),
    )  # fmt: skip
    op.create_index("ix_task_moves_job_id", "task_moves", ["job_id"])


def _make_accounts() -> None:
    op.create_table(
        "users",
        _id(), _text("name", 128), _text("password", 256), _json("roles"), _truth("disabled"),
        _time("created"), _text("version", 32, default="''"), _number("most_jobs", default="0"),
        _number("most_ranks", default="0"),
        sa.UniqueConstraint("name"),
    )  # fmt: skip
    op.create_table(
        "tokens",
        _id(), _reference("user_id", "users"), _text("name", 128, nullable=True),
        _text("digest", 64), _text("scope", 16), _time("created"), _time("expires"),
        _time("revoked", nullable=True), _time("last_used", nullable=True),
        _text("version", 32, default="''"),
        sa.UniqueConstraint("digest"), sa.UniqueConstraint("user_id", "name"),
    )  # fmt: skip
    op.create_table(
        "login_failures",
        _text("key", 256, primary_key=True), _number("failures"), _time("last"),
        _time("blocked_until"),
    )  # fmt: skip
    op.create_table(
        "collections",
        _id(), _text("name", 128), _text("rule"), _time("created"),
        _text("version", 32, default="''"),
        sa.UniqueConstraint("name"),
    )  # fmt: skip
    op.create_table(
        "collection_users",
        _reference("collection_id", "collections", primary_key=True),
        _reference("user_id", "users", primary_key=True),
    )
    op.create_index("ix_collection_users_user_id", "collection_users", ["user_id"])
    op.create_table(
        "kept_answers",
        _text("key", 64, primary_key=True), _text("digest", 64), _number("status", nullable=True),
        _json("headers"), _text("body"), _time("until"),
    )  # fmt: skip
    op.create_index("kept_answers_by_until", "kept_answers", ["until"])


def _make_audit() -> None:
    """Make the audit log, of which the database refuses changes."""
    op.create_table(
        "audit",
        _id(), _time("time"), _text("who", 256), _text("address", 64), _text("what", 64),
        _text("target", 1024), _text("outcome", 64), _text("request_id", 64),
        _text("note", 1024, default="''"),
    )  # fmt: skip
    op.create_index("audit_by_who", "audit", ["who"])
    if op.get_bind().dialect.name == "sqlite":
        for change in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER audit_no_{change.lower()} BEFORE {change} ON audit "
                "BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END"
            )
        return
    op.execute(
        "CREATE FUNCTION audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'the audit log is append-only'; END $$"
    )
    op.execute(
        "CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit "
        "FOR EACH STATEMENT EXECUTE FUNCTION audit_is_append_only()"
    )


def _make_policies() -> None:
    op.create_table(
        "policies",
        _id(), _text("name", 128), _text("action", 32), _json("parameters"), _text("condition"),
        _json("schedule"), _text("state", 16), _text("explicit", 16), _json("collections"),
        _text("owner", 128), _text("updated_by", 128), _time("updated"), _time("created"),
        _text("version", 32, default="''"), _text("account", 64, default="''"),
        sa.UniqueConstraint("name"),
    )  # fmt: skip
    op.create_table(
        "policy_runs",
        _id(), _reference("policy_id", "policies"), _text("run_id", 32), _text("state", 16),
        _text("wanted", 16), _text("job", 128), _large_number("total"),
        _large_number("submitted"), _large_number("completed"), _large_number("failed"),
        _large_number("skipped"), _text("error"), _time("started"),
        _time("finished", nullable=True),
        sa.UniqueConstraint("run_id"),
    )  # fmt: skip
    op.create_index("ix_policy_runs_policy_id", "policy_runs", ["policy_id"])
    op.create_table(
        "regexes",
        _text("name", 128, primary_key=True), _text("pattern"), _text("description"),
    )  # fmt: skip


def _make_automation() -> None:
    op.create_table(
        "triggers",
        _id(), _text("name", 128), _text("condition"), _large_number("min_frames"),
        _number("quiet_s"), _json("schedule", nullable=True), _text("split"), _json("steps"),
        _truth("enabled"), _text("owner", 128), _text("account", 128), _text("scope", 16),
        _large_number("snapshot"), _large_number("frames"), _large_number("base_frames"),
        _time("changed", nullable=True), _text("error"), _time("since"), _time("created"),
        sa.UniqueConstraint("name"),
    )  # fmt: skip
    op.create_table(
        "trigger_runs",
        _id(), _reference("trigger_id", "triggers"), _text("cause", 16), _text("state", 16),
        _large_number("frames"), _large_number("snapshot"), _text("dataset", 192), _json("jobs"),
        _text("error"), _time("started"), _time("finished", nullable=True),
    )  # fmt: skip
    op.create_index("ix_trigger_runs_trigger_id", "trigger_runs", ["trigger_id"])
    op.create_table(
        "webhooks",
        _id(), _text("name", 128), _text("url", 4096), _json("states"), _text("secret"),
        _text("owner", 128), _time("created"), _text("account", 64, default="''"),
        sa.UniqueConstraint("name"),
    )  # fmt: skip
    op.create_table(
        "webhook_deliveries",
        _id(), _reference("webhook_id", "webhooks"), _text("delivery", 32), _text("job", 128),
        _time("ended"), _text("body"), _text("state", 16), _number("tries"),
        _number("status", nullable=True), _text("error"), _time("due"), _time("created"),
        _time("tried", nullable=True),
        sa.UniqueConstraint("webhook_id", "job", "ended"),
    )  # fmt: skip


def _column(
    name: str,
    kind: sa.types.TypeEngine[Any],
    *rules: sa.schema.SchemaItem,
    nullable: bool = False,
    default: Any = None,
    **options: Any,
) -> sa.Column[Any]:
    default = sa.text(default) if isinstance(default, str) else default
    return sa.Column(name, kind, *rules, nullable=nullable, server_default=default, **options)


def _id() -> sa.Column[Any]:
    return _column("id", sa.Integer(), primary_key=True)


def _reference(
    name: str, table: str, *, ondelete: str | None = "CASCADE", **options: Any
) -> sa.Column[Any]:
    return _column(name, sa.Integer(), sa.ForeignKey(f"{table}.id", ondelete=ondelete), **options)


def _text(name: str, length: int | None = None, **options: Any) -> sa.Column[Any]:
    return _column(name, sa.String(length), **options)


def _number(name: str, **options: Any) -> sa.Column[Any]:
    return _column(name, sa.Integer(), **options)


def _large_number(name: str) -> sa.Column[Any]:
    return _column(name, sa.BigInteger())


def _seconds(name: str) -> sa.Column[Any]:
    return _column(name, sa.Double(), default="0")


def _truth(name: str, **options: Any) -> sa.Column[Any]:
    return _column(name, sa.Boolean(), **options)


def _json(name: str, **options: Any) -> sa.Column[Any]:
    return _column(name, sa.JSON(), **options)


def _time(name: str, **options: Any) -> sa.Column[Any]:
    return _column(name, sa.DateTime(), **options)
