"""SQLAlchemy tables of the records: sources, scans, datasets, stagings, jobs."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    DateTime,
    Double,
    ForeignKey,
    Index,
    String,
    UniqueConstraint,
    cast,
    false,
    select,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, column_property, mapped_column, relationship

from catalog.records.paths import PathsJson, PathText
from catalog.records.versions import VersionedRecord
from catalog.values import now


class Base(DeclarativeBase):
    """Base of all tables of records."""

    type_annotation_map = {dict[str, Any]: JSON, list[Any]: JSON, datetime: DateTime}  # noqa: RUF012


class Source(VersionedRecord, Base):
    """A place that holds files."""

    __tablename__ = "sources"
    # (cluster, datasource) begins every fkey, so two sources must not share it.
    __table_args__ = (UniqueConstraint("cluster", "datasource"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(128), unique=True)
    uri: Mapped[str] = mapped_column(String(4096))
    platform: Mapped[str] = mapped_column(String(32))
    cluster: Mapped[str] = mapped_column(String(64))
    datasource: Mapped[str] = mapped_column(String(1024))
    site: Mapped[str] = mapped_column(String(16), default="")
    # How to reach it: endpoint, profile, encrypted keys (ingest.sources.source_options).
    options: Mapped[dict[str, Any]] = mapped_column(default=dict)
    # Layout that it was given (ingest.layouts); none where its files say which it is.
    layout: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True), default=None)
    # Classes and layout of its last whole scan; empty and none before the first.
    class_list: Mapped[dict[str, Any]] = mapped_column(default=dict)
    scanned_layout: Mapped[dict[str, Any] | None] = mapped_column(
        JSON(none_as_null=True), default=None
    )
    created: Mapped[datetime] = mapped_column(default=now)


class Scan(Base):
    """One run of ingest over a source."""

    __tablename__ = "scans"

    id: Mapped[int] = mapped_column(primary_key=True)
    source_id: Mapped[int] = mapped_column(ForeignKey("sources.id", ondelete="CASCADE"), index=True)
    # "scan", or "watch": a watcher's, for as long as it runs.
    kind: Mapped[str] = mapped_column(String(16), default="scan", server_default="scan")
    state: Mapped[str] = mapped_column(String(16))
    started: Mapped[datetime] = mapped_column(default=now)
    finished: Mapped[datetime | None]
    # What ingest.scan.scan_counts.ScanCounts holds.
    counts: Mapped[dict[str, Any]] = mapped_column(default=dict)
    error: Mapped[str] = mapped_column(default="")
    # Number of the snapshot whose duplicates it marked, all of them: what later commits changed is
    # what a later scan looks at (ingest.scan.find_duplicates).
    marked_snapshot: Mapped[int | None] = mapped_column(BigInteger, default=None)


class ScanProblem(Base):
    """A file that a scan could not use, or that lacks its partner."""

    __tablename__ = "scan_problems"
    __table_args__ = (Index("problems_by_file", "source_id", "key"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    source_id: Mapped[int] = mapped_column(ForeignKey("sources.id", ondelete="CASCADE"))
    # The scan that met it; later ones do not look at the file again before it changes.
    scan_id: Mapped[int] = mapped_column(ForeignKey("scans.id", ondelete="CASCADE"), index=True)
    kind: Mapped[str] = mapped_column(String(32))
    key: Mapped[str] = mapped_column(String(4096))
    reason: Mapped[str]


class TagDefinition(Base):
    """The meaning of a tag; that it exists, and its type, the catalog itself says."""

    __tablename__ = "tag_definitions"

    tag: Mapped[str] = mapped_column(String(256), primary_key=True)
    family: Mapped[str] = mapped_column(String(64))
    # Spectrum Discover's kind: Open, Restricted or Characteristics.
    kind: Mapped[str] = mapped_column(String(32), default="Characteristics")
    # For a class tag the class's name, such as "RD normal street".
    title: Mapped[str] = mapped_column(String(256), default="")
    position: Mapped[int]


class Dataset(Base):
    """A saved, named, versioned, immutable selection."""

    __tablename__ = "datasets"
    __table_args__ = (UniqueConstraint("name", "version"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(128), index=True)
    version: Mapped[int]
    content_id: Mapped[str] = mapped_column(String(64))
    question: Mapped[dict[str, Any]]
    snapshot: Mapped[int]
    frames: Mapped[int]
    splits: Mapped[dict[str, Any]]
    class_pixels: Mapped[dict[str, Any]]
    # Folder or s3:// URI; read by pipeline.manifest_store.
    manifest: Mapped[str] = mapped_column(PathText(4096))
    # Decimal digits: a seed may be larger than any integer column.
    seed: Mapped[str] = mapped_column(String(64), default="0")
    # Frames that contain each class.
    class_frames: Mapped[dict[str, Any]] = mapped_column(default=dict)
    # "name@version" and id of the datasets that it was made from.
    parents: Mapped[list[Any]] = mapped_column(default=list)
    # What was achieved of what was wanted, and how its splits are kept apart.
    report: Mapped[dict[str, Any]] = mapped_column(default=dict)
    # Name of the user who made it; empty where it was made on the machine's own command line, or
    # the user was removed.
    owner: Mapped[str] = mapped_column(String(128), default="", server_default=text("''"))
    # Which user of that name (catalog.values): the account owns it, and not the name.
    account: Mapped[str] = mapped_column(String(64), default="", server_default=text("''"))
    created: Mapped[datetime] = mapped_column(default=now)
    # What its users say of it; no part of its id.
    description: Mapped[str] = mapped_column(String(4096), default="", server_default=text("''"))
    # The name it was made under, where its manifest lies; empty where that is its name still.
    first_name: Mapped[str] = mapped_column(String(128), default="", server_default=text("''"))
    # A removed dataset keeps its row, for the jobs that read it.
    removed: Mapped[datetime | None] = mapped_column(default=None)


class Staging(Base):
    """A dataset's files brought into a cache, or an attempt at it that failed."""

    __tablename__ = "stagings"

    id: Mapped[int] = mapped_column(primary_key=True)
    dataset_id: Mapped[int] = mapped_column(ForeignKey("datasets.id"), index=True)
    state: Mapped[str] = mapped_column(String(16))
    cache: Mapped[str] = mapped_column(PathText(4096))
    manifest: Mapped[str] = mapped_column(PathText(4096))
    files: Mapped[int]
    files_copied: Mapped[int]
    bytes: Mapped[int] = mapped_column(BigInteger)
    bytes_copied: Mapped[int] = mapped_column(BigInteger)
    # Why it failed; empty where it did not.
    error: Mapped[str] = mapped_column(String(4096), default="", server_default=text("''"))
    created: Mapped[datetime] = mapped_column(default=now)


