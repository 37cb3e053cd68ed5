"""Stagings as JSON."""

from typing import TYPE_CHECKING

from pydantic import ConfigDict, Field

from api.schemas.base import EXAMPLE_TIME, PageAnswer, Schema, TellPath, iso_time
from catalog.text.bounded import Name

if TYPE_CHECKING:  # commands that ask a server do without the records' database
    from catalog.records.tables import Staging


class StagingBody(Schema):
    """A dataset's files brought into a cache."""

    staging: int = Field(description="Its number.", examples=[2])
    dataset: str = Field(examples=["bikes@1"])
    state: str = Field(examples=["done"])
    created: str = Field(examples=[EXAMPLE_TIME])
    cache: str = Field(examples=["/fast/cache"])
    manifest: str = Field(examples=["/fast/cache/.manifests/bikes-v1-5d41402abc4b"])
    files: int = Field(examples=[320])
    files_copied: int = Field(examples=[320])
    bytes: int = Field(examples=[912345678])
    bytes_copied: int = Field(examples=[912345678])

    @classmethod
    def of(cls, staging: "Staging", dataset: str, tell: TellPath = str) -> "StagingBody":
        """A record's, of the dataset "name@version"; paths as ``tell`` tells them."""
        return cls(
            staging=staging.id,
            dataset=dataset,
            state=staging.state,
            created=iso_time(staging.created),
            cache=tell(staging.cache),
            manifest=tell(staging.manifest),
            files=staging.files,
            files_copied=staging.files_copied,
            bytes=staging.bytes,
            bytes_copied=staging.bytes_copied,
        )


class StagingsAnswer(PageAnswer):
    """Stagings, newest first."""

    stagings: list[StagingBody]


class NewStaging(Schema):
    """A dataset to be staged."""

    model_config = ConfigDict(extra="forbid")

    dataset: Name = Field(description="NAME, or NAME@VERSION.", examples=["bikes@1"])
    workers: int = Field(default=4, ge=1, le=256, description="Files fetched at once.")
    verify: bool = Field(
        default=False,
        description="Read what is in the cache again, and fetch what is damaged.",
    )
    prepare: str | None = Field(
        default=None,
        max_length=9,
        description="Also decode the frames once, at this size: WIDTHxHEIGHT in pixels.",
        examples=["240x152"],
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
