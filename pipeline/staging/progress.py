"""Progress of a staging."""

from collections.abc import Callable
from dataclasses import asdict, dataclass

from pipeline.cache.running import Announcement


@dataclass(frozen=True)
class Progress:
    """Progress of a staging; 100 percent means that every file is in the cache and was checked."""

    files: int
    """Files that are in the cache."""
    of_files: int
    bytes: int
    of_bytes: int
    fetched_bytes: int = 0
    """What this staging has fetched [bytes]."""
    failed: int = 0
    seconds: float = 0.0
    """Time since it began to fetch [s]."""
    present: int = 0
    """Files that were in the cache when it began."""
    recalling: int = 0
    """Files that an archive brings back before they are fetched."""
    failed_bytes: int = 0
    """Size of those that could not be had, as far as they are known [bytes]."""

    @property
    def queued(self) -> int:
        """Files that are still to come."""
        return max(0, self.of_files - self.files - self.failed)

    @property
    def done(self) -> int:
        """Files that have come, fetched by this staging or by another one beside it."""
        return max(0, self.files - self.present)

    @property
    def mb_per_s(self) -> float:
        """Bytes fetched per second [MB/s]."""
        return self.fetched_bytes / 1e6 / self.seconds if self.seconds else 0.0

    @property
    def eta_s(self) -> float | None:
        """Time that what is still to come takes at the rate so far [s]; None where unknown."""
        coming = max(0, self.of_bytes - self.bytes - self.failed_bytes)
        if not coming:
            return 0.0
        return coming / 1e6 / self.mb_per_s if self.mb_per_s else None

    def to_json(self) -> dict[str, int | float | None]:
        """Counts and rates, as ``--json`` shows them."""
        eta = self.eta_s
        return asdict(self) | {
            "queued": self.queued,
            "done": self.done,
            "seconds": round(self.seconds, 3),
            "mb_per_s": round(self.mb_per_s, 3),
            "eta_s": None if eta is None else round(eta, 1),
        }


def announced(
    announcement: Announcement, progress: Callable[[Progress], None]
) -> Callable[[Progress], None]:
    """A callback that announces progress to all who share the cache, and calls ``progress``."""

    def report(now: Progress) -> None:
        announcement.report(now.to_json())
        progress(now)

    return report
