"""A home, its catalog and the catalog's snapshots as JSON."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

from pydantic import Field

from api.schemas.base import Schema, iso_time

if TYPE_CHECKING:  # commands on one of the two stores do without the other's database
    from catalog.lake.snapshots import Snapshot
    from catalog.maintenance.snapshot_diff import TagChange


class InfoAnswer(Schema):
    """The home that is served."""

    home: str = Field(
        description="Folder, on the server; empty for users limited to collections.",
        examples=["/data/framesift"],
    )
    metadata: str = Field(
        description="SQLite file or PostgreSQL database of the catalog's metadata; empty where "
        "`home` is.",
        examples=["/data/framesift/catalog/catalog.sqlite"],
    )
    data: str = Field(
        description="Folder or S3 prefix of the catalog's Parquet files; empty where `home` is.",
        examples=["s3://perception/framesift"],
    )
    records: str = Field(
        description="SQLite file or PostgreSQL database of sources, datasets and jobs; empty "
        "where `home` is.",
        examples=["/data/framesift/records/records.sqlite"],
    )
    cache: str = Field(
        description="Folder of staged datasets; empty where `home` is.", examples=["/fast/cache"]
    )
    snapshot: int = Field(description="The catalog's newest.", examples=[12])
    files: int = Field(examples=[82554])
    frames: int = Field(description="Labelled ones.", examples=[41277])
    tags: int = Field(examples=[61])
    sources: int = Field(examples=[1])
    datasets: int = Field(
        description="Versions of datasets: of a user limited to collections those of their own.",
        examples=[4],
    )
    jobs: int = Field(
        description="Jobs: of a user limited to collections those of their own.",
        examples=[7],
    )
    uncompacted_files: int = Field(
        description="Data files that commits added to a table, the one with the most, since the "
        "last compaction; 0 where `home` is empty.",
        examples=[12],
    )
    compacted: str | None = Field(
        description="When that was; null where there was none, or `home` is empty.",
        examples=["2026-11-27T03:17:05Z"],
    )


class SnapshotBody(Schema):
    """A snapshot: when, by whom, what for, what it changed, how much there is."""

    snapshot: int
    time: str
    author: str
    reason: str
    changed: list[str]
    files: int
    frames: int

    @classmethod
    def of(cls, snapshot: "Snapshot") -> "SnapshotBody":
        """The catalog's."""
        commit = snapshot.commit
        return cls(
            snapshot=commit.number,
            time=iso_time(commit.time),
            author=commit.author,
            reason=commit.reason,
            changed=list(commit.tables),
            files=snapshot.files,
            frames=snapshot.frames,
        )


class TagChangeBody(Schema):
    """A tag of a file before and after; times as ISO 8601."""

    fkey: str
    tag: str
    before: Any
    after: Any

    @classmethod
    def of(cls, change: "TagChange") -> "TagChangeBody":
        """The catalog's."""
        before, after = (
            value.isoformat() if isinstance(value, datetime) else value
            for value in (change.before, change.after)
        )
        return cls(fkey=change.fkey, tag=change.tag, before=before, after=after)
