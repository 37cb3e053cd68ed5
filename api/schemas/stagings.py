"""Stagings as JSON."""

from typing import TYPE_CHECKING, Annotated

from pydantic import ConfigDict, Field

from api.schemas import home_orders
from api.schemas.base import EXAMPLE_TIME, PageAnswer, Schema, TellPath, iso_time
from api.schemas.order_bodies import body_of
from catalog.text.bounded import Text

if TYPE_CHECKING:  # commands that ask a server do without the records' database
    from catalog.records.tables import Staging


class StagingBody(Schema):
    """A dataset's files brought into a cache, or an attempt at it."""

    staging: int = Field(description="Its number.", examples=[2])
    dataset: str = Field(examples=["bikes@1"])
    state: str = Field(description="done or failed.", examples=["done"])
    error: str = Field(
        default="",
        description="Why it failed; empty for users who see some rows only, whose job says it.",
        examples=[""],
    )
    created: str = Field(examples=[EXAMPLE_TIME])
    cache: str = Field(examples=["/fast/cache"])
    manifest: str = Field(examples=["/fast/cache/.manifests/bikes-v1-5d41402abc4b"])
    files: int = Field(examples=[320])
    files_copied: int = Field(examples=[320])
    bytes: int = Field(examples=[912345678])
    bytes_copied: int = Field(examples=[912345678])

    @classmethod
    def of(cls, staging: "Staging", dataset: str, path_text: TellPath = str) -> "StagingBody":
        """A record's, of the dataset "name@version"; paths as ``path_text`` gives them."""
        return cls(
            staging=staging.id,
            dataset=dataset,
            state=staging.state,
            error=staging.error,
            created=iso_time(staging.created),
            cache=path_text(staging.cache),
            manifest=path_text(staging.manifest),
            files=staging.files,
            files_copied=staging.files_copied,
            bytes=staging.bytes,
            bytes_copied=staging.bytes_copied,
        )


class StagingsAnswer(PageAnswer):
    """Stagings, newest first."""

    stagings: list[StagingBody]


class StagingPlanBody(Schema):
    """The work of a staging, as it stood at its beginning."""

    files: int = Field(description="Files of the dataset.", examples=[320])
    bytes: int = Field(description="Their size.", examples=[912345678])
    missing_files: int = Field(description="Those that were not in the cache.", examples=[200])
    missing_bytes: int = Field(description="Their size.", examples=[570216048])


class StagingProgressBody(Schema):
    """Progress of a staging; at most a few seconds old."""

    files: int = Field(description="Files in the cache, checked.", examples=[170])
    of_files: int = Field(description="Files of the dataset.", examples=[320])
    bytes: int = Field(description="Size of those in the cache.", examples=[484683641])
    of_bytes: int = Field(description="Size of the dataset.", examples=[912345678])
    queued: int = Field(description="Files still to come.", examples=[149])
    done: int = Field(description="Files that have come.", examples=[50])
    failed: int = Field(description="Files that cannot be had.", examples=[1])
    recalling: int = Field(
        default=0,
        description="Files that an archive (tape, Glacier) brings back before they are fetched.",
        examples=[0],
    )
    fetched_bytes: int = Field(
        description="Bytes that this staging has fetched; others may fetch some of its files.",
        examples=[142554012],
    )
    seconds: float = Field(description="Since it began to fetch [s].", examples=[1.5])
    mb_per_s: float = Field(description="Fetched [MB/s].", examples=[95.0])
    eta_s: float | None = Field(description="Time left [s]; null: unknown.", examples=[4.5])


class RunningStagingBody(Schema):
    """A staging that runs, or waits to."""

    name: str = Field(
        description="The job's name; where a command stages, the staging's own in its cache.",
        examples=["stage-bikes-8"],
    )
    dataset: str = Field(description="NAME@VERSION.", examples=["bikes@1"])
    state: str = Field(
        description="pending or queued: its job waits for a slot; running; cancelling.",
        examples=["running"],
    )
    job: str | None = Field(
        description="The job that does it; null for a command, and for another home's.",
        examples=["stage-bikes-8"],
    )
    user: str = Field(description="Whose it is; empty where unknown.", examples=["anna"])
    host: str = Field(description="Where it runs; empty while it waits.", examples=["node7"])
    began: str | None = Field(description="By its host's clock.", examples=[EXAMPLE_TIME])
    plan: StagingPlanBody | None = Field(description="null until it is made.")
    progress: StagingProgressBody | None = Field(description="null until it fetches.")


class RunningStagingsAnswer(Schema):
    """Stagings that run or wait to, the newest first."""

    running: list[RunningStagingBody] = Field(description="Those.")


@body_of(home_orders.Staging)
class NewStaging(Schema):
    """A dataset to be staged."""

    model_config = ConfigDict(extra="forbid")

    to: Annotated[list[Text], Field(fail_fast=True)]


class ForesightBody(Schema):
    """The plan of a staging; the server fetched and evicted nothing."""

    dataset: str = Field(examples=["bikes@1"])
    files: int = Field(description="Files of the dataset.", examples=[320])
    bytes: int = Field(examples=[912345678])
    missing_files: int = Field(description="Those that would be fetched.", examples=[120])
    missing_bytes: int = Field(examples=[342129629])
    fits: bool = Field(description="Whether the cache has room for them, after evictions.")
    why: str = Field(description="The limit that allows no more; else empty.", examples=[""])
    holders: list[str] = Field(
        description="Running jobs and pins that hold the space, where it does not fit.",
        examples=[[]],
    )
    evicted_datasets: list[str] = Field(
        description="Staged datasets that would be evicted.", examples=[["night@2"]]
    )
    evicted_bytes: int = Field(examples=[120000000])
    seconds: float | None = Field(
        description="How long it takes at the rate that earlier stagings had [s]; null where a "
        "source has none yet.",
        examples=[4.2],
    )


class PreparedBody(Schema):
    """A dataset's frames, decoded once at one size."""

    size: str
    folder: str
    frames: int
    made: int
    bytes: int


class Staged(Schema):
    """The result of a staging."""

    dataset: str
    version: int
    cache: str
    manifest: str
    files: int
    files_copied: int
    bytes: int
    bytes_copied: int
    damaged: list[str]
    prepared: PreparedBody | None = None
