"""Frames that cannot be read and that a program goes on without, up to a limit."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from threading import Lock

from catalog.errors import BadFile
from catalog.storage.atomic_write import atomic_write
from catalog.storage.bounded_file import parsed_json
from training.command import say
from training.folder_file import read_folder_file

FILE = "bad_frames.json"
_MOST_BYTES = 64 << 20


class SkippedFrames:
    """The bad frames of a split that a program has met, by fkey, with the reason of each.

    Attributes:
        split: The split's name.
    """

    def __init__(self, fkeys: list[str], limit: int, split: str) -> None:
        """Know of none yet.

        Args:
            fkeys: Of the frames that are read, by their rows.
            limit: How many may be bad.
        """
        self.split = split
        self._fkeys, self._limit = fkeys, limit
        self._reasons: dict[str, str] = {}
        self._noting = Lock()

    def note(self, row: int, error: BadFile) -> None:
        """Go on without a frame."""
        fkey, reason = self._fkeys[row], " ".join(str(error).split())
        with self._noting:  # several threads read ahead
            if fkey in self._reasons:
                return
            self._reasons[fkey] = reason
        say(f"warning: skipped frame {fkey}: {reason}")
        self.check(error)

    def check(self, last: BadFile | None = None) -> None:
        """Go on where no more are bad than may be.

        Raises:
            BadFile: More are.
        """
        if (bad := len(self._reasons)) > self._limit:
            why = last or BadFile(next(reversed(self._reasons.values())))
            raise BadFile(
                f"{why.reason}; {bad} frames cannot be read, and --bad_frames allows "
                f"{self._limit}; a run goes on with more, skip:N (framesift jobs resume)",
                why.file,
            )

    def add(self, listed: Iterable[Mapping[str, str]]) -> None:
        """Know of those, too, that others have met."""
        with self._noting:
            for one in listed:
                self._reasons.setdefault(one["fkey"], one["reason"])

    def listed(self) -> list[dict[str, str]]:
        """The ``split``, ``fkey`` and ``reason`` of each, by fkey."""
        with self._noting:
            return [
                {"split": self.split, "fkey": fkey, "reason": why}
                for fkey, why in sorted(self._reasons.items())
            ]


def write_skipped_frames(model_dir: Path, listed: Sequence[Mapping[str, str]]) -> None:
    """Keep a list in a run's folder."""
    atomic_write(model_dir / FILE, json.dumps(listed, indent=2), parents=True)


def read_skipped_frames(model_dir: Path) -> list[dict[str, str]]:
    """The list that a run kept in its folder; none where there is none, or it is damaged."""
    try:
        listed = parsed_json(read_folder_file(model_dir, FILE, _MOST_BYTES))
        return [
            {
                "split": str(one["split"]),
                "fkey": str(one["fkey"]),
                "reason": str(one["reason"]),
            }
            for one in listed
        ]
    except (BadFile, ValueError, KeyError, TypeError, AttributeError):
        return []
