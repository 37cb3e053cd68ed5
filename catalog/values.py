"""Plain data that the parts of Framesift hand to each other."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

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
    """One file of a source, as its listing shows it."""

    key: str
    """Path below the source's root, with slashes."""
    size: int
    """Size [bytes]."""
    mtime: datetime
    """Last change, naive UTC."""
    atime: datetime | None = None
    """Last access, naive UTC; None where the platform keeps none."""
    ctime: datetime | None = None
    """Last change of metadata, naive UTC; None where the platform keeps none."""
    inode: int = 0
    """Inode number, or a number that stands in for it."""
    owner: str = ""
    """Name of the owning user; empty where unknown."""
    group: str = ""
    """Name of the owning group; empty where unknown."""
    uid: int | None = None
    """Number of the owning user; None where unknown."""
    gid: int | None = None
    """Number of the owning group; None where unknown."""
    permissions: str = ""
    """As ls -l prints them, such as "-rw-r--r--"; empty where unknown."""
    size_consumed: int = 0
    """Space it takes [bytes]."""
    etag: str = ""
    """The object store's mark of this content; empty where there is none."""
    state: str | None = None
    """"resdnt" where it can be read at once, "migrtd" where it must be recalled or restored first,
    "premig" where it can be read and lies in the archive as well; None where the source does not
    tell.
    """
    tier: str | None = None
    """Its storage class, such as "STANDARD"; None where the source does not tell."""

    @property
    def is_archived(self) -> bool:
        """True where it must be recalled or restored before it is read."""
        return self.state == ARCHIVED


@dataclass(frozen=True, slots=True)
class KnownFile:
    """The catalog's record of a file, which tells whether it has changed: see File."""

    key: str
    size: int
    mtime: datetime
    etag: str
    carries_tags: bool = False
    """Its row carries a frame's tags: it is a camera image, or a label without one."""
    state: str | None = None
    tier: str | None = None


@dataclass(frozen=True, slots=True)
class Frame:
    """A camera image with its partners and, where it is labelled, what its label image holds."""

    image: str
    """Key of the file whose row carries the tags: the camera image, or the label where there is no
    camera image.
    """
    label: str | None
    """Key of the label image, if there is one."""
    lidar: str | None
    """Key of the lidar file, if there is one."""
    camera_json: str | None
    """Key of the camera's description, if there is one."""
    scene: str
    """Name of the drive, or part of one, that it is of, such as "YYYYMMDD_hhmmss"."""
    camera: str
    """Camera name such as "front_center"."""
    number: int | None
    """Frame number within the scene; None where its layout has none."""
    width: int | None
    """Image width [pixels]; None without a label, as only labels are decoded."""
    height: int | None
    """Image height [pixels]; None without a label."""
    positions: Mapping[str, int]
    """Position tags, 0 or 1 each."""
    class_pixels: Mapping[str, int]
    """Pixels per class tag; empty without a label."""
    unknown_pixels: int | None
    """Pixels whose colour is no class; None without a label."""
    label_digest: str = ""
    """What the label shows, as catalog.frames.duplicates compares it; empty where unknown."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Tags that names give: those of the layout of its source."""
    label_segments: str | None = None
    """Of a panoptic label, by which it was counted (ingest.labels.segments); None of others."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something a scan met that a person should know of."""

    kind: str
    """"bad_file", "unreadable" (tried again by every scan), "orphan" or "unknown_colours"."""
    key: str
    """The file concerned, below the source's root."""
    reason: str
    """What is wrong, in one line."""


@dataclass
class FrameProgress:
    """Frames of a work that writes files for each, so far."""

    expected: int
    """Frames there are."""
    written: int = 0
    """Frames of which something was written."""
    unchanged: int = 0
    """Frames whose files were there already, as they would be written."""
    problems: list[Problem] = field(default_factory=list)
    """Frames that are left out, and why."""

    @property
    def done(self) -> int:
        """Frames that are through."""
        return self.written + self.unchanged + len(self.problems)

    def to_json(self) -> dict[str, Any]:
        """The counts and problems as data."""
        return {
            "frames": self.expected,
            "written": self.written,
            "unchanged": self.unchanged,
            "problems": [
                {"kind": each.kind, "file": each.key, "reason": each.reason}
                for each in self.problems
            ],
        }


@dataclass(frozen=True, slots=True)
class TagColumn:
    """A tag and the column that holds it."""

    tag: str
    """Tag name, which is also the column's name."""
    table: str
    """Table of its family: "class_pixels" or "tags_<family>"."""
    type: str
    """DuckDB type of the column, such as "INTEGER"."""
    classes: tuple[str, ...] = ()
    """Of a class group: the tags of the classes that it sums."""


@dataclass(frozen=True, slots=True)
class CatalogInfo:
    """Contents of a catalog."""

    snapshot: int
    """Number of the newest snapshot."""
    files: int
    """Rows of metaocean."""
    frames: int
    """Labelled frames."""
    tags: int = field(default=0)
    """Number of tags."""


COMMAND = "command"
"""In place of an account: who gives commands on a home may do everything there."""


@dataclass(frozen=True)
class Owner:
    """A user as the owner of a dataset, a job, a policy..."""

    name: str = ""
    """The user's, which is shown; empty for nobody."""
    account: str = ""
    """Tells users apart who had the same name one after the other: `User.account`, COMMAND, or
    empty where nobody authenticated.
    """


NOBODY = Owner()
"""The owner of what the machine's own command line makes, and a server that does not
authenticate."""
