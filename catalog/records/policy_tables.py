"""SQLAlchemy tables of policies, their runs, and the regular expressions that rules name."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, ForeignKey, String, text
from sqlalchemy.orm import Mapped, mapped_column

from catalog.records.tables import Base
from catalog.records.versions import VersionedRecord
from catalog.values import now


class Policy(VersionedRecord, Base):
    """A policy: an action, the condition on its files, and its schedule."""

    __tablename__ = "policies"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(128), unique=True)
    # Of pipeline.policies.actions.
    action: Mapped[str] = mapped_column(String(32))
    parameters: Mapped[dict[str, Any]]
    # A WHERE body over metaocean_view; every file where it is empty.
    condition: Mapped[str]
    # "NOW", or parts of a time as pipeline.policies.schedule reads them.
    schedule: Mapped[Any] = mapped_column(JSON)
    # "active" or "inactive", in any case.
    state: Mapped[str] = mapped_column(String(16))
    explicit: Mapped[str] = mapped_column(String(16), default="true")
    # Names of collections; every file where there are none.
    collections: Mapped[list[Any]] = mapped_column(default=list)
    owner: Mapped[str] = mapped_column(String(128))
    # Which user of that name (catalog.values).
    account: Mapped[str] = mapped_column(String(64), default="", server_default=text("''"))
    updated_by: Mapped[str] = mapped_column(String(128))
    updated: Mapped[datetime] = mapped_column(default=now)
    created: Mapped[datetime] = mapped_column(default=now)


class PolicyRun(Base):
    """One run of a policy."""

    __tablename__ = "policy_runs"

    id: Mapped[int] = mapped_column(primary_key=True)
    policy_id: Mapped[int] = mapped_column(
        ForeignKey("policies.id", ondelete="CASCADE"), index=True
    )
    # What clients know it by.
    run_id: Mapped[str] = mapped_column(String(32), unique=True)
    # Of catalog.policies.runs: running, paused, complete, killed, failed.
    state: Mapped[str] = mapped_column(String(16))
    # What somebody asks of a run under way: "run", "pause" or "kill".
    wanted: Mapped[str] = mapped_column(String(16), default="run")
    # The job that runs it; empty where a person does, at a terminal.
    job: Mapped[str] = mapped_column(String(128), default="")
    total: Mapped[int] = mapped_column(BigInteger, default=0)
    submitted: Mapped[int] = mapped_column(BigInteger, default=0)
    completed: Mapped[int] = mapped_column(BigInteger, default=0)
    failed: Mapped[int] = mapped_column(BigInteger, default=0)
    skipped: Mapped[int] = mapped_column(BigInteger, default=0)
    error: Mapped[str] = mapped_column(default="")
    started: Mapped[datetime] = mapped_column(default=now)
    finished: Mapped[datetime | None]


class Regex(Base):
    """A regular expression by a name that rules may use."""

    __tablename__ = "regexes"

    name: Mapped[str] = mapped_column(String(128), primary_key=True)
    pattern: Mapped[str]
    description: Mapped[str] = mapped_column(default="")
