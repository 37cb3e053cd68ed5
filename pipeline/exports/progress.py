"""What an export has done."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from catalog.values import Problem


@dataclass
class ExportProgress:
    """Frames and files of an export so far."""

    expected: int
    """Frames of the dataset."""
    written: int = 0
    """Frames of which something was written."""
    unchanged: int = 0
    """Frames that an earlier export of the same kind had written already."""
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


Report = Callable[[ExportProgress], None]
