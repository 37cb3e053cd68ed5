"""Plain data that the parts of Framesift hand to each other."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

OBJECT_PLATFORMS = ("IBM COS", "S3")
"""Platforms whose rows are named as objects: path is the bucket, filename the whole key."""

FILE_PLATFORMS = ("NFS", "Spectrum Scale", "SMB/CIFS", "local")
"""Platforms whose rows are named as files: path is the folder, filename the base name."""

PLATFORMS = OBJECT_PLATFORMS + FILE_PLATFORMS


def now() -> datetime:
    """The time, naive UTC, as every record keeps it."""
    return datetime.now(UTC).replace(tzinfo=None)


def account_of(number: int, created: datetime) -> str:
    """Tells users apart who had the same name, or the same id, one after the other."""
    return f"{number} {created.isoformat()}"


FKEY_CHARACTERS = 2048
"""Longest fkey, as Spectrum Discover has it."""


def make_fkey(cluster: str, datasource: str, key: str) -> str:
    """The catalog's unique name of a file: stable wherever the source is mounted or copied."""
    return f"{cluster}:{datasource}:{key}"


def key_of(fkey: str, cluster: str, datasource: str) -> str:
    """The file's key below its source's root: what make_fkey was given."""
    return fkey.removeprefix(f"{cluster}:{datasource}:")


ARCHIVED = "migrtd"
"""State of a file that lies on tape, or in an archive, and must be brought back to be read."""


@dataclass(frozen=True, slots=True)
class File:
    """One file of a source, as its listing shows it.

    Attributes:
        key: Path below the source's root, with slashes.
        size: Size [bytes].
        mtime: Last change, naive UTC.
        atime: Last access, naive UTC; None where the platform keeps none.
        ctime: Last change of metadata, naive UTC; None where the platform keeps none.
        inode: Inode number, or a number that stands in for it.
        owner: Name of the owning user; empty where unknown.
        group: Name of the owning group; empty where unknown.
        uid: Number of the owning user; None where unknown.
        gid: Number of the owning group; None where unknown.
        permissions: As ls -l prints them, such as "-rw-r--r--"; empty where unknown.
        size_consumed: Space it takes [bytes].
        etag: The object store's mark of this content; empty where there is none.
        state: "resdnt" where it can be read at once, "migrtd" where it must be recalled or restored
            first, "premig" where it can be read and lies in the archive as well; None where the
            source does not tell.
        tier: Its storage class, such as "STANDARD"; None where the source does not tell.
    """

    key: str
    size: int
    mtime: datetime
    atime: datetime | None = None
    ctime: datetime | None = None
    inode: int = 0
    owner: str = ""
    group: str = ""
    uid: int | None = None
    gid: int | None = None
    permissions: str = ""
    size_consumed: int = 0
    etag: str = ""
    state: str | None = None
    tier: str | None = None

    @property
    def is_archived(self) -> bool:
        """True where it must be recalled or restored before it is read."""
        return self.state == ARCHIVED


@dataclass(frozen=True, slots=True)
class KnownFile:
    """The catalog's record of a file, which tells whether it has changed: see File.

    Attributes:
        carries_tags: Its row carries a frame's tags: it is a camera image, or a label without one.
    """

    key: str
    size: int
    mtime: datetime
    etag: str
    carries_tags: bool = False
    state: str | None = None
    tier: str | None = None


@dataclass(frozen=True, slots=True)
class Frame:
    """A camera image with its partners and, where it is labelled, what its label image holds.

    Attributes:
        image: Key of the file whose row carries the tags: the camera image, or the label where
            there is no camera image.
        label: Key of the label image, if there is one.
        lidar: Key of the lidar file, if there is one.
        camera_json: Key of the camera's description, if there is one.
        scene: Scene folder, "YYYYMMDD_hhmmss".
        camera: Camera name such as "front_center".
        number: Frame number within the scene.
        width: Image width [pixels]; None without a label, as only labels are decoded.
        height: Image height [pixels]; None without a label.
        positions: Position tags, 0 or 1 each.
        class_pixels: Pixels per class tag; empty without a label.
        unknown_pixels: Pixels whose colour is no class; None without a label.
        label_digest: What the label shows, as catalog.frames.duplicates compares it; empty where
            unknown.
    """

    image: str
    label: str | None
    lidar: str | None
    camera_json: str | None
    scene: str
    camera: str
    number: int
    width: int | None
    height: int | None
    positions: Mapping[str, int]
    class_pixels: Mapping[str, int]
    unknown_pixels: int | None
    label_digest: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something a scan met that a person should know of.

    Attributes:
        kind: "bad_file", "unreadable" (tried again by every scan), "orphan" or "unknown_colours".
        key: The file concerned, below the source's root.
        reason: What is wrong, in one line.
    """

    kind: str
    key: str
    reason: str


@dataclass(frozen=True, slots=True)
class TagColumn:
    """A tag and the column that holds it.

    Attributes:
        tag: Tag name, which is also the column's name.
        table: Table of its family: "class_pixels" or "tags_<family>".
        type: DuckDB type of the column, such as "INTEGER".
    """

    tag: str
    table: str
    type: str


@dataclass(frozen=True, slots=True)
class CatalogInfo:
    """Contents of a catalog.

    Attributes:
        snapshot: Number of the newest snapshot.
        files: Rows of metaocean.
        frames: Labelled frames.
        tags: Number of tags.
    """

    snapshot: int
    files: int
    frames: int
    tags: int = field(default=0)


COMMAND = "command"
"""In place of an account: who gives commands on a home may do everything there."""


@dataclass(frozen=True)
class Owner:
    """A user as the owner of a dataset, a job, a policy...

    Attributes:
        name: The user's, which is shown; empty for nobody.
        account: Tells users apart who had the same name one after the other: `User.account`,
            COMMAND, or empty where nobody authenticated.
    """

    name: str = ""
    account: str = ""


NOBODY = Owner()
"""The owner of what the machine's own command line makes, and a server that does not
authenticate."""
