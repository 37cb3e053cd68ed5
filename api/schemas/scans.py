"""Scans as JSON."""

from typing import TYPE_CHECKING, Any, Literal

from pydantic import ConfigDict, Field

from api.schemas import home_orders
from api.schemas.base import EXAMPLE_TIME, PageAnswer, Schema, finite, iso_time
from api.schemas.order_bodies import body_of

if TYPE_CHECKING:  # commands that ask a server do without the records' database
    from catalog.records.tables import Scan

ScanState = Literal["running", "done", "failed"]


class ScanBody(Schema):
    """A scan."""

    scan: int = Field(description="Its number.", examples=[3])
    source: str = Field(examples=["a2d2"])
    kind: str = Field(description="scan or watch", examples=["scan"])
    state: str = Field(description="running, done or failed", examples=["done"])
    error: str = Field(examples=[""])
    started: str = Field(examples=[EXAMPLE_TIME])
    finished: str | None = Field(examples=[EXAMPLE_TIME])
    seconds: float = Field(description="How long it took, or has taken [s].", examples=[12.5])
    counts: dict[str, Any] = Field(
        description="Files, frames, rates, and while it runs eta_s.",
        examples=[{"files": 48, "frames": 24, "bad_files": 0}],
    )

    @classmethod
    def of(cls, scan: "Scan", source: str) -> "ScanBody":
        """A record's; ``counts`` with rates and, while it runs, eta_s."""
        from catalog.values import now

        ended = scan.finished or now()
        return cls(
            scan=scan.id,
            source=source,
            kind=scan.kind,
            state=scan.state,
            error=scan.error,
            started=iso_time(scan.started),
            finished=None if scan.finished is None else iso_time(scan.finished),
            seconds=round((ended - scan.started).total_seconds(), 3),
            counts=finite(scan.counts),
        )


class ScansAnswer(PageAnswer):
    """Scans, newest first."""

    scans: list[ScanBody]


class ScanStatus(Schema):
    """Where the newest scan of a source stands, from when it is asked for."""

    source: str
    state: Literal["running", "done", "failed", "stopped"]
    error: str = Field(description="Why it failed; else empty.")
    started: str
    finished: str | None
    files: int = Field(description="Files that it has listed.")
    indexed: int = Field(description="Files that are in the catalog as it found them.")


class ScanProgress(Schema):
    """Progress of the running scan of a source."""

    source: str
    kind: str = Field(description="scan or watch")
    files: int = Field(description="Files that it has listed.")
    files_per_s: float
    seconds: float = Field(description="How long it had run at its last report [s].")


class ProblemBody(Schema):
    """The fault of a file."""

    kind: str = Field(examples=["bad_file"])
    key: str = Field(examples=["camera_lidar_semantic/20180807_145028/label/x.png"])
    reason: str = Field(examples=["is cut short"])


class ProblemsAnswer(PageAnswer):
    """Problems in the order they were met."""

    problems: list[ProblemBody]


@body_of(home_orders.LabelCheck)
class NewLabelCheck(Schema):
    """Labels to be looked at."""

    model_config = ConfigDict(extra="forbid")


@body_of(home_orders.Scan)
class NewScan(Schema):
    """A scan to be made."""

    model_config = ConfigDict(extra="forbid")