class Job(Base):
    """Training, validation, or a command of this program, on a backend."""

    __tablename__ = "jobs"
    __table_args__ = (Index("jobs_by_state", "state"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(128), unique=True)
    kind: Mapped[str] = mapped_column(String(16))
    backend: Mapped[str] = mapped_column(String(16))
    state: Mapped[str] = mapped_column(String(16))
    dataset_id: Mapped[int | None] = mapped_column(ForeignKey("datasets.id"))
    # "name@version" of the dataset; read only.
    dataset: Mapped[str | None] = column_property(
        select(Dataset.name + "@" + cast(Dataset.version, String))
        .where(Dataset.id == dataset_id)
        .correlate_except(Dataset)
        .scalar_subquery(),
        expire_on_flush=False,  # a dataset keeps its name, and records are read without a session
    )
    # What was asked for, so that it can be asked again.
    request: Mapped[dict[str, Any]] = mapped_column(PathsJson)
    # What the backend knows the job by.
    handle: Mapped[str] = mapped_column(String(256), default="")
    metrics: Mapped[dict[str, Any]] = mapped_column(default=dict)
    paths: Mapped[dict[str, Any]] = mapped_column(PathsJson, default=dict)
    error: Mapped[str] = mapped_column(default="")
    # Name of the user who began it, where that user is limited to collections; else empty.
    owner: Mapped[str] = mapped_column(String(128), default="", server_default=text("''"))
    # Name of the user who began it: of a command, the machine's.
    user: Mapped[str] = mapped_column(String(128), default="", server_default=text("''"))
    # Which user of that name (catalog.values): the account owns it, and not the name.
    account: Mapped[str] = mapped_column(
        String(64), default="", server_default=text("''"), index=True
    )
    # Whether a user asked it to end.
    is_cancelled: Mapped[bool] = mapped_column(default=False, server_default=false())
    created: Mapped[datetime] = mapped_column(default=now)
    # When its last attempt was submitted.
    submitted: Mapped[datetime | None]
    # What it waits for before it begins; empty otherwise.
    waits: Mapped[str] = mapped_column(default="", server_default=text("''"))
    started: Mapped[datetime | None]
    finished: Mapped[datetime | None]
    # Of all its attempts that have ended: cores and GPUs times seconds; seconds that it waited.
    core_s: Mapped[float] = mapped_column(Double, default=0.0, server_default=text("0"))
    gpu_s: Mapped[float] = mapped_column(Double, default=0.0, server_default=text("0"))
    wait_s: Mapped[float] = mapped_column(Double, default=0.0, server_default=text("0"))
    tasks: Mapped[list["Task"]] = relationship(
        order_by="Task.position", lazy="selectin", viewonly=True
    )


class Task(Base):
    """A step of a job."""

    __tablename__ = "tasks"
    __table_args__ = (UniqueConstraint("job_id", "name"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    job_id: Mapped[int] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"))
    position: Mapped[int]
    name: Mapped[str] = mapped_column(String(32))
    state: Mapped[str] = mapped_column(String(16))
    attempt: Mapped[int] = mapped_column(default=1)
    # Attempts that begin without a user's word, the first one included.
    most_attempts: Mapped[int] = mapped_column(default=1)
    backend: Mapped[str] = mapped_column(String(16))
    # Names its attempt on the backend; recorded before it is submitted.
    backend_name: Mapped[str] = mapped_column(String(256), default="")
    handle: Mapped[str] = mapped_column(String(256), default="")
    # What runs, where that is not what the job's own request says.
    request: Mapped[dict[str, Any]] = mapped_column(PathsJson, default=dict)
    error: Mapped[str] = mapped_column(default="")
    waits: Mapped[str] = mapped_column(default="")
    # When its next attempt may begin; null where it may at once.
    not_before: Mapped[datetime | None]
    created: Mapped[datetime] = mapped_column(default=now)
    submitted: Mapped[datetime | None]
    started: Mapped[datetime | None]
    finished: Mapped[datetime | None]


class TaskMove(Base):
    """A change of a task's state; what a job's timeline shows."""

    __tablename__ = "task_moves"

    id: Mapped[int] = mapped_column(primary_key=True)
    job_id: Mapped[int] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), index=True)
    task: Mapped[str] = mapped_column(String(32))
    attempt: Mapped[int]
    before: Mapped[str] = mapped_column(String(16))
    after: Mapped[str] = mapped_column(String(16))
    at: Mapped[datetime] = mapped_column(default=now)
    why: Mapped[str] = mapped_column(default="")


class IdempotencyKey(Base):
    """A client's key of a request, with the answer to send when the client repeats the request."""

    __tablename__ = "kept_answers"
    __table_args__ = (Index("kept_answers_by_until", "until"),)

    # SHA-256 of the caller and the client's key.
    key: Mapped[str] = mapped_column(String(64), primary_key=True)
    # HMAC of the request by the client's key, which is kept nowhere: a body may hold a password.
    digest: Mapped[str] = mapped_column(String(64))
    # Null while the request is under way.
    status: Mapped[int | None]
    headers: Mapped[dict[str, Any]] = mapped_column(default=dict)
    body: Mapped[str] = mapped_column(default="")
    # When it is forgotten; while it is under way, when its worker counts as dead.
    until: Mapped[datetime]
