"""The cache as JSON."""

from pydantic import ConfigDict, Field

from api.schemas.base import EXAMPLE_TIME, PageAnswer, Schema
from pipeline.afm.target import TARGET

_NONE = "null: not limited."

FILESETS = f"AFM filesets that release it, in place of the cache: {TARGET}."
"""The query parameter of an eviction."""

FILESETS_WITH = f"AFM filesets that are looked at, in place of the cache: {TARGET}."
"""The query parameter of a list of contents."""

_DATASET = "NAME@VERSION; for the NAME of a removed dataset its versions, with commas."


class CacheLimits(Schema):
    """Limits of a cache, the same for all who share it."""

    cache: str = Field(description="Its folder.", examples=["/fast/cache"])
    soft_bytes: int | None = Field(
        description=f"A staging evicts down to it at its end; {_NONE}", examples=[900_000_000_000]
    )
    hard_bytes: int | None = Field(
        description=f"Never passed; {_NONE}", examples=[1_000_000_000_000]
    )
    soft_files: int | None = Field(description="The same in files.", examples=[None])
    hard_files: int | None = Field(description="The same in files.", examples=[2_000_000])
    free_bytes: int = Field(
        description="What must stay free on its file system.", examples=[50_000_000_000]
    )
    user_bytes: int | None = Field(
        description=f"What the datasets that one user has staged may take; {_NONE}",
        examples=[None],
    )


class CacheLimitsChange(Schema):
    """Limits to be set; the others stay."""

    model_config = ConfigDict(extra="forbid")

    soft_bytes: int | None = Field(default=None, ge=0, description=_NONE, examples=[None])
    hard_bytes: int | None = Field(default=None, ge=0, description=_NONE)
    soft_files: int | None = Field(default=None, ge=0, description=_NONE)
    hard_files: int | None = Field(default=None, ge=0, description=_NONE)
    free_bytes: int = Field(default=0, ge=0, description="What must stay free.")
    user_bytes: int | None = Field(default=None, ge=0, description=_NONE)


class CachePin(Schema):
    """A dataset in the cache, and whether it is kept."""

    dataset: str = Field(description=_DATASET, examples=["bikes@1"])
    pinned: bool = Field(description="Whether it is never evicted.", examples=[True])


class CacheEviction(Schema):
    """Space that the eviction of a dataset freed."""

    dataset: str = Field(description=_DATASET, examples=["bikes@1"])
    bytes: int = Field(description="That are free now.", examples=[912345678])
    files: int = Field(description="That are gone.", examples=[320])


class CachedFile(Schema):
    """A file of a dataset that is cached, or is not."""

    source: str = Field(examples=["a2d2"])
    file: str = Field(
        description="Its key below the source.",
        examples=["20180807_145028/label/cam_front_center/x.png"],
    )
    bytes: int = Field(examples=[2_987_654])


class CacheContents(PageAnswer):
    """Files of a dataset by source and key."""

    files: list[CachedFile]


class CacheSpace(Schema):
    """Space in a cache."""

    bytes: int = Field(examples=[912345678])
    files: int = Field(examples=[320])


class CacheLease(Schema):
    """A running job or staging that uses a staged dataset, which therefore stays."""

    dataset: str = Field(examples=["bikes@1"])
    job: str = Field(description='"" for a staging.', examples=["train-bikes-7"])
    user: str = Field(description='"" where none is known.', examples=["ada"])
    host: str = Field(examples=["node7"])
    pid: int = Field(description="Of its process there.", examples=[4711])
    reserved_bytes: int = Field(description="Room for what is still to come.", examples=[0])


class CachedDatasetBody(Schema):
    """A staged dataset."""

    dataset: str = Field(examples=["bikes@1"])
    bytes: int = Field(description="Its files there; shared ones count for each.", examples=[10**9])
    files: int = Field(examples=[320])
    alone_bytes: int = Field(description="Of files that no other one has.", examples=[10**8])
    prepared_bytes: int = Field(description="Of its decoded frames.", examples=[0])
    used: str = Field(description="When it was last used.", examples=[EXAMPLE_TIME])
    pinned: bool = Field(examples=[False])
    users: list[str] = Field(description="Who staged it.", examples=[["ada"]])
    leases: int = Field(description="Running jobs and stagings that use it.", examples=[1])


class CachedSource(CacheSpace):
    """The files of a source in a cache."""

    source: str = Field(description="CLUSTER:DATASOURCE.", examples=["local:a2d2"])


class CacheStatusAnswer(CacheSpace):
    """Space that a cache's files and decoded frames take."""

    limits: CacheLimits
    free_bytes: int = Field(description="Free on its file system.", examples=[10**11])
    datasets: list[CachedDatasetBody] = Field(description="The one used last first.")
    sources: list[CachedSource] = Field(description="The largest first.")
    prepared: CacheSpace = Field(description="Decoded frames of all datasets.")
    unnamed: CacheSpace = Field(description="Files that no staged dataset has.")
    leases: list[CacheLease]
