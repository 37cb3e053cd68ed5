"""Settings, read once from the environment; everything below api/ gets arguments."""

from pathlib import Path

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from catalog.errors import InvalidInput


class Settings(BaseSettings):
    """What ``FRAMESIFT_*`` variables say."""

    model_config = SettingsConfigDict(env_prefix="FRAMESIFT_", frozen=True)

    home: Path = Field(
        default_factory=lambda: Path.home() / ".framesift",
        description="Folder of catalog, records, datasets and jobs.",
    )
    cache: Path | None = Field(
        default=None, description="Folder that datasets are staged into; HOME/cache by default."
    )
    catalog_metadata: SecretStr | None = Field(
        default=None,
        description="postgresql:// URL of the catalog's metadata, or path of a SQLite file; "
        "HOME/catalog/catalog.sqlite by default.",
    )
    catalog_data: str | None = Field(
        default=None,
        description="s3://bucket/prefix or folder of the catalog's Parquet files; "
        "HOME/catalog/data by default.",
    )
    catalog_s3_endpoint: str = Field(
        default="", description="Server that speaks S3 for the catalog's data; AWS by default."
    )
    catalog_s3_profile: str = Field(
        default="", description="Profile of ~/.aws/config with the keys to the catalog's data."
    )
    catalog_s3_region: str = Field(default="", description="Region of the catalog's bucket.")
    catalog_s3_ca_bundle: str = Field(
        default="", description="PEM file of authorities to trust for the catalog's S3 server."
    )
    records: SecretStr | None = Field(
        default=None,
        description="postgresql:// URL of the records, or path of a SQLite file; "
        "HOME/records/records.sqlite by default.",
    )
    lock_wait_s: float = Field(
        default=60.0, gt=0, description="How long a write waits for another one [s]."
    )
    query_timeout_s: float = Field(
        default=600.0, gt=0, description="How long a query may take [s]."
    )
    query_memory: str = Field(
        default="2GB",
        pattern=r"^\d+(\.\d+)? ?([KMGT]i?B)$",
        description="Memory that a process's queries may take.",
    )
    hot_memory_mb: int | None = Field(
        default=None,
        ge=0,
        description="Memory in which a server holds the newest snapshot [MB]; 0 holds none. "
        "A quarter of the machine's by default.",
    )
    query_max_rows: int = Field(
        default=1_000_000, gt=0, description="Rows that one statement may return."
    )


def read_settings() -> Settings:
    """The settings of this process.

    Raises:
        InvalidInput: A variable's value cannot be used; the message names it.
    """
    try:
        return Settings()
    except ValidationError as error:
        found = error.errors()[0]
        name = "FRAMESIFT_" + "_".join(str(part) for part in found["loc"]).upper()
        raise InvalidInput(f"{name}={found['input']}: {found['msg']}") from error
