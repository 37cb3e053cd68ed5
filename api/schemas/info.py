"""A home as JSON."""

from pydantic import Field

from api.schemas.base import Schema


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
