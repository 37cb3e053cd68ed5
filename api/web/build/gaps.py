"""The gaps of a dataset and each of its splits, as one table: a row for each class and camera."""

import json
from collections.abc import Mapping
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
