"""Counts of a scan so far, its speed, and the time that it will take."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields


@dataclass
class ScanCounts:
    """Counts of a scan so far."""

    files: int = 0
    expected_files: int | None = None
    """Files that the listing is expected to have in the end; None while unknown."""
    added: int = 0
    changed: int = 0
    """Files whose size, etag or time of last change differs, or all with ``full``."""
    unchanged: int = 0
    """Files that are as they were; they are not read again."""
    removed: int = 0
    frames: int = 0
    """Frames whose labels were counted."""
    labels_alone: int = 0
    """Those of them that have no camera image; the label's row carries the tags."""
    images_archived: int = 0
    """Camera images of them that an archive holds, and that were not opened."""
    recalling: int = 0
    """Labels that an archive is bringing back."""
    unlabelled: int = 0
    """Frames without a label that were written."""
    bytes_read: int = 0
    """Bytes read from the source, listings not counted."""
    bad_files: int = 0
    orphans: int = 0
    """Files without their partner."""
    unknown_pixels: int = 0
    """Pixels in colours that are no class."""
    commits: int = 0
    """Snapshots of the catalog that it made."""
    seconds: float = 0.0
    """Time since the scan began [s]."""

    def __add__(self, other: "ScanCounts") -> "ScanCounts":
        """The counts of one scan and of another after it, which may still expect more files."""
        names = [field.name for field in fields(self) if field.name != "expected_files"]
        both = ScanCounts(**{name: getattr(self, name) + getattr(other, name) for name in names})
        if other.expected_files is not None:
            both.expected_files = self.files + other.expected_files
        return both

    @property
    def files_per_s(self) -> float:
        """Files listed and dealt with per second."""
        return self.files / self.seconds if self.seconds else 0.0

    @property
    def frames_per_s(self) -> float:
        """Labels counted per second."""
        return self.frames / self.seconds if self.seconds else 0.0

    @property
    def mb_per_s(self) -> float:
        """Megabytes (10**6) read per second."""
        return self.bytes_read / 1e6 / self.seconds if self.seconds else 0.0

    @property
    def eta_s(self) -> float | None:
        """Time that the rest will take at the rate so far [s]; None while that is unknown."""
        if self.expected_files is None or not self.files_per_s:
            return None
        return max(0, self.expected_files - self.files) / self.files_per_s

    def to_json(self) -> dict[str, int | float | None]:
        """Counts and rates, as ``--json`` and a scan's record show them."""
        eta = self.eta_s
        return asdict(self) | {
            "seconds": round(self.seconds, 3),
            "files_per_s": round(self.files_per_s, 1),
            "frames_per_s": round(self.frames_per_s, 1),
            "mb_per_s": round(self.mb_per_s, 3),
            "eta_s": None if eta is None else round(eta, 1),
        }


Progress = Callable[[ScanCounts], None]
