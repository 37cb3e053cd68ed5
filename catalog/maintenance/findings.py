"""Findings of a check of the catalog."""

from collections.abc import Sequence
from dataclasses import dataclass

EXAMPLES = 3
"""Names that a finding shows."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Fault that a check found."""

    kind: str
    """"damaged_metadata", "damaged_records", "records_gone", "missing_file", "damaged_file",
    "snapshot_gone", "orphan_file", "view", "wrong_statistics", "wrong_count", "double_fkey",
    "row_without_file" or "frame_incomplete".
    """
    what: str
    """What was found, with examples, in one line."""
    remedy: str
    """What to do about it."""
    repaired: bool = False
    """Whether that has been done."""


def listed(names: Sequence[str], count: int | None = None) -> str:
    """The first of some names, and how many more there are."""
    more = (len(names) if count is None else count) - EXAMPLES
    return ", ".join(names[:EXAMPLES]) + (f" and {more:,} more" if more > 0 else "")
