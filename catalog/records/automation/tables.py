"""SQLAlchemy tables of triggers and webhooks."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, ForeignKey, String, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from catalog.records.tables import Base
from catalog.values import now


class Trigger(Base):
    """A rule that begins jobs: frames that were added, or a time that has come."""

    __tablename__ = "triggers"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(128), unique=True)
    # A WHERE body as questions have it; empty where only time counts.
    condition: Mapped[str]
    # Frames more than at the last start.
    min_frames: Mapped[int] = mapped_column(BigInteger)
    # For how long the catalog does not change before frames are counted [s].
    quiet_s: Mapped[int]
    # Parts of a time (pipeline.policies.schedule); None where only frames count.
    schedule: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    # Division of the dataset that is made of the frames; empty for none.
    split: Mapped[str]
    # Requests of jobs (api.schemas.automation.triggers).
    steps: Mapped[list[Any]]
    enabled: Mapped[bool] = mapped_column(default=True)
    owner: Mapped[str] = mapped_column(String(128))
    # Which user of that name (catalog.values), and what the token may do.
    account: Mapped[str] = mapped_column(String(128))
    scope: Mapped[str] = mapped_column(String(16))
    # The snapshot in which frames were counted last, and how many there were.
    snapshot: Mapped[int] = mapped_column(BigInteger, default=0)
    frames: Mapped[int] = mapped_column(BigInteger, default=0)
    # How many there were at the last start, or when the trigger was added.
    base_frames: Mapped[int] = mapped_column(BigInteger, default=0)
    # Since when the catalog has changes that were not counted.
    changed: Mapped[datetime | None]
    # Why it could not be looked at; empty otherwise.
    error: Mapped[str] = mapped_column(default="")
    # Times before this one are past: when it was added or enabled.
    since: Mapped[datetime] = mapped_column(default=now)
    created: Mapped[datetime] = mapped_column(default=now)


class TriggerRun(Base):
    """The jobs that a trigger began at one time, one after another."""

    __tablename__ = "trigger_runs"

    id: Mapped[int] = mapped_column(primary_key=True)
    trigger_id: Mapped[int] = mapped_column(
        ForeignKey("triggers.id", ondelete="CASCADE"), index=True
    )
    # "frames" or "schedule".
    cause: Mapped[str] = mapped_column(String(16))
    # "running", "done" or "failed".
    state: Mapped[str] = mapped_column(String(16))
    # Frames that were found, and in which snapshot; of a trigger with a condition.
    frames: Mapped[int] = mapped_column(BigInteger, default=0)
    snapshot: Mapped[int] = mapped_column(BigInteger, default=0)
    # NAME@VERSION of those frames; empty until it is needed.
    dataset: Mapped[str] = mapped_column(String(192), default="")
    # Names of jobs.
    jobs: Mapped[list[Any]] = mapped_column(default=list)
    error: Mapped[str] = mapped_column(default="")
    started: Mapped[datetime] = mapped_column(default=now)
    finished: Mapped[datetime | None]


class Webhook(Base):
    """Address that gets a request at the end of each job."""

    __tablename__ = "webhooks"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(128), unique=True)
    url: Mapped[str] = mapped_column(String(4096))
    # States of jobs that it is told of.
    states: Mapped[list[Any]]
    # By which bodies are signed; encrypted (ingest.sources.sealed_keys).
    secret: Mapped[str]
    owner: Mapped[str] = mapped_column(String(128))
    # Which user of that name (catalog.values).
    account: Mapped[str] = mapped_column(String(64), default="", server_default=text("''"))
    # It is told of jobs that ended later.
    created: Mapped[datetime] = mapped_column(default=now)


class WebhookDelivery(Base):
    """Delivery of one job's end to one webhook."""

    __tablename__ = "webhook_deliveries"
    __table_args__ = (UniqueConstraint("webhook_id", "job", "ended"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    webhook_id: Mapped[int] = mapped_column(ForeignKey("webhooks.id", ondelete="CASCADE"))
    # What the receiver knows it by: the same at every try.
    delivery: Mapped[str] = mapped_column(String(32))
    job: Mapped[str] = mapped_column(String(128))
    ended: Mapped[datetime]
    body: Mapped[str]
    # "pending", "delivered" or "failed".
    state: Mapped[str] = mapped_column(String(16))
    tries: Mapped[int] = mapped_column(default=0)
    # HTTP status of the last answer.
    status: Mapped[int | None]
    error: Mapped[str] = mapped_column(default="")
    # When it is tried next.
    due: Mapped[datetime] = mapped_column(default=now)
    created: Mapped[datetime] = mapped_column(default=now)
    tried: Mapped[datetime | None]
