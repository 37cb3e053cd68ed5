"""What a scan has counted, in words and with units: on its own page and on that of its job."""

from collections.abc import Callable, Mapping
from typing import Any

from api.web.moments import duration
from framesift.progress import number_of


def size_of(size_bytes: float) -> str:
    """Bytes for people."""
    for unit, bytes_of_unit in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size_bytes >= bytes_of_unit:
            return f"{size_bytes / bytes_of_unit:.1f} {unit}"
    return f"{size_bytes:.0f} bytes"


def _number(value: float) -> str:
    return f"{value:,.0f}"


def _rate(value: float) -> str:
    return f"{value:,.1f}"


_FIGURES: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "seconds": ("took", duration),
    "files": ("files", _number),
    "expected_files": ("files expected", _number),
    "added": ("files added", _number),
    "changed": ("files changed", _number),
    "unchanged": ("files unchanged", _number),
    "removed": ("files removed", _number),
    "frames": ("frames", _number),
    "labels_alone": ("labels without an image", _number),
    "images_archived": ("images in an archive", _number),
    "recalling": ("labels that an archive is bringing back", _number),
    "unlabelled": ("frames without a label", _number),
    "bytes_read": ("read", size_of),
    "bad_files": ("files that cannot be read", _number),
    "orphans": ("files without a partner", _number),
    "unknown_pixels": ("pixels of no class", _number),
    "commits": ("snapshots made", _number),
    "files_per_s": ("files a second", _rate),
    "frames_per_s": ("labels counted a second", _rate),
    "mb_per_s": ("read a second", lambda value: f"{_rate(value)} MB"),
    "eta_s": ("remaining", duration),
}
"""Of each count, by its name in a scan's record: what it is called, and how its value is told."""


def scan_figures(counts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The counts that have a value, as a page names and tells them."""
    return [
        (title, told(value))
        for name, (title, told) in _FIGURES.items()
        if (value := number_of(counts, name)) is not None
    ]


SCANNED = frozenset(_FIGURES)
"""Names of a scan's counts."""
