"""Sources as JSON."""

from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import ConfigDict, Field, SecretStr

from api.schemas.base import PageAnswer, Schema, Versioned
from catalog.text.bounded import Content, Text
from ingest.sources.mount import MOUNT
from ingest.sources.schemes import PLACES
from ingest.sources.source_options import SourceOptions

if TYPE_CHECKING:  # commands that ask a server do without the records' database
    from catalog.records.tables import Source

Platform = Literal["IBM COS", "S3", "NFS", "Spectrum Scale", "SMB/CIFS", "local"]

SOURCE_NAME = r"^[A-Za-z0-9_][A-Za-z0-9._-]*$"
"""Pattern of a source's name, which becomes part of paths and file names and has no special meaning
there."""


_MB_PER_S = (
    "Megabytes (10^6 bytes) a second that a staging fetches from it at most; 0 for any number."
)
_REQUESTS_PER_S = "Requests for its files that a staging sends a second at most; 0 for any number."


_LAYOUT = (
    "How its files are named and what a label's pixels mean: a preset's name (framesift layout "
    "list), or a document with the keys of a layout file."
)


class SourceBody(Versioned):
    """A source."""

    name: str = Field(examples=["a2d2"])
    uri: str = Field(examples=["s3://a2d2/camera_lidar_semantic"])
    platform: str = Field(examples=["IBM COS"])
    cluster: str = Field(examples=["s3.eu-de.example"])
    datasource: str = Field(examples=["a2d2"])
    site: str = Field(examples=["Munich"])
    part_of: str = Field(
        description="Data set that it is a part of; its own name unless another was given.",
        examples=["a2d2"],
    )
    layout: str = Field(
        default="",
        description="Name of the layout that it was given, or that of its last scan; empty before, "
        "where its names are to tell.",
        examples=["a2d2"],
    )
    options: dict[str, Any] = Field(
        description="How it is reached; never a secret.",
        examples=[{"endpoint_url": "https://s3.eu-de.example", "profile": "a2d2"}],
    )

    @classmethod
    def of(cls, source: "Source") -> Self:
        """A record's."""
        from ingest.sources.recorded import data_set_of  # with the records' database

        return cls(
            name=source.name,
            uri=source.uri,
            platform=source.platform,
            cluster=source.cluster,
            datasource=source.datasource,
            site=source.site,
            part_of=data_set_of(source),
            layout=layout_of(source).get("name", ""),
            options=SourceOptions.from_json(source.options).public(),
        ).of_version(source.version)


def layout_of(source: "Source") -> dict[str, Any]:
    """The document of the layout that a source was given, or was scanned by; empty for none."""
    return source.layout or source.scanned_layout or {}


class SourceShown(SourceBody):
    """A source with its layout."""

    layout_document: dict[str, Any] = Field(
        default={},
        description="The layout, with the keys of a layout file.",
        examples=[
            {"name": "pairs", "images": "images/{frame}.jpg", "labels": "labels/{frame}.png"}
        ],
    )

    @classmethod
    def with_layout(cls, source: "Source") -> "SourceShown":
        """A record's."""
        return cls.of(source).model_copy(update={"layout_document": layout_of(source)})


class SourceAdded(SourceBody):
    """A source that was added."""

    notes: list[str] = Field(
        default=[],
        description="What its names say of its layout, where none was given.",
        examples=[["looks like cityscapes (1,998 of 2,000 names)"]],
    )

    @classmethod
    def with_notes(cls, source: "Source", notes: list[str]) -> "SourceAdded":
        """A record's."""
        return cls.of(source).model_copy(update={"notes": notes})


class SourceContents(Schema):
    """Counts of what hangs on a source."""

    name: str = Field(examples=["a2d2"])
    files: int = Field(description="Files that the catalog has of it.", examples=[96])
    frames: int = Field(description="Labelled frames.", examples=[24])
    tags: dict[str, int] = Field(
        description="Files with tags that people gave, by tag family: those that no scan and no "
        "extractor gives again.",
        examples=[{"weather": 24}],
    )
    datasets: list[str] = Field(
        description="Datasets with frames of it.", examples=[["val-bikes@1"]]
    )


