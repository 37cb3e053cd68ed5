"""The gaps of a dataset and each of its splits: a row for each class and camera, and by split."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode

from query.statistics.gap_report import Gap, GapReport


@dataclass
class Row:
    """A class or camera with too few frames in the dataset or in one of its splits."""

    kind: str
    """"class" or "camera"."""
    name: str
    """Its name."""
    demand: str
    """What closes the gap, as an extension's form takes it; empty where nothing does."""
    new_frames: int
    """Frames of the catalog that have it and are not in the dataset."""
    path: str
    """The page of the frames that have it; empty where there are none."""
    frames: dict[str, int] = field(default_factory=dict)
    """Frames that have it, of what has too few: "" is the whole dataset, else a split."""


@dataclass(frozen=True)
class Lack:
    """The dataset or a split of it that has too few frames of something."""

    split: str
    """Its name; "" is the whole dataset."""
    rows: tuple[Row, ...]
    """What it has too few frames of and the catalog has new ones, the fewest frames first."""
    closed: tuple[Row, ...]
    """What the catalog has no new frames of."""


def lacks_of(rows: Sequence[Row], splits: Iterable[str]) -> list[Lack]:
    """What the dataset and each split has too few frames of; none for those that have enough."""
    lacks = []
    for split in ("", *splits):
        missing = sorted(
            (row for row in rows if split in row.frames), key=lambda row: row.frames[split]
        )
        closable = tuple(row for row in missing if row.new_frames and row.path)
        closed = tuple(row for row in missing if row not in closable)
        if missing:
            lacks.append(Lack(split, closable, closed))
    return lacks


def rows_of(reports: Mapping[str, GapReport]) -> list[Row]:
    """The rows of reports, by split; those that the catalog can close first."""
    rows: dict[tuple[str, str], Row] = {}
    for split, report in reports.items():
        for gap in report.gaps:
            key = (gap.kind, gap.value)
            if key not in rows:
                rows[key] = _row(gap, report.at_least)
            rows[key].frames[split] = gap.frames
    return sorted(rows.values(), key=lambda row: (not row.new_frames, row.kind != "class"))


def _row(gap: Gap, at_least: int) -> Row:
    is_closable = gap.kind == "class" and gap.new_frames
    path = "/?" + urlencode({"question": json.dumps(gap.question)}) if gap.question else ""
    demand = f"{gap.value}={at_least}" if is_closable else ""
    return Row(gap.kind, gap.name, demand, gap.new_frames, path)
