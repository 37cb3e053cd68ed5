"""A source to be added, as it is asked for."""

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from catalog.text.bounded import Text
from ingest.sources.schemes import PLACES

SOURCE_NAME = r"^[A-Za-z0-9_][A-Za-z0-9._-]*$"
"""What a source may be called: a part of paths and file names that means nothing else there."""


class NewSource(BaseModel):
    """A source to be added."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(
        max_length=128,
        pattern=SOURCE_NAME,
        description="Letters, digits, '.', '_' and '-'; begins with a letter, a digit or '_'.",
        examples=["a2d2"],
    )
    uri: str = Field(
        min_length=1,
        max_length=4096,
        description=PLACES,
        examples=["s3://a2d2/camera_lidar_semantic"],
    )
    platform: str = Field(default="local", max_length=32, examples=["IBM COS"])
    cluster: str = Field(
        default="local", max_length=64, description="Cluster or host that serves it."
    )
    datasource: str | None = Field(
        default=None,
        max_length=1024,
        description="Bucket or export name; the source's name by default.",
    )
    site: str = Field(default="", max_length=16, description="Free text.")
    endpoint_url: str = Field(
        default="",
        max_length=2048,
        description="Server that speaks S3, such as IBM COS, by https; AWS by default.",
        examples=["https://s3.eu-de.cloud-object-storage.appdomain.cloud"],
    )
    anonymous: bool = Field(default=False, description="Ask S3 unsigned.")
    profile: str = Field(
        default="",
        max_length=256,
        description="Profile of the server's ~/.aws/config with the keys.",
        examples=["a2d2"],
    )
    access_key: str = Field(
        default="",
        max_length=256,
        description="In place of a profile, with `secret_key`. Kept encrypted, never shown.",
    )
    secret_key: SecretStr = Field(default=SecretStr(""), max_length=1024)
    region: str = Field(default="", max_length=64, description="Region of the bucket.")
    ca_bundle: str = Field(
        default="", max_length=4096, description="PEM file of authorities to trust; admins only."
    )
    verify_tls: bool = Field(default=True, description="Check the S3 server's certificate.")
    part_of: str = Field(
        default="",
        max_length=128,
        description="Data set that it is a part of, with other sources: extractors look for a "
        "frame's files in all of them. Its own name by default.",
        examples=["a2d2"],
    )
    exclude: list[Text] = Field(
        default=[],
        max_length=100,
        fail_fast=True,
        description="What to leave out: names (`lost+found`, `*.bak`) of files and folders at any "
        "depth, or paths below the root. What of it is catalogued leaves with the next scan.",
        examples=[["lost+found", ".snapshot"]],
    )


class SourceChange(BaseModel):
    """What of a source is changed: what is not sent stays."""

    model_config = ConfigDict(extra="forbid")

    uri: str | None = Field(
        default=None,
        min_length=1,
        max_length=4096,
        description=f"Where its files lie now. {PLACES}",
        examples=["/mnt/new/camera_lidar_semantic"],
    )
    differing: bool = Field(
        default=False,
        description="With `uri`: also where catalogued files are missing or changed there.",
    )
    exclude: list[Text] | None = Field(
        default=None,
        max_length=100,
        fail_fast=True,
        description="What to leave out from the next scan on, in place of the present list; an "
        "empty list leaves out nothing.",
        examples=[["lost+found", ".snapshot"]],
    )
    part_of: str | None = Field(
        default=None,
        max_length=128,
        description="Data set that it is a part of from now on; its own where empty.",
        examples=["a2d2"],
    )