class SourcesAnswer(PageAnswer):
    """Sources by name."""

    sources: list[SourceBody]


class NewSource(Schema):
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
    anonymous: bool = Field(default=False, description="Send unsigned requests to S3.")
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
    layout: Text | Content = Field(
        default="", description=f"{_LAYOUT} Its names tell where empty.", examples=["cityscapes"]
    )
    exclude: list[Text] = Field(
        default=[],
        max_length=100,
        fail_fast=True,
        description="What to leave out: names (`lost+found`, `*.bak`) of files and folders at any "
        "depth, or paths below the root. What of it is catalogued leaves with the next scan.",
        examples=[["lost+found", ".snapshot"]],
    )
    mount: str = Field(
        default="",
        max_length=8192,
        description=f"Its root on a mounted file system, {MOUNT}: jobs that read without staging, "
        "and AFM, find its files there. Admins only.",
        examples=["/gpfs/ess3000_4M/a2d2_cos:/data/a2d2"],
    )
    max_mb_per_s: float = Field(default=0, ge=0, description=_MB_PER_S, examples=[250])
    max_requests_per_s: float = Field(default=0, ge=0, description=_REQUESTS_PER_S, examples=[100])


class NewConnection(NewSource):
    """A source, and what else clients of Spectrum Discover say of a connection; only shown."""

    host: str = Field(default="", max_length=256)
    user: str = Field(default="", max_length=256)


class ConnectionBody(SourceBody):
    """A source as it stands."""

    is_local: bool = Field(description="Whether it is a folder or archive of this machine.")
    online: bool = Field(description="Whether the last scan could read it.")
    files: int = Field(description="Files that the catalog has of it.")


class SourceChange(Schema):
    """Fields of a source to change: those that are not sent stay."""

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
    layout: Text | Content | None = Field(
        default=None,
        description=f"{_LAYOUT} Where it pairs files otherwise than the last scan, or its classes "
        "differ, the next scan reads every label again. Empty: its names tell.",
        examples=["cityscapes"],
    )
    mount: str | None = Field(
        default=None,
        max_length=8192,
        description=f"Its root on a mounted file system, {MOUNT}; empty for none. Admins only.",
        examples=["/gpfs/ess3000_4M/a2d2_cos:/data/a2d2"],
    )
    max_mb_per_s: float | None = Field(default=None, ge=0, description=_MB_PER_S, examples=[250])
    max_requests_per_s: float | None = Field(
        default=None, ge=0, description=_REQUESTS_PER_S, examples=[100]
    )


class SourceChanged(Schema):
    """A source as it is now; where it was moved, what lies there of what is catalogued."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(examples=["a2d2"])
    uri: str = Field(examples=["/mnt/new/camera_lidar_semantic"])
    exclude: list[str] = Field(
        description="What the next scan leaves out.", examples=[["lost+found", ".snapshot"]]
    )
    part_of: str = Field(description="Data set that it is a part of.", examples=["a2d2"])
    layout: str = Field(
        default="", description="Name of the layout that it was given.", examples=["cityscapes"]
    )
    mount: str = Field(
        default="",
        description="Its root on a mounted file system; empty where there is none.",
        examples=[""],
    )
    max_mb_per_s: float = Field(default=0, description=_MB_PER_S, examples=[250])
    max_requests_per_s: float = Field(default=0, description=_REQUESTS_PER_S, examples=[0])
    same: int | None = Field(
        description="Files that are as they are catalogued; this and the following null where no "
        "`uri` was sent.",
        examples=[48],
    )
    changed: int | None = Field(
        description="Files of another size, ETag or time of last change.", examples=[0]
    )
    missing: int | None = Field(
        description="Files that are catalogued and not there.", examples=[0]
    )
    new: int | None = Field(description="Files that are there and not catalogued.", examples=[2])


class SourceRemoved(Schema):
    """A source that is no more."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(examples=["a2d2"])
    files_removed: int = Field(description="Rows taken out of the catalog.", examples=[48])
